"""Tenants with several lanes, as the engine of one of them sees it.

Rule 1: a worker is told in its session with the home lane which other lanes there are: with each heartbeat, of which
        the first comes at once, and when they change. It opens a session with each.
Rule 2: a worker whose slots in this lane are all in use is *hungry* here while tasks wait for a package that it has. It
        is told so when that begins or ends, and with each heartbeat; how much waits is told again when it has doubled
        or halved. It gives this lane more slots, if others do not need them.
Rule 3: hunger is looked at no more often than it costs little: a fleet of a thousand workers every 0.2 s.
Rule 4: an engine that is not the home has nothing installed. It says what its tasks wait for (`wanted`), and the home
        has it installed, or says that it cannot be (`give_up_package`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.protocol import control
from astraflow.core.runs.commands import Fail
from astraflow.core.runs.facts import TaskFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.dispatch.demand import Demand
    from astraflow.core.engine.commands import GiveUpPackage
    from astraflow.core.engine.view import View
    from astraflow.core.fleet.workers import WorkerEntry
    from astraflow.core.protocol.gateway import Gateway

HOME: Final = 0
LOOK_S: Final = 0.02
LOOK_PER_WORKER_S: Final = 0.0002
"""Between two looks at the hunger of a tenant, and so much more for each of its workers."""
NO_HUNGER: Final = control.Hunger()


class TenantLanes(msgspec.Struct, frozen=True):
    """The lanes of a tenant that has several. `own` is the one of this engine."""

    own: int
    others: tuple[control.LanePlace, ...] = ()
    """All but the home."""

    @property
    def is_home(self) -> bool:
        return self.own == HOME


class LaneTable:
    """The tenants of an engine that have several lanes, and what their workers were told."""

    __slots__ = ("_is_stirred", "_is_woken", "_look_at", "_of", "_told", "wanted")

    def __init__(self) -> None:
        self._of: dict[str, TenantLanes] = {}
        self._look_at: dict[str, float] = {}
        self._told: dict[str, dict[str, control.Hunger]] = {}
        self._is_stirred = False  # something has happened since a look
        self._is_woken = False  # the time of a look has come, and nobody has looked yet
        self.wanted: dict[tuple[str, str, str], None] = {}
        """Packages (tenant, name, version) that tasks of lanes which are not the home wait for."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, tenant: str) -> TenantLanes | None:
        return self._of.get(tenant)

    def is_home(self, tenant: str) -> bool:
        """Whether this engine is the home of a tenant; the only lane of a tenant is."""
        lanes = self._of.get(tenant)
        return lanes is None or lanes.is_home

    def put(self, tenant: str, lanes: TenantLanes | None) -> None:
        self._told.pop(tenant, None)
        self._look_at.pop(tenant, None)
        if lanes is None:
            self._of.pop(tenant, None)
        else:
            self._of[tenant] = lanes
            self._look_at[tenant] = 0.0

    def deadline(self) -> float | None:
        """When hunger is to be looked at next; None: nothing has happened since, or it is time already."""
        if self._is_woken or not self._is_stirred:
            return None
        return min(self._look_at.values(), default=None)

    def wake(self, now: float) -> None:
        """The next look may have to wait for a commit, or for the right to speak."""
        deadline = self.deadline()
        self._is_woken |= deadline is not None and now >= deadline

    def tell_again(self, tenant: str, worker_id: str) -> None:
        """What the worker was told may be lost with its connection."""
        self._told.get(tenant, {}).pop(worker_id, None)
        self._look_at[tenant] = 0.0
        self._is_stirred = True

    def due(self, now: float) -> list[str]:
        """The tenants whose hunger is to be looked at now. The others are looked at later."""
        found = [tenant for tenant, at in self._look_at.items() if now >= at]
        self._is_stirred, self._is_woken = len(found) < len(self._look_at), False
        return found

    def looked(self, tenant: str, again_at: float) -> None:
        self._look_at[tenant] = again_at

    def is_news(self, tenant: str, worker_id: str, hunger: control.Hunger) -> bool:
        """Whether to tell a worker; what is told is remembered."""
        told = self._told.setdefault(tenant, {})
        last = told.get(worker_id)
        if last is not None and not _differs(last.tasks, hunger.tasks):
            return False
        told[worker_id] = hunger
        return True


