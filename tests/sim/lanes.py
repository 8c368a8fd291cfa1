"""Worlds of one tenant with several lanes: each lane is a shard with an engine, and workers serve all of them.

A worker is one machine with an agent for each lane. The product's `Slots` divides its slots; what is told of them
crosses the same bad network as everything else. Lanes appear in the middle of a world, as an admin makes them, and the
home learns of them at once. Runs go where the product's rules say; packages that a lane lacks are asked of the home.

I46: a worker never runs more attempts than it has slots, and the schedulers that it is connected to never count with
     more than that together.
I47: a lane that lacks slots gets one while the worker has idle ones, within `FED_S`.
I48: a concurrency key is held by one attempt at a time over all lanes.
I49: only the home has packages installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from astraflow.core.agent.agent import RegisterOffer
from astraflow.core.agent.slots import SlotDivision, SlotsChange
from astraflow.core.cluster.lanes import HOME_LANE, needs_home
from astraflow.core.engine.commands import WantPackage
from astraflow.core.engine.lanes import TenantLanes
from astraflow.core.fleet.installs import InstallProblem
from astraflow.core.protocol import business, control
from astraflow.core.protocol.worker_events import (
    Connect,
    HungerTold,
    LanesTold,
    SessionReady,
    SlotsAnswered,
    WorkerIdentity,
)
from tests.sim.cluster import OF_NODES, ClusterSimulation, ShardProcess, ShardSimulation
from tests.sim.config import Config, draw
from tests.sim.keeping import EXTRA
from tests.sim.simulation import Outcome, violation_of
from tests.sim.worker import Host, WorkerProcess
from tests.sim.workload import Client, draw_plan
from tests.sim.world import Violation, World

if TYPE_CHECKING:
    from astraflow.core.agent.actions import Action
    from astraflow.core.fleet.workers import WorkerEntry
    from astraflow.core.workflow.plan import Plan
    from tests.sim.scheduler import SchedulerProcess

__all__ = ["LanesSimulation", "missing_in_lanes", "simulate_lanes"]

FED_S = 12.0
"""Two heartbeats, an answer that is lost, and a change of slots under way."""
EXCHANGE_S = 1.0
OF_FRAMES = ("loss", "duplication")
"""Frames without a number, as those of slots, come in order and once, or the connection breaks: that is TCP.
A partition delays them (`Config.is_tcp`)."""
AttemptKey = tuple[str, int]

SOMETIMES = (
    "slots moved between lanes",
    "a lane without a slot got one",
    "an attempt waited for room",
    "lanes appeared while attempts ran",
    "a session was given up for its slots",
    "a run with a key went home",
    "a package was wanted by another lane",
)
"""What must have been seen in some of many worlds."""


def missing_in_lanes(seen: dict[str, int]) -> list[str]:
    return [what for what in SOMETIMES if not seen.get(what)]


class Machine:
    """One worker: a process with an agent for each lane, and one count of what it runs."""

    limits_starts = True

    def __init__(self, cluster: LanesSimulation, number: int) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.number = number
        self.members: list[LaneWorker] = []
        self.slots: SlotDivision | None = None
        self.packages: tuple[control.RegisteredPackage, ...] = ()
        self._waiting: list[tuple[LaneWorker, business.Dispatch]] = []
        self._boots = 0
        self._told: dict[int, int] = {}
        self._noted_boot = 0

    @property
    def home(self) -> LaneWorker:
        return self.members[HOME_LANE]

    def boot(self) -> None:
        if all(one.agent is None for one in self.members):
            self._boots += 1
            self.slots = None
            self._waiting.clear()
            self.home.boot_lane()

    def crash(self) -> None:
        self._boots += 1
        for member in self.members:
            member.crash_lane()
        self._waiting.clear()

    def left(self, member: LaneWorker) -> None:
        """The agent of a lane has ended in order."""
        if self.slots is not None and member is not self.home:
            self.slots.remove(member.lane)
            self._tell_soon()
        if all(one.agent is None for one in self.members):
            self.world.after(1.0, self.boot)

    # -- what the sessions say ----------------------------------------------------------------

    def slots_of(self, lane: int) -> int | None:
        return None if self.slots is None else self.slots.registered(lane)

    def on_word(self, member: LaneWorker, word: Action) -> None:
        if isinstance(word, LanesTold) and member is self.home:
            self._open([one.lane for one in word.lanes])
        slots, lane = self.slots, member.lane
        if slots is None or member.agent is None:
            return
        if isinstance(word, Connect):
            slots.lost(lane, has_session=member.agent.session.is_open)
        elif isinstance(word, SessionReady):
            slots.opened(lane, word.resumed)
        elif isinstance(word, HungerTold):
            slots.hungry(lane, word.tasks, word.runs)
        elif isinstance(word, SlotsAnswered):
            slots.answered(lane)
        self._tell_soon()

    def _open(self, lanes: list[int]) -> None:
        wanted = [lane for lane in lanes if self.members[lane].agent is None]
        if not wanted or self.home.agent is None or self.home.agent.attempts.is_draining:
            return
        if self.slots is None:
            self.slots = SlotDivision(self.home.config.slots)
            self.slots.held(HOME_LANE, self.home.agent.attempts.slots_taken)
            if self.home.agent.attempts.working():
                self.world.sometimes("lanes appeared while attempts ran")
        for lane in wanted:
            self.slots.add(lane)
            self.members[lane].boot_lane()

    def on_held(self, member: LaneWorker) -> None:
        if self.slots is not None and member.agent is not None:
            self.slots.held(member.lane, member.agent.attempts.slots_taken)
            self._tell_soon()

    def _tell_soon(self) -> None:
        self.world.after(0.0, self._tell, self._boots)

    def _tell(self, boot: int) -> None:
        if boot != self._boots or self.slots is None:
            return
        self.slots.check()
        for lane in self.slots.take_given_up():
            self.world.sometimes("a session was given up for its slots")
            self.members[lane].give_up_session()
        for change in self.slots.take_changes():
            self._note(change)
            self.members[change.lane].give_slots(change.slots)

    def _note(self, change: SlotsChange) -> None:
        before = self._told.get(change.lane, 0)
        self._told[change.lane] = change.slots
        if change.slots > before:
            self.world.sometimes("slots moved between lanes")
        if change.slots > before == 0 and self._boots == self._noted_boot:
            self.world.sometimes("a lane without a slot got one")
        self._noted_boot = self._boots

    # -- what it runs -------------------------------------------------------------------------

    def running(self) -> int:
        """Attempts that run; one that waits for what it called lends its slot."""
        return sum(
            not member.is_calling(host) for member in self.members for host in member.hosts.values()
        )

    def start(self, member: LaneWorker, dispatch: business.Dispatch) -> None:
        self._waiting.append((member, dispatch))
        self.start_waiting()
        if self._waiting:
            self.world.sometimes("an attempt waited for room")

    def start_waiting(self) -> None:
        if self.home.is_paused:  # a frozen process starts nothing
            return
        limit = self.home.config.slots if self.limits_starts else 1_000
        while self._waiting and self.running() < limit:
            member, dispatch = self._waiting.pop(0)
            member.start_host(dispatch)
            self._check_running()

    def take_back(self, key: AttemptKey) -> business.Dispatch | None:
        for index, (_, dispatch) in enumerate(self._waiting):
            if (dispatch.task_id, dispatch.attempt) == key:
                del self._waiting[index]
                return dispatch
        return None

    def _check_running(self) -> None:
        if self.running() > self.home.config.slots:
            raise Violation("I46", f"worker {self.number} runs {self.running()} attempts")

    # -- what must hold -----------------------------------------------------------------------

    def check_counted(self) -> None:
        counted = {one.lane: entry.slots for one in self.members if (entry := one.counted())}
        if sum(counted.values()) > self.home.config.slots:
            raise Violation("I46", f"the lanes of worker {self.number} count with {counted}")

    def starving(self) -> list[int]:
        """The lanes in which tasks wait for this worker although it has idle slots."""
        if self.slots is None or any(one.counted() is None for one in self.members):
            return []
        if self.running() + len(self._waiting) >= self.home.config.slots:
            return []
        return [one.lane for one in self.members if one.is_hungry()]


class LaneWorker(WorkerProcess):
    """The agent of one lane, on a machine that it shares with those of the others."""

    machine: Machine
    lane = HOME_LANE
    simulation: LaneSimulation

    # -- life: of the whole machine, whichever lane the nemesis takes it by ------------------

    def boot(self) -> None:
        self.machine.boot()

    def boot_lane(self) -> None:
        super().boot()

    def crash(self) -> None:
        self.machine.crash()

    def crash_lane(self) -> None:
        super().crash()

    def pause(self) -> None:
        for one in self.machine.members:
            one.is_paused = one.agent is not None

    def wake(self) -> None:
        for one in self.machine.members:
            WorkerProcess.wake(one)
        self.machine.start_waiting()

    def drain(self) -> None:
        for one in self.machine.members:
            WorkerProcess.drain(one)

    def _exit(self, code: int) -> None:
        if code:
            self.machine.crash()
        else:
            self.crash_lane()
        self.machine.left(self)

    def _identity(self) -> WorkerIdentity:
        return _of_lane(super()._identity(), self.lane)

    def _offer(self) -> RegisterOffer:
        offer = super()._offer()
        asked = offer.capabilities
        features = (*asked.features, "pkg.install", control.SEVERAL_LANES)
        return msgspec.structs.replace(
            offer,
            capabilities=msgspec.structs.replace(asked, features=features),
            packages=offer.packages + self.machine.packages,
            slots=self.machine.slots_of(self.lane),
        )

    # -- slots --------------------------------------------------------------------------------

    def _act(self, action: Any) -> None:
        super()._act(action)
        self.machine.on_word(self, action)

    def _after(self) -> None:
        super()._after()
        self.machine.on_held(self)

    def give_slots(self, slots: int) -> None:
        if self.agent is not None and not self.is_paused:
            self.agent.give_slots(slots, self.clock.now())
            self._after()

    def give_up_session(self) -> None:
        if self.agent is not None:
            self.agent.give_up_session(self.clock.now())
            self._after()

    def counted(self) -> WorkerEntry | None:
        """How the owner of the lane knows this worker, if both are connected."""
        scheduler = self.simulation.owner()
        if self.agent is None or not self.agent.session.is_ready or self._conn is None:
            return None
        if scheduler is None or scheduler.engine is None:
            return None
        entry = scheduler.engine.view.workers.find(self.tenant, self.worker_id)
        if entry is None or entry.session_id != self.agent.session.session_id:
            return None
        return entry if entry.is_connected else None

    def is_hungry(self) -> bool:
        """Whether tasks of the lane that this worker could run wait for one of its slots."""
        entry, scheduler = self.counted(), self.simulation.owner()
        if entry is None or scheduler is None or scheduler.engine is None:
            return False
        if entry.used < entry.slots or not entry.is_reachable:
            return False
        view = scheduler.engine.view
        return any(
            demand.only is None and entry.has_version(demand.package_name, demand.package_version)
            for demand in view.queue.sleeping_demands()
            if any(_is_live(view, one) for one in view.queue.first_of_runs(demand))
        )

    # -- hosts --------------------------------------------------------------------------------

    def is_calling(self, host: Host) -> bool:
        if self.agent is None:
            return False
        held = self.agent.attempts.find(host.task_id, host.attempt)
        return held is not None and bool(held.calls)

    def _start(self, dispatch: business.Dispatch) -> None:
        self.machine.start(self, dispatch)

    def start_host(self, dispatch: business.Dispatch) -> None:
        super()._start(dispatch)
        self.machine.cluster.check_key(self, dispatch)

    def _stop(self, task_id: str, attempt: int, grace_s: float) -> None:
        dispatch = self.machine.take_back((task_id, attempt))
        if dispatch is None:
            super()._stop(task_id, attempt, grace_s)
            return
        result = business.Result(
            dispatch.run_id, dispatch.task_id, attempt, "CANCELLED", msgspec.Raw(b"{}")
        )
        self.world.after(0.0, self._input, "finished", result)

    def _kill(self, task_id: str, attempt: int) -> None:
        self.machine.take_back((task_id, attempt))
        super()._kill(task_id, attempt)

    def _call_next(self, host: Host) -> None:
        super()._call_next(host)
        self.world.after(0.0, self.machine.start_waiting)

    def _end(self, host: Host) -> None:
        super()._end(host)
        self.world.after(0.0, self.machine.start_waiting)

    # -- packages -----------------------------------------------------------------------------

    def install(self, envelope: Any) -> None:
        install = envelope.payload
        if not isinstance(install, business.PkgInstall):
            return
        if self.lane != HOME_LANE:
            raise Violation("I49", f"lane {self.lane} has {install.name} installed")
        self.world.after(0.5, self._installed, install)

    def _installed(self, install: business.PkgInstall) -> None:
        if self.is_paused:  # a frozen process installs nothing
            self.world.after(0.5, self._installed, install)
            return
        package = control.RegisteredPackage(install.name, install.version, "installed")
        if package not in self.machine.packages:
            self.machine.packages = (*self.machine.packages, package)
        event = business.PkgEvent(install.name, install.version, "installed")
        self.tell(f"pkg/{install.name}/{install.version}", business.PKG_EVENT, event)
        for one in self.machine.members:
            one.reoffer()


def _of_lane(who: WorkerIdentity, lane: int) -> WorkerIdentity:
    return WorkerIdentity(
        who.tenant, who.worker_id, who.incarnation, who.name, who.version, who.hostname, lane
    )


def _is_live(view: Any, entry: Any) -> bool:
    return view.runs.find_waiting(entry.run_id, entry.task) is not None


class LaneClient(Client):
    """Submits the runs of its lane where the rules of lanes send them, once there are lanes."""

    simulation: LaneSimulation

    def start(self) -> None:
        for _ in range(self.config.runs):
            when = self.world.rng.random() * self.config.fault_phase_s * 0.7
            plan = draw_plan(self.world, self.config)
            if self.world.chance(0.15):
                plan = _with_package(plan)
            target, cluster = self, self.simulation.lanes
            if self.simulation.number != HOME_LANE:
                if needs_home(plan):
                    self.world.sometimes("a run with a key went home")
                    target = cluster.client_of(HOME_LANE)
                when = max(when, cluster.lanes_at + 0.1)
            target.take(when, plan)

    def take(self, when: float, plan: Plan) -> None:
        number = self.taken = getattr(self, "taken", -1) + 1
        self.unanswered += 1
        self.world.after(when, self._submit, number, plan, [False])


def _with_package(plan: Plan) -> Plan:
    """The first task needs a package that workers have to install."""
    name, version = EXTRA
    first = plan.nodes[0]
    if first.control is not None or first.host is not None:
        return plan
    node = msgspec.structs.replace(first, package_name=name, package_version=version)
    return msgspec.structs.replace(plan, nodes=(node, *plan.nodes[1:]))


class LaneProcess(ShardProcess):
    """What a node runs for one lane."""

    simulation: LaneSimulation

    def _serve(self) -> None:
        assert self.engine is not None
        self.learn_lanes()
        super()._serve()

    def wake(self) -> None:
        super().wake()
        self.learn_lanes()

    def learn_lanes(self) -> None:
        """The node has looked at the store."""
        if self.engine is None:
            return
        lanes, own = self.simulation.lanes, self.simulation.number
        if own == HOME_LANE and not lanes.has_appeared:
            return
        others = tuple(control.LanePlace(lane) for lane in range(1, len(lanes.shards)))
        told = TenantLanes(own, others)
        tenant = self.config.tenant_of(0)
        self.engine.set_lanes(tenant, told, self.clock.now(), self.clock.wall_ms())

    def pump(self) -> None:
        self._pump()


class LaneSimulation(ShardSimulation):
    """One lane with its engines; the agents of its workers."""

    scheduler_class = LaneProcess
    worker_class = LaneWorker
    client_class = LaneClient

    def __init__(self, config: Config, cluster: ClusterSimulation, number: int) -> None:
        self.lanes = cast("LanesSimulation", cluster)
        super().__init__(config, cluster, number)
        client = cast("LaneClient", self.client)
        client.simulation = self
        for scheduler in self.schedulers:
            cast("LaneProcess", scheduler).simulation = self
        for worker in self.workers:
            member = cast("LaneWorker", worker)
            member.lane, member.simulation = number, self
            member.keeping.take = member.install  # type: ignore[method-assign]
            member.machine = self.lanes.machine(worker.number)
            member.machine.members.append(member)

    def owner(self) -> SchedulerProcess | None:
        return self._scheduler()


class LanesSimulation(ClusterSimulation):
    """Some nodes, one tenant, some lanes."""

    shard_class = LaneSimulation

    def __init__(
        self, seed: int, configs: list[Config], nodes: int, *, keep_transcript: bool = False
    ) -> None:
        self.machines: dict[int, Machine] = {}
        self.has_appeared = False
        self._starving: dict[tuple[int, int], float] = {}
        super().__init__(seed, configs, nodes, keep_transcript=keep_transcript)
        late = self.world.rng.random() * 0.4 * configs[0].fault_phase_s
        self.lanes_at = 0.0 if self.world.chance(0.3) else late
        self.world.after(self.lanes_at, self._appear)
        self.world.after(EXCHANGE_S, self._exchange)

    def machine(self, number: int) -> Machine:
        if number not in self.machines:
            self.machines[number] = Machine(self, number)
        return self.machines[number]

    def client_of(self, lane: int) -> LaneClient:
        return cast("LaneClient", self.shards[lane].client)

    def _appear(self) -> None:
        self.has_appeared = True
        for process in self.shards[HOME_LANE].schedulers:
            home = cast("LaneProcess", process)
            if not home.is_paused:
                home.learn_lanes()
            if home.engine is not None:
                home.pump()

    def _exchange(self) -> None:
        """What `scheduler.lane_tending` does through the store."""
        home = self.shards[HOME_LANE]._scheduler()
        for shard in self.shards[1:]:
            owner = shard._scheduler()
            if owner is None or owner.engine is None or owner.is_paused:
                continue
            for package in owner.engine.ask.wanted():
                self._want(owner, home, package)
        self.world.after(EXCHANGE_S, self._exchange)

    def _want(
        self,
        owner: SchedulerProcess,
        home: SchedulerProcess | None,
        package: tuple[str, str, str],
    ) -> None:
        tenant, name, version = package
        assert owner.engine is not None
        if owner.engine.ask.has_packages(tenant, [(name, version)]):
            owner.engine.forget_want(package)
            return
        self.world.sometimes("a package was wanted by another lane")
        if home is None or home.engine is None or home.is_paused:
            return
        state = home.engine.ask.wanted_state(tenant, name, version)
        assert not isinstance(state, InstallProblem), "installs do not fail in these worlds"
        if state is None:
            home.execute(WantPackage(tenant=tenant, name=name, version=version))

    # -- what must hold -----------------------------------------------------------------------

    def check_key(self, member: LaneWorker, dispatch: business.Dispatch) -> None:
        if dispatch.concurrency_key is None:
            return
        for machine in self.machines.values():
            for other in machine.members:
                for host in other.hosts.values():
                    same = host.dispatch.concurrency_key == dispatch.concurrency_key
                    if same and host.is_alive and other.lane != member.lane:
                        raise Violation("I48", f"lanes {other.lane} and {member.lane} hold a key")

    def _check(self) -> bool:
        is_over = super()._check()
        for machine in self.machines.values():
            machine.check_counted()
            if self.shards[HOME_LANE].store.is_healed:
                self._check_fed(machine)
        return is_over

    def _check_fed(self, machine: Machine) -> None:
        starving = machine.starving()
        for lane in range(len(self.shards)):
            key = (machine.number, lane)
            if lane not in starving:
                self._starving.pop(key, None)
                continue
            since = self._starving.setdefault(key, self.world.now)
            if self.world.now - since > FED_S:
                raise Violation("I47", f"lane {lane} lacks slots of worker {machine.number}")


def draw_lanes(seed: int) -> tuple[list[Config], int]:
    """Two or three lanes with one config, because they share their workers; two or three nodes."""
    rng = World(seed).rng
    lanes, nodes = rng.randint(2, 3), rng.randint(2, 3)
    drawn = draw(seed * 17 + 5)
    faults = tuple(one for one in drawn.faults if one not in (*OF_NODES, *OF_FRAMES))
    config = drawn.shrink(
        faults=faults, tenants=1, gone=False, stored=False, pools=False, resources=False,
        packages=False, rollouts=False, removals=False, copies=False, pinned=False,
        missing_package=False, requests=False, ordered=True, is_tcp=True, loss=0.0, duplication=0.0,
        slots=rng.choice((1, 2, 3, 4, 8)),
    )  # fmt: skip
    return [config] * lanes, nodes


def simulate_lanes(
    seed: int, config: Config | None = None, *, keep_transcript: bool = False
) -> Outcome:
    """Run one seed to its end. `config`: that of every lane."""
    configs, nodes = draw_lanes(seed)
    if config is not None:
        configs = [config.shrink(is_tcp=True)] * len(configs)
    simulation = LanesSimulation(seed, configs, nodes, keep_transcript=keep_transcript)
    violation = violation_of(simulation.run)
    world = simulation.world
    timelines = [line for shard in simulation.shards for line in shard.timelines()]
    return Outcome(
        configs[0].shrink(seed=seed),
        violation,
        world.seen,
        world.digest(),
        sum(shard.checkers.attempts.executions for shard in simulation.shards),
        world.steps,
        timelines if violation is not None else [],
        world.transcript or [],
    )
