"""HTTP pools of a simulated world: pushes and callbacks that are lost, doubled, late and out of order.

An invocation is the kit of the SDK as events: nothing runs before `started` is answered, heartbeats extend its right to
run, past its fence it stops. Its machine may die at any moment and tells nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import ConfigurePool, RefusePush
from astraflow.core.engine.effects import SendDispatch
from astraflow.core.fleet.pools import PoolPackage, PoolRecord
from astraflow.core.protocol import business
from astraflow.core.runs.callbacks import (
    Beat,
    Callback,
    CallbackAnswer,
    Completed,
    Started,
    judge,
)
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.transitions import replay
from tests.sim.clock import Clock
from tests.sim.config import POOL_SLOTS, TENANTS
from tests.sim.edges import edge

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.checkers import Checkers
    from tests.sim.config import Config
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["POOL", "Invocation", "Pools"]

POOL = "functions"
LABELS = (("pool", POOL),)
TRIES = 3
RETRY_S = 0.5
ANSWER_S = 1.0

Answer = CallbackAnswer | errors.AstraflowError | None
"""None: there was none in time."""


def record_of(tenant: str) -> PoolRecord:
    return PoolRecord(
        tenant=tenant,
        name=POOL,
        url="sim://functions",
        packages=(PoolPackage("sim"),),
        max_parallel=POOL_SLOTS,
        start_timeout_s=4.0,
        heartbeat_interval_s=1.0,
        heartbeat_timeout_s=5.0,
        cancel_grace_s=1.0,
    )


class Site:
    """A pool as the checkers know a worker."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.worker_id = f"pool/{POOL}"
        self.name = f"{tenant}/{self.worker_id}"
        self.incarnation = 0
        self.ready_at = 0.0


class Pools:
    """All pools of a world, and the way to them and back."""

    def __init__(
        self,
        world: World,
        config: Config,
        store: Store,
        checkers: Checkers,
        schedulers: Callable[[], SchedulerProcess | None],
    ) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.checkers = checkers
        self.schedulers = schedulers
        self.sites = {tenant: Site(tenant) for tenant in TENANTS}
        self.running: dict[str, Invocation] = {}
        self._pushes: dict[tuple[str, int], int] = {}  # the life of the scheduler that makes it

    def start(self) -> None:
        """An operator makes the pools, and asks until they are there."""
        if not self.config.pools:
            return
        missing = [
            tenant
            for tenant in TENANTS[: self.config.tenants]
            if (tenant, POOL) not in self.store.pools
        ]
        scheduler = self.schedulers()
        for tenant in missing if scheduler is not None else ():
            assert scheduler is not None
            scheduler.execute(ConfigurePool(tenant=tenant, pool=record_of(tenant)))
        if missing:
            self.world.after(1.0, self.start)

    # -- pushes -----------------------------------------------------------------------------

    def push(self, scheduler: SchedulerProcess, effect: SendDispatch) -> None:
        key = (effect.dispatch.task_id, effect.dispatch.attempt)
        if self._pushes.get(key) == scheduler.life:
            return
        self._pushes[key] = scheduler.life
        self._try(scheduler, scheduler.life, effect, 0, False)

    def end(self, task_id: str, attempt: int) -> None:
        self._pushes.pop((task_id, attempt), None)

    def _try(
        self,
        scheduler: SchedulerProcess,
        life: int,
        effect: SendDispatch,
        tries: int,
        has_left: bool,
    ) -> None:
        dispatch = effect.dispatch
        key = (dispatch.task_id, dispatch.attempt)
        if scheduler.life != life or scheduler.is_dead or self._pushes.get(key) != life:
            return
        is_lost = self._is_lost()
        if not is_lost:
            has_left = True
            for _ in range(2 if self._is_doubled() else 1):
                self.world.after(self._delay(4.0), self._deliver, effect)
        if is_lost or self._is_lost():  # the push, or its answer
            if tries + 1 >= TRIES and not has_left:
                self.checkers.seen("push given back")
                assert isinstance(effect.channel, PoolRecord)
                scheduler.execute(
                    RefusePush(
                        tenant=effect.channel.tenant,
                        task_id=dispatch.task_id,
                        attempt=dispatch.attempt,
                        code=errors.DISPATCH_PUSH_REFUSED.code,
                        message="cannot connect",
                    )
                )
                return
            pause_s = RETRY_S * (1 + self.world.rng.random())
            self.world.after(pause_s, self._try, scheduler, life, effect, tries + 1, has_left)

    def _deliver(self, effect: SendDispatch) -> None:
        pool = effect.channel
        assert isinstance(pool, PoolRecord)
        Invocation(self, effect.dispatch, pool).begin()

    # -- callbacks --------------------------------------------------------------------------

    def report(self, callback: Callback) -> None:
        """On its way to the scheduler."""
        if self._is_lost():
            return
        for _ in range(2 if self._is_doubled() else 1):
            self.world.after(self._delay(2.0), self._arrive, callback)

    def _arrive(self, callback: Callback) -> None:
        scheduler = self.schedulers()
        if scheduler is not None:
            scheduler.callback(callback)

    def answer(self, heard: Callable[[Answer], None], answer: Answer) -> None:
        """On its way back."""
        if not self._is_lost():
            self.world.after(self._delay(1.0), heard, answer)

    def judge_ended(self, callback: Callback) -> Answer:
        """As the shell does: the run is not active."""
        stored = self.store.runs.get(callback.run_id)
        if stored is None:
            return errors.NotFound(errors.TASK_NOT_FOUND, errors.TASK_NOT_FOUND.says)
        run = replay(stored.plan, stored.bare_facts())
        for index in range(len(run.tasks)):
            if run.task_id(index) == callback.task_id:
                try:
                    return judge(run, index, callback)
                except errors.Conflict as refused:
                    return refused
        return errors.NotFound(errors.TASK_NOT_FOUND, errors.TASK_NOT_FOUND.says)

    # -- chance -----------------------------------------------------------------------------

    def _is_lost(self) -> bool:
        return not self.store.is_healed and self.world.chance(self.config.loss)

    def _is_doubled(self) -> bool:
        return not self.store.is_healed and self.world.chance(self.config.duplication)

    def _delay(self, times: float) -> float:
        mean = 0.005 if self.store.is_healed else self.config.delay_s * times
        return self.world.delay(mean)

    def dies(self) -> bool:
        """Whether the machine of an invocation is one of those that die."""
        may_die = self.config.has("worker_crash") or self.config.has("host_crash")
        return may_die and not self.store.is_healed and self.world.chance(0.15)