def _differs(told: int, now: int) -> bool:
    """Whether it has begun, ended, doubled or halved."""
    return told != now and (0 in (told, now) or now >= 2 * told or 2 * now <= told)


def set_lanes(view: View, gateway: Gateway, tenant: str, lanes: TenantLanes | None) -> None:
    """A tenant has other lanes than before, or they are elsewhere; None: it has one."""
    before = view.lanes.of(tenant)
    if before == lanes:
        return
    view.lanes.put(tenant, lanes)
    gateway.serve_lane(tenant, HOME if lanes is None else lanes.own)
    if (before is None or before.is_home) and (lanes is None or lanes.is_home):
        told = lanes or TenantLanes(HOME)
        for worker in view.workers.of_tenant(tenant):
            _tell(view, gateway, worker, control.LANES, control.Lanes(told.others))


def greet_worker(view: View, gateway: Gateway, worker: WorkerEntry) -> None:
    """It has sent a heartbeat, the first of a connection perhaps: tell it of lanes, and of hunger once more."""
    lanes = view.lanes.of(worker.tenant)
    if lanes is None:
        return
    if lanes.is_home:
        _tell(view, gateway, worker, control.LANES, control.Lanes(lanes.others))
    view.lanes.tell_again(worker.tenant, worker.worker_id)


def tell_hunger(view: View, gateway: Gateway) -> None:
    """Tell the workers of tenants with several lanes what waits for their slots here."""
    for tenant in view.lanes.due(view.now):
        workers = view.workers.of_tenant(tenant)
        waiting = {} if view.is_parked else view.queue.depths.by_bundle()
        _, runs = view.queue.waiting_of(tenant)
        for worker in workers:
            if worker.session_id is None:
                continue
            hunger = _hunger(worker, waiting, runs)
            if view.lanes.is_news(tenant, worker.worker_id, hunger):
                _tell(view, gateway, worker, control.HUNGER, hunger)
        view.lanes.looked(tenant, view.now + max(LOOK_S, LOOK_PER_WORKER_S * len(workers)))


def _hunger(
    worker: WorkerEntry, waiting: Mapping[tuple[str, str], int], runs: int
) -> control.Hunger:
    """With a free slot it is not a slot that the tasks wait for."""
    if worker.used < worker.slots or not worker.is_reachable:
        return NO_HUNGER
    tasks = sum(waiting.get((worker.tenant, name), 0) for name in worker.offer.packages)
    return control.Hunger(tasks, max(1, runs)) if tasks else NO_HUNGER


def _tell(
    view: View, gateway: Gateway, worker: WorkerEntry, frame_type: str, payload: object
) -> None:
    if worker.session_id is not None:
        gateway.tell(worker.session_id, frame_type, payload, view.now)


# -- packages ------------------------------------------------------------------------------------


def want_package(view: View, demand: Demand) -> None:
    """Tasks of a lane that is not the home have no place: perhaps for want of the package."""
    name, version = demand.package_name, demand.package_version
    workers = view.workers.offering(demand.tenant, name)
    if not any(one.is_reachable and one.has_version(name, version) for one in workers):
        view.lanes.wanted[demand.tenant, name, version] = None


def give_up_package(view: View, command: GiveUpPackage) -> None:
    """No worker can install a package: the tasks that wait for it fail, and say why."""
    error = TaskFailure(command.code, "CONFIGURATION", command.message, retryable=False)
    for demand in view.queue.sleeping_demands():
        package = (demand.tenant, demand.package_name, demand.package_version)
        if package != (command.tenant, command.name, command.version):
            continue
        for entry in view.queue.waiting_with(demand):
            run = view.runs.find_waiting(entry.run_id, entry.task)
            if run is not None:
                view.queue.forget(entry.run_id, entry.task)
                view.decide(run, Fail(entry.task, error))
