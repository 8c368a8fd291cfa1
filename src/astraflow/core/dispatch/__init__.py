"""Dispatch: who gets what next. Demands, the fair ready queue, placement, leases, keys."""

from __future__ import annotations

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.keys import KeyTable
from astraflow.core.dispatch.leases import AttemptLease, LeaseTable
from astraflow.core.dispatch.placement import NoPlace, choose
from astraflow.core.dispatch.queue import ReadyQueue

__all__ = [
    "AttemptLease",
    "Demand",
    "KeyTable",
    "LeaseTable",
    "NoPlace",
    "ReadyQueue",
    "choose",
]
