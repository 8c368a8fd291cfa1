"""Dispatch: who gets what next. Demands, the fair ready queue, placement, leases, keys, affinity."""

from __future__ import annotations

from astraflow.dispatch.affinity import AffinityTable
from astraflow.dispatch.demand import Demand
from astraflow.dispatch.keys import KeyTable
from astraflow.dispatch.leases import Lease, LeaseTable
from astraflow.dispatch.placement import NoPlace, choose
from astraflow.dispatch.queue import ReadyQueue
from astraflow.dispatch.workers import Offer, WorkerEntry, WorkerTable

__all__ = [
    "AffinityTable",
    "Demand",
    "KeyTable",
    "Lease",
    "LeaseTable",
    "NoPlace",
    "Offer",
    "ReadyQueue",
    "WorkerEntry",
    "WorkerTable",
    "choose",
]
