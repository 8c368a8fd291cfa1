"""One seed: build its world, break it, heal it, demand that everything ends, and read it all back.

Phases: faults; heal; liveness (every accepted run is terminal within a bound, and the world
comes to rest); reopen (fold what is stored, and compare with what was told).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

from astraflow.core.engine.commands import ForgetWorker
from astraflow.core.runs import scope_rules
from astraflow.core.runs.facts import Fact
from astraflow.core.runs.projections import node_status
from astraflow.core.runs.timeline import task_timeline
from astraflow.core.runs.transitions import replay
from tests.sim.checkers import Checkers
from tests.sim.clock import Clock
from tests.sim.config import Config, draw
from tests.sim.nemesis import Nemesis
from tests.sim.network import Network
from tests.sim.operator import Operator
from tests.sim.pools import Pools
from tests.sim.scheduler import SchedulerProcess
from tests.sim.store import Store
from tests.sim.waits import People
from tests.sim.worker import WorkerProcess
from tests.sim.workload import Client, Reader
from tests.sim.world import Violation, World

__all__ = ["Outcome", "Simulation", "outcome_of", "run_until_rest", "simulate", "violation_of"]

LIVENESS_S = 140.0
PROGRESS_S = 45.0
"""A world that is still busy at the end of the bound may go on while something is committed at least this
often: longer than the longest task and a lease. A world that is stuck commits nothing."""
LONGEST_S = 2_000.0
FORGET_S = 200.0
"""A session that nobody resumes has ended by then."""
CHECK_EVERY_STEPS = 64
STORED_BYTES = 40
"""What a map may return inline in worlds in which it stores the rest: no more than one small item."""


@dataclass
class Outcome:
    """What a seed came to."""

    config: Config
    violation: Violation | None
    seen: dict[str, int]
    digest: str
    executions: int
    steps: int
    timelines: list[str] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)


def run_until_rest(
    world: World, simulations: Sequence[Simulation], until: float, check: Callable[[], bool]
) -> None:
    """Let time pass until everything has ended, or, from a moment on, nothing moves any more. Raises: Violation."""
    moved_at, commits = world.now, -1
    while not all(one.is_at_rest() for one in simulations):
        world.run_until(world.now + 2.0, stop=check, every=CHECK_EVERY_STEPS)
        if (seen := sum(one.store.commits for one in simulations)) != commits:
            moved_at, commits = world.now, seen
        is_moving = world.now - moved_at < PROGRESS_S and world.now - until < LONGEST_S
        if world.now > until and not is_moving:
            break


class Simulation:
    """The world of one configuration."""

    store_class: type[Store] = Store
    scheduler_class: type[SchedulerProcess] = SchedulerProcess
    worker_class: type[WorkerProcess] = WorkerProcess
    client_class: type[Client] = Client

    def __init__(
        self, config: Config, *, keep_transcript: bool = False, world: World | None = None
    ) -> None:
        """`world`: one that several shards share."""
        self.config = config
        self.world = world or World(config.seed, keep_transcript=keep_transcript)
        self.network = Network(self.world, config)
        self.store = self.store_class(self.world, config)
        self.checkers = Checkers(self.world, config, self.store)
        self.schedulers = self._make_schedulers()
        self.workers = [
            self.worker_class(
                self.world,
                config,
                number,
                self.network,
                self.checkers,
                self._clock(),
                self._scheduler,
            )
            for number in range(config.workers)
        ]
        self.client = self.client_class(
            self.world, config, self.store, self.checkers, self._scheduler
        )
        self.pools = Pools(self.world, config, self.store, self.checkers, self._scheduler)
        for scheduler in self.schedulers:
            scheduler.pools = self.pools
        self.operator = Operator(self.world, config, self._scheduler)
        self.people = People(self.world, config, self.store, self._scheduler)
        self.checkers.rollouts.workers = self.workers
        self.checkers.rollouts.serving = self._scheduler
        self.reader = Reader(self.world, self.store, self.checkers)
        self.nemesis = Nemesis(
            self.world, config, self.network, self.store, self.schedulers, self.workers
        )
        self._turn = 0

    def _make_schedulers(self) -> list[SchedulerProcess]:
        config = self.config
        count = 2 if config.has("takeover") or config.has("store_split") else 1
        return [self._scheduler_named(f"sched-{number}") for number in range(count)]

    def _scheduler_named(self, name: str) -> SchedulerProcess:
        return self.scheduler_class(
            self.world,
            self.config,
            name,
            self.store,
            self.network,
            self.checkers,
            self._clock(),
        )

    def _clock(self) -> Clock:
        drift = self.config.drift
        rng = self.world.rng
        return Clock(self.world, 1 + drift * (2 * rng.random() - 1), rng.random() * 1000)

    def _scheduler(self) -> SchedulerProcess | None:
        """Where a new connection goes: the owner, if it listens."""
        for one in self.schedulers:
            if one.engine is not None and one.engine.ownership.epoch == self.store.epoch:
                return None if one.is_dead else one
        return None

    def run(self) -> None:
        """Raises: Violation."""
        limit = STORED_BYTES if self.config.stored else scope_rules.MAX_COLLECTED_BYTES
        with patch.object(scope_rules, "MAX_COLLECTED_BYTES", limit):
            self._run()

    def begin(self) -> None:
        """Start everything."""
        world = self.world
        for number, scheduler in enumerate(self.schedulers):
            world.after(number * 0.1, scheduler.start)
        for worker in self.workers:
            world.after(world.rng.random(), worker.boot)
        self.client.start()
        self.operator.start()
        self.people.start()
        self.pools.start()
        self.reader.read()
        self.nemesis.start()

    def _run(self) -> None:
        world = self.world
        self.begin()
        world.run_until(self.config.fault_phase_s, stop=self.check, every=CHECK_EVERY_STEPS)
        self.nemesis.heal()
        run_until_rest(world, [self], world.now + LIVENESS_S, self.check)
        self.finish()

    def finish(self) -> None:
        """Demand that everything has ended, and read it all back. Raises: Violation."""
        self._check_liveness()
        self._forget_gone()
        self._reopen()

    def check(self) -> bool:
        """All schedulers and one worker in turn; never a reason to stop by itself."""
        self._turn += 1
        worker = self.workers[self._turn % len(self.workers)]
        self.checkers.check_all(self.schedulers, [worker])
        return False

    # -- liveness ---------------------------------------------------------------------------

    def is_at_rest(self) -> bool:
        return self._what_is_open() is None and self._what_is_held() is None

    def _what_is_held(self) -> tuple[str, str] | None:
        """Of resources and packages: the invariant that does not hold yet, and how."""
        config, checkers = self.config, self.checkers
        serving = self._scheduler()
        view = serving.engine.view if serving is not None and serving.engine is not None else None
        trouble = None
        if config.resources or config.packages or config.rollouts:
            trouble = checkers.resources.trouble(view, self.workers)
        return trouble or (checkers.rollouts.trouble(view) if config.rollouts else None)

    def _what_is_open(self) -> str | None:
        if self.client.unanswered:
            return f"{self.client.unanswered} submissions are not answered"
        for run_id, run in self.store.runs.items():
            if not run.is_finished:
                return f"run {run_id} has not ended"
        for scheduler in self.schedulers:
            if scheduler.engine is not None and len(scheduler.engine.view.leases):
                return f"{scheduler.name} holds leases of ended runs"
        if self.pools.running:
            return f"a pool still runs {len(self.pools.running)} attempts"
        for worker in self.workers:
            if worker.hosts:
                return f"{worker.worker_id} still runs {list(worker.hosts)}"
            if worker.agent is not None and not worker.agent.attempts.is_empty:
                return f"{worker.worker_id} still holds {worker.agent.attempts.named()}"
        return None

    def _check_liveness(self) -> None:
        what = self._what_is_open()
        if what is not None:
            raise Violation("I24", what)
        held = self._what_is_held()
        if held is not None:
            raise Violation(*held)

    def _forget_gone(self) -> None:
        """A worker that never comes back is forgotten when its time is over, and all that it kept with it."""
        for worker in [one for one in self.workers if one.is_gone]:
            until = self.world.now + FORGET_S
            while self._knows(worker):
                if self.world.now > until:
                    raise Violation("I24", f"{worker.name} is gone and cannot be forgotten")
                scheduler = self._scheduler()
                if scheduler is not None:
                    scheduler.execute(
                        ForgetWorker(tenant=worker.tenant, worker_id=worker.worker_id)
                    )
                self.world.run_until(self.world.now + 5.0)
            trouble = self.checkers.resources.trouble_of_forgotten(worker.tenant, worker.worker_id)
            if trouble is not None:
                raise Violation(*trouble)
            self.checkers.seen("worker forgotten")

    def _knows(self, worker: WorkerProcess) -> bool:
        scheduler = self._scheduler()
        if scheduler is None or scheduler.engine is None:
            return True
        return scheduler.engine.view.workers.find(worker.tenant, worker.worker_id) is not None

    def timelines(self) -> list[str]:
        """The timelines of the tasks that did not end, for the report of a failure."""
        lines = []
        for run_id, run in self.store.runs.items():
            if run.is_finished:
                continue
            folded = replay(run.plan, run.bare_facts())
            for index, task in enumerate(folded.tasks):
                if not task.is_terminal:
                    lines.append(f"{run_id}.{index} is {task.state!r}")
                    lines += [f"  {line}" for line in task_timeline(run.bare_facts(), index)]
        return lines

    # -- reopen -----------------------------------------------------------------------------

    def _reopen(self) -> None:
        """Fold the stored facts afresh, and compare with what readers saw and clients were told."""
        for _ in range(2):
            self.reader.read()
        for run_id, stored in self.store.runs.items():
            facts: list[Fact] = stored.bare_facts()
            run = replay(stored.plan, facts)
            run.check()
            seen = self.reader.statuses[run_id]
            if seen["run"] != run.status:
                raise Violation("I20", f"{run_id} is {run.status}, readers saw {seen['run']}")
            for index, node in enumerate(run.plan.nodes):
                task, node_id = run.tasks[index], node.node_id
                if node.host is not None:
                    continue  # a middleware is shown by its calls
                if seen.get(node_id) != node_status(task):
                    raise Violation(
                        "I20", f"{run_id}.{index} is {node_status(task)}, not {seen.get(node_id)}"
                    )
        for run_id in self.checkers.accepted:
            if run_id not in self.store.runs:
                raise Violation("I7", f"run {run_id} was acknowledged and is gone")
        for scheduler in self.schedulers:
            if scheduler.engine is not None:
                self.checkers.scheduler_gone(scheduler)
        for worker in self.workers:
            if worker.agent is not None:
                self.checkers.worker_gone(worker)


def simulate(seed: int, config: Config | None = None, *, keep_transcript: bool = False) -> Outcome:
    """Run one seed to its end."""
    return outcome_of(Simulation(config or draw(seed), keep_transcript=keep_transcript))


def violation_of(run: Callable[[], None]) -> Violation | None:
    """Run a world to its end; what it has broken."""
    try:
        run()
    except Violation as broken:
        return broken
    except Exception as broken:
        # An assertion of the product, an object's own `check`, or any other way to fall over.
        violation = Violation("crash", f"{type(broken).__name__}: {broken}"[:500])
        violation.__cause__ = broken
        return violation
    return None


def outcome_of(simulation: Simulation) -> Outcome:
    """Run a world to its end, and say what it came to."""
    violation = violation_of(simulation.run)
    world = simulation.world
    return Outcome(
        simulation.config,
        violation,
        world.seen,
        world.digest(),
        simulation.checkers.attempts.executions,
        world.steps,
        simulation.timelines() if violation is not None else [],
        world.transcript or [],
    )