class Invocation:
    """One delivery of one attempt."""

    fence_ratio = 0.6  # planted: pushfence

    def __init__(self, pools: Pools, dispatch: business.Dispatch, pool: PoolRecord) -> None:
        self.pools = pools
        self.world = pools.world
        self.dispatch = dispatch
        self.pool = pool
        self.worker_id = self.world.new_id()
        drift = pools.config.drift
        rng = self.world.rng
        self.clock = Clock(self.world, 1 + drift * (2 * rng.random() - 1), rng.random() * 1000)
        self.is_running = False
        self.is_dead = False
        self.is_stopping = False
        self._fence_at = 0.0

    # -- reports ----------------------------------------------------------------------------

    def _send(
        self,
        make: Callable[..., Callback],
        until: float,
        heard: Callable[[Answer, float], None],
        **more: Any,
    ) -> None:
        """Report until there is an answer, or it is `until` by its own clock."""
        if self.is_dead:
            return
        sent_at = self.clock.now()
        if sent_at >= until:
            heard(None, sent_at)
            return
        is_answered = [False]

        def hear(answer: Answer) -> None:
            if not is_answered[0] and not self.is_dead:
                is_answered[0] = True
                heard(answer, sent_at)

        def again() -> None:
            if not is_answered[0] and not self.is_dead:
                is_answered[0] = True  # what comes later is not waited for
                self._send(make, until, heard, **more)

        dispatch = self.dispatch
        self.pools.report(
            make(
                token=lambda answer: self.pools.answer(hear, answer),
                tenant=self.pool.tenant,
                run_id=dispatch.run_id,
                task_id=dispatch.task_id,
                token_attempt=dispatch.attempt,
                attempt=dispatch.attempt,
                attempt_id=None,
                worker_id=self.worker_id,
                **more,
            )
        )
        self.world.after(ANSWER_S, again)

    def begin(self) -> None:
        until = self.clock.now() + self.fence_ratio * self.pool.heartbeat_timeout_s
        self._send(Started, until, self._started)

    def _started(self, answer: Answer, sent_at: float) -> None:
        self._extend(sent_at)
        if not isinstance(answer, CallbackAnswer) or self.clock.now() >= self._fence_at:
            self.is_dead = True
            return
        pools = self.pools
        pools.checkers.seen("pool attempt started")
        pools.checkers.attempt_started(pools.sites[self.pool.tenant], self.dispatch)
        self.is_running = True
        pools.running[self.worker_id] = self
        self._watch_fence()
        self._beat()
        if pools.dies():
            self.world.after(self.world.delay(1.0), self._die)
        self._execute()

    def _extend(self, sent_at: float) -> None:
        right_s = self.fence_ratio * self.pool.heartbeat_timeout_s
        self._fence_at = max(self._fence_at, sent_at + right_s)

    def _watch_fence(self) -> None:
        if not self.is_running:
            return
        left_s = self._fence_at - self.clock.now()
        if left_s <= 0:
            self.pools.checkers.seen("pool attempt fenced")
            self._end()
            self.is_dead = True
            return
        self.world.at(self.clock.true_time(self._fence_at) + 1e-6, self._watch_fence)

    def _beat(self) -> None:
        if self.is_running:
            progress = self.world.rng.random() if self.world.chance(0.3) else None
            self._send(Beat, self._fence_at, self._beaten, progress=progress)

    def _beaten(self, answer: Answer, sent_at: float) -> None:
        if not self.is_running or answer is None:
            return  # the fence ends it
        if isinstance(answer, errors.AstraflowError):
            self._end()
            self.is_dead = True
            return
        self._extend(sent_at)
        if answer.should_cancel and not self.is_stopping:
            self.pools.checkers.seen("pool attempt told to stop")
            self.is_stopping = True
            # Some take longer than their grace.
            self.world.after(self.world.rng.random() * 1.5, self._finish, "CANCELLED")
        self.world.after(self.pool.heartbeat_interval_s * 0.9, self._beat)

    # -- the handler ------------------------------------------------------------------------

    def _execute(self) -> None:
        rng, kind = self.world.rng, self.dispatch.node_type
        if kind in ("sim.hang", "sim.endless"):
            return
        seconds = rng.expovariate(1 / 0.3)
        if kind == "sim.slow":
            seconds = 1.0 + rng.random() * 5
        if kind == "sim.long":
            seconds = 8.0 + rng.random() * 18
        status = "SUCCEEDED"
        if kind == "sim.fail" or (kind in ("sim.flaky", "sim.crash") and rng.random() < 0.5):
            status = "FAILED"
        self.world.after(seconds, self._finish, status)

    def _finish(self, status: str) -> None:
        if not self.is_running:
            return
        self._end()
        dispatch = self.dispatch
        value = {
            "v": [dispatch.task_id, dispatch.attempt],
            "edge": edge(dispatch.task_id, dispatch.attempt),
        }
        more: dict[str, Any] = {"outcome": status}
        if status == "SUCCEEDED":
            more["output"] = msgspec.Raw(msgspec.json.encode(value))
        elif status == "FAILED":
            more["error"] = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "it failed")
        result = business.Result(
            dispatch.run_id,
            dispatch.task_id,
            dispatch.attempt,
            status,  # type: ignore[arg-type]
        )

        def heard(answer: Answer, _: float) -> None:
            if isinstance(answer, CallbackAnswer):
                attempts = self.pools.checkers.attempts
                attempts.on_result_acked(dispatch.task_id, dispatch.attempt, result)

        self._send(Completed, self.clock.now() + 30.0, heard, **more)

    def _die(self) -> None:
        if self.is_running:
            self.pools.checkers.seen("pool machine died")
            self._end()
        self.is_dead = True

    def _end(self) -> None:
        self.is_running = False
        self.pools.running.pop(self.worker_id, None)
        self.pools.checkers.attempt_ended(self.dispatch.task_id, self.dispatch.attempt)
