"""Dispatch: who gets what next. Demands, the fair ready queue, placement, leases, keys, affinity."""

from __future__ import annotations

from astraflow.core.dispatch.affinity import AffinityTable
from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.keys import KeyTable
from astraflow.core.dispatch.leases import Lease, LeaseTable
from astraflow.core.dispatch.placement import NoPlace, choose
from astraflow.core.dispatch.queue import ReadyQueue
from astraflow.core.dispatch.workers import Offer, WorkerEntry, WorkerTable

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
