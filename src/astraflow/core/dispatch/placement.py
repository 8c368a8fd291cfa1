"""Where a task goes, or why it has no place.

In this order: the worker that holds a pinned resource; the worker of a sticky affinity; among those that
offer the package in the version, the runtime and the labels and have room: the worker of a preferred
affinity, the worker this run used for the package (its binding), the least loaded of the next few. For a task that asks
for processors, memory or graphics cards it is not the least loaded but the tightest fit: what is asked for next may be
larger.

"The next few" go round: a worker that was given work is looked at last next time. With up to `LOOKED_AT`
workers free the least loaded of all is found; with thousands, a good one is, at no cost for the rest. A task
that asks for a label which few workers have, as the name of an HTTP pool, is looked for among those alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

import msgspec

from astraflow.core.dispatch.demand import Demand
from astraflow.core.fleet.pools import ANY_VERSION
from astraflow.core.fleet.workers import WorkerEntry, WorkerTable
from astraflow.core.runs.facts import WaitReason
from astraflow.core.workflow.amounts import Amounts

LOOKED_AT: Final = 8
"""How many fitting free workers are compared by load; two already avoid most bad choices."""
FEW: Final = 32
"""A label that so many workers have, or fewer, is looked up instead of looked for."""
NAMED: Final = 3
"""So many workers are named when something is said of them; of more, their number is."""


class NoPlace(msgspec.Struct, frozen=True):
    """Why there is no place, as the task will say it."""

    waiting_for: WaitReason


def offers(worker: WorkerEntry, demand: Demand) -> bool:
    """Whether the worker could ever run the task: package, version, runtime, labels, size of its machine."""
    offer = worker.offer
    versions = offer.packages.get(demand.package_name)
    if versions is None:
        return False
    if demand.package_version not in versions and ANY_VERSION not in versions:
        return False
    if demand.needs_session and worker.pool is not None:
        return False
    if demand.runtime is not None and not offer.has_runtime(demand.runtime):
        return False
    if demand.request is not None and not worker.could_hold(demand.request):
        return False
    if not demand.labels:
        return True
    return all(offer.labels.get(name) == value for name, value in demand.labels)


def choose(demand: Demand, workers: WorkerTable) -> WorkerEntry | NoPlace:
    """A worker for a task of this demand, or what it waits for."""
    if demand.only is not None:
        return _only(demand.only, demand, workers)
    found = find_place(demand, workers)
    return found if found is not None else NoPlace(_why(demand, workers))


def find_place(
    demand: Demand, workers: WorkerTable, preferred: Sequence[str] = ()
) -> WorkerEntry | None:
    """The worker for one task of this demand: a preferred one, if it has a place.

    Nothing is said of why there is none: most tasks of a large run wait for a slot, over and over.
    """
    if demand.only is not None:
        found = _only(demand.only, demand, workers)
        return None if isinstance(found, NoPlace) else found
    free = workers.available(demand.tenant, demand.package_name)
    for name in preferred:
        worker = free.get(name)
        if worker is not None and _fits(worker, demand):
            return worker
    few = _few_labelled(demand, workers) if demand.labels else None
    there = free.values() if few is None else [one for one in few if one.worker_id in free]
    fitting = islice((one for one in there if _fits(one, demand)), LOOKED_AT)
    if demand.request is not None:
        return _tightest(list(fitting), demand.request)
    return min(fitting, key=lambda one: one.load, default=None)


def _tightest(fitting: list[WorkerEntry], request: Amounts) -> WorkerEntry | None:
    """The worker that has least left afterwards, first of all of graphics cards; a pool only if there is no worker."""

    def left(worker: WorkerEntry) -> tuple[bool, int, float]:
        capacity = worker.offer.capacity
        if capacity is None:
            return (True, 0, worker.load)
        after = worker.free - request
        cpu = after.milli_cpu / (capacity.milli_cpu or 1)
        return (False, after.gpu, cpu + after.memory_bytes / (capacity.memory_bytes or 1))

    return min(fitting, key=left, default=None)


def is_offered(demand: Demand, workers: WorkerTable) -> bool:
    """Whether some worker that is there could run it, if it had room."""
    few = _few_labelled(demand, workers) if demand.labels else None
    there = workers.offering(demand.tenant, demand.package_name) if few is None else few
    return any(one.is_reachable and offers(one, demand) for one in there)


def _few_labelled(demand: Demand, workers: WorkerTable) -> Collection[WorkerEntry] | None:
    """The workers with the rarest of its labels, unless they are many."""
    labelled = [workers.labelled(demand.tenant, name, value) for name, value in demand.labels]
    rarest = min(labelled, key=len)
    return rarest.values() if len(rarest) <= FEW else None


def _fits(worker: WorkerEntry, demand: Demand) -> bool:
    if not offers(worker, demand) or not worker.has_room_for(demand.node_type):
        return False
    request = demand.request
    if request is None:
        return True
    return worker.can_hold(request) and worker.held_for in (None, demand)


def _only(worker_id: str, demand: Demand, workers: WorkerTable) -> WorkerEntry | NoPlace:
    """The one worker that will do, or why it will not now."""
    worker = workers.find(demand.tenant, worker_id)
    if worker is None or not worker.is_reachable:
        away = f"worker {worker_id} {_why_away(worker)}"
        return NoPlace(WaitReason("affinity" if demand.pin is None else "resource", away))
    if not offers(worker, demand):
        if demand.request is not None and offers(worker, _anywhere(demand)):
            return NoPlace(_too_large(demand, demand.request, [worker]))
        wanted = f"{demand.package_name} {demand.package_version} on worker {worker_id}"
        return NoPlace(WaitReason("package", wanted))
    if not worker.is_available or not _fits(worker, demand):
        return NoPlace(WaitReason("slot", f"worker {worker_id} {_why_full(worker, demand)}"))
    return worker


def _why_away(worker: WorkerEntry | None) -> str:
    if worker is None or worker.channel is None:
        return "is away"
    return "is draining" if worker.is_draining else f"is {worker.status}"


def _why_full(worker: WorkerEntry, demand: Demand) -> str:
    if not worker.is_connected:
        return "has lost its connection"
    if worker.is_pressed:
        return "is short of memory or disk"
    if worker.used >= worker.slots:
        return "is busy"
    request = demand.request
    if request is not None and worker.held_for not in (None, demand):
        return "is held for a larger request"
    if request is not None and not worker.can_hold(request):
        return f"has {worker.free.describe(request)} free of the {request.describe()} asked for"
    return f"runs as many {demand.node_type} as it may"


def _why(demand: Demand, workers: WorkerTable) -> WaitReason:
    known = workers.of_tenant(demand.tenant)
    reachable = [one for one in known if one.is_reachable]
    if not reachable:
        there = [one for one in known if one.channel is not None][:NAMED]
        named = "; ".join(f"worker {one.worker_id} {_why_away(one)}" for one in there)
        return WaitReason("worker", named or "no worker is online")
    wanted = f"{demand.package_name} {demand.package_version}"
    with_package = [
        one
        for one in reachable
        if {demand.package_version, ANY_VERSION}
        & one.offer.packages.get(demand.package_name, frozenset())
    ]
    if not with_package:
        return WaitReason("package", f"no worker online offers {wanted}")
    fitting = [one for one in with_package if offers(one, demand)]
    if not fitting:
        small = [one for one in with_package if offers(one, _anywhere(demand))]
        if demand.request is not None and small:
            return _too_large(demand, demand.request, small)
        return WaitReason("worker", f"no worker with {wanted} has {_asked(demand, with_package)}")
    if len(fitting) <= NAMED:
        full = "; ".join(f"worker {one.worker_id} {_why_full(one, demand)}" for one in fitting)
        return WaitReason("slot", full)
    return WaitReason("slot", f"all {len(fitting)} workers with {wanted} are busy")


def _anywhere(demand: Demand) -> Demand:
    """The same demand, on a machine of any size."""
    return msgspec.structs.replace(demand, request=None)


def _too_large(demand: Demand, request: Amounts, workers: list[WorkerEntry]) -> WaitReason:
    """No worker could ever hold it, with the numbers."""
    if len(workers) > NAMED:
        has = f"none of {len(workers)} workers with {demand.package_name} has so much"
        return WaitReason("capacity", f"{request.describe()} asked for; {has}")
    has = "; ".join(f"worker {one.worker_id} {_size(one, request)}" for one in workers)
    return WaitReason("capacity", f"{request.describe()} asked for; {has}")


def _size(worker: WorkerEntry, request: Amounts) -> str:
    capacity = worker.offer.capacity
    return "does not say what it has" if capacity is None else f"has {capacity.describe(request)}"


def _asked(demand: Demand, workers: list[WorkerEntry]) -> str:
    """The runtime and the labels that it needs and none of the workers has, or, if it is the combination that none
    has, all of them; for people."""
    asked = [
        (f"the label {name}={value}", [one.offer.labels.get(name) == value for one in workers])
        for name, value in demand.labels
    ]
    if demand.runtime is not None:
        has_it = [one.offer.has_runtime(demand.runtime) for one in workers]
        asked.insert(0, (f"the runtime {demand.runtime}", has_it))
    if demand.needs_session:
        has_it = [one.pool is None for one in workers]
        asked.append(("a session, which HTTP pools have not", has_it))
    missing = [what for what, has_it in asked if not any(has_it)]
    return " and ".join(missing or [what for what, _ in asked])
