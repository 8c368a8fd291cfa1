"""Holding a worker for a large request.

Small requests fit into every gap that opens, so that a large one might never find its place while they go on coming.
One that has waited for long gets a worker held: nothing else that asks for a part of its machine is placed there, until
what runs there has ended and the large one fits. Tasks that ask for nothing go there as before.
"""

from __future__ import annotations

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.placement import offers
from astraflow.core.engine.view import View
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.workflow.amounts import Amounts


def hold_for_large(view: View, waiting: list[Demand]) -> None:
    """Hold a worker for each of the demands that have waited for long, and for no others."""
    notes = view.placing
    large = {one: one.request for one in waiting if one.request is not None}
    for demand, worker in notes.holds():
        if demand not in large or not worker.is_reachable or not offers(worker, demand):
            notes.release(demand)
            view.wake_for(worker)
    for demand in notes.short_since(list(large), view.now, view.settings.hold_after_s):
        nearest = _nearest(view, demand, large[demand])
        if nearest is not None:
            notes.hold(demand, nearest)


def _nearest(view: View, demand: Demand, request: Amounts) -> WorkerEntry | None:
    """The worker that lacks least of what is asked for."""
    known = view.workers.offering(demand.tenant, demand.package_name)
    fitting = [
        one
        for one in known
        if one.is_reachable and one.pool is None and one.held_for is None and offers(one, demand)
    ]
    return min(fitting, key=lambda one: _missing(one, request), default=None)


def _missing(worker: WorkerEntry, request: Amounts) -> float:
    capacity = worker.offer.capacity
    assert capacity is not None, "a worker that does not say what it has is offered no request"
    lacks = request - worker.free
    return (
        max(lacks.milli_cpu, 0) / (capacity.milli_cpu or 1)
        + max(lacks.memory_bytes, 0) / (capacity.memory_bytes or 1)
        + max(lacks.gpu, 0) / (capacity.gpu or 1)
    )
