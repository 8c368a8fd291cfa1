"""Where a task goes, or why it has no place.

In this order: the worker that holds a pinned resource; the worker of a sticky affinity; among those that
offer the package in the version, the runtime and the labels and have room: the worker of a preferred
affinity, the worker this run used for the package (its binding), the least loaded of the next few.

"The next few" go round: a worker that was given work is looked at last next time. With up to `LOOKED_AT`
workers free the least loaded of all is found; with thousands, a good one is, at no cost for the rest. A task
that asks for a label which few workers have, as the name of an HTTP pool, is looked for among those alone.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Final

import msgspec

from astraflow.core.dispatch.demand import Demand
from astraflow.core.fleet.pools import ANY_VERSION
from astraflow.core.fleet.workers import WorkerEntry, WorkerTable
from astraflow.core.runs.facts import WaitReason

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
    """Whether the worker could ever run the task: package, version, runtime, labels."""
    offer = worker.offer
    versions = offer.packages.get(demand.package_name)
    if versions is None:
        return False
    if demand.package_version not in versions and ANY_VERSION not in versions:
        return False
    if demand.needs_session and worker.pool is not None:
        return False
    if not offer.has_runtime(demand.runtime):
        return False
    return all(offer.labels.get(name) == value for name, value in demand.labels)


def choose(demand: Demand, workers: WorkerTable) -> WorkerEntry | NoPlace:
    """A worker for a task of this demand, or what it waits for."""
    if demand.only is not None:
        return _only(demand.only, demand, workers)
    found = find_place(demand, workers)
    return found if found is not None else NoPlace(_why(demand, workers))


def find_place(demand: Demand, workers: WorkerTable, *preferred: str | None) -> WorkerEntry | None:
    """The worker for one task of this demand: a preferred one, if it has a place.

    Nothing is said of why there is none: most tasks of a large run wait for a slot, over and over.
    """
    if demand.only is not None:
        found = _only(demand.only, demand, workers)
        return None if isinstance(found, NoPlace) else found
    free = workers.available(demand.tenant, demand.package_name)
    for name in preferred:
        worker = free.get(name) if name is not None else None
        if worker is not None and _fits(worker, demand):
            return worker
    few = _few_labelled(demand, workers) if demand.labels else None
    there = free.values() if few is None else [one for one in few if one.worker_id in free]
    fitting = islice((one for one in there if _fits(one, demand)), LOOKED_AT)
    return min(fitting, key=lambda one: one.load, default=None)


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
    return offers(worker, demand) and worker.has_room_for(demand.node_type)


def _only(worker_id: str, demand: Demand, workers: WorkerTable) -> WorkerEntry | NoPlace:
    """The one worker that will do, or why it will not now."""
    worker = workers.find(demand.tenant, worker_id)
    if worker is None or not worker.is_reachable:
        away = f"worker {worker_id} {_why_away(worker)}"
        return NoPlace(WaitReason("affinity" if demand.pin is None else "resource", away))
    if not offers(worker, demand):
        wanted = f"{demand.package_name} {demand.package_version} on worker {worker_id}"
        return NoPlace(WaitReason("package", wanted))
    if not worker.is_available or not worker.has_room_for(demand.node_type):
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
    if worker.used < worker.offer.max_parallel:
        return f"runs as many {demand.node_type} as it may"
    return "is busy"


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
        return WaitReason("worker", f"no worker with {wanted} has {_asked(demand)}")
    if len(fitting) <= NAMED:
        full = "; ".join(f"worker {one.worker_id} {_why_full(one, demand)}" for one in fitting)
        return WaitReason("slot", full)
    return WaitReason("slot", f"all {len(fitting)} workers with {wanted} are busy")


def _asked(demand: Demand) -> str:
    """The runtime and the labels that it needs, for people."""
    asked = [f"the runtime {demand.runtime}"] if demand.runtime is not None else []
    asked += [f"the label {name}={value}" for name, value in demand.labels]
    asked += ["a session, which HTTP pools have not"] if demand.needs_session else []
    return " and ".join(asked)
