"""The host pool: runs attempts in hosts and reports their outcomes.

Rule 1: every attempt given to `start` ends with exactly one `finished`, or with one `gone` if `kill` was called for it.
Rule 2: events are reported on the loop's thread and never from inside a call of the pool's own methods.
Rule 3: an attempt that is cancelled before its host is ready is never started (P9).
Rule 4: a host ends by being killed, and its end is reported only when all its child processes are dead and all its
        output was reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.disk import DiskWatch
from astraflow.worker.hosts.exit_outcomes import HostDeath, failed, outcome_of
from astraflow.worker.hosts.feedback_buffer import FeedbackBuffer
from astraflow.worker.hosts.fleet import Fleet
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.hosts.secret_mask import masked_json
from astraflow.worker.hosts.settings import HostEvents, HostSpec, PoolSettings

if TYPE_CHECKING:
    from astraflow.worker.resources.broker import RegistryBroker

LOOK_S: Final = 0.25
"""Between two looks at all hosts: fences to move, memory, idle hosts, slow starts."""
CLOSE_TIMEOUT_S: Final = 15.0
"""For all hosts to be dead; only the kernel can hold them longer."""

AttemptKey = tuple[str, int]


def _nothing() -> None:
    """Nobody waits for the end of attempts and hosts."""


def _nothing_observed(duration_ms: int, node_type: str) -> None:
    """Nobody measures attempts."""


class HostStats(msgspec.Struct, frozen=True):
    """Numbers for the worker's metrics. `counters` names what went wrong, by kind."""

    hosts: int
    starting: int
    attempts: int
    waiting: int
    started_total: int
    died_total: int
    counters: dict[str, int]


class HostPool:
    """All hosts of a worker. Used on the thread of one running loop; `close` it before the loop ends."""

    def __init__(
        self,
        *,
        folder: Path,
        clock: Clock,
        settings: PoolSettings,
        packages: Callable[[str, str], HostSpec | None],
        events: HostEvents,
        broker: RegistryBroker,
        changed: Callable[[], None] = _nothing,
        observe_duration: Callable[[int, str], None] = _nothing_observed,
    ) -> None:
        """`changed` is called when an attempt or a host has ended: packages that are to be removed wait for it.
        `observe_duration` gets the milliseconds and the node type of every attempt that has ended.
        """
        self._clock = clock
        self._settings = settings
        self._events = events
        self._running: dict[AttemptKey, HostedAttempt] = {}
        self._broker = broker
        self._scratch = Scratch(folder)
        self._disk = DiskWatch(clock, settings.disk_bytes, self._broker.count_scratch)
        self._fleet = Fleet(self, folder, clock, settings, packages, self._refuse)
        self._teller = FeedbackBuffer(settings, clock, events.feedback)
        self._look_timer: asyncio.TimerHandle | None = None
        self._sampled_at = 0.0
        self._no_hosts: asyncio.Event | None = None
        self._is_closed = False
        self._changed = changed
        self._observe_duration = observe_duration
        self.counters: dict[str, int] = {}

    # -- inputs -----------------------------------------------------------------------------

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        """Run an attempt. Its host, which has attempts of that lane only, dies at `fence_at` (`clock.now()`), unless
        `refence` moves that."""
        running = HostedAttempt(dispatch, fence_at, self._clock.now(), lane)
        assert running.key not in self._running, "an attempt is started once"
        self._running[running.key] = running
        if self._broker.lease_for(running):
            self._fleet.place(running)
        else:
            self._later(self._end_unleased, running)
        if self._look_timer is None:
            self._look_later()

    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None:
        """Ask an attempt to end, and kill its host after the grace if it has not."""
        running = self._running.get((task_id, attempt))
        if running is None or running.grace_s is not None or running.is_killed:
            return
        running.grace_s = grace_s
        if self._take_back(running):
            return
        host = running.host
        assert host is not None
        host.send(frames.encode(frames.HostCancel(task_id, attempt, reason)))
        wait_s = max(grace_s, self._settings.min_grace_s)
        loop = asyncio.get_running_loop()
        running.grace_timer = loop.call_later(wait_s, self._on_grace_over, running)

    def kill(self, task_id: TaskId, attempt: int) -> None:
        """Kill an attempt's host at once; `gone` follows when it is dead."""
        running = self._running.get((task_id, attempt))
        if running is None:
            self._later(self._events.gone, task_id, attempt)
            return
        running.is_killed = True
        if not self._take_back(running):
            assert running.host is not None
            self._fleet.kill(running.host)

    def _take_back(self, running: HostedAttempt) -> bool:
        """End an attempt that has no host, or whose host is not ready: its handler never begins. Whether it is so."""
        host = running.host
        if host is not None and not host.take_back(running):
            return False
        if host is not None and host.is_own and host.spec.isolation == "attempt":
            self._fleet.kill(host)
        self._fleet.waiting.pop(running.key, None)
        self._later(self._end_unstarted, running)
        return True

    def answer(self, response: business.NextResponse) -> None:
        """Give the answer of a call to the attempt that made it."""
        running = self._running.get((response.task_id, response.attempt))
        if running is None or running.host is None:
            self.on_strange("answer that nobody waits for")
            return
        answer = frames.HostAnswer(
            response.task_id,
            response.attempt,
            response.request_id,
            response.result,
            response.error,
        )
        running.open_calls.discard(response.request_id)
        running.host.send(frames.encode(answer))

    def refence(self, fences: Mapping[AttemptKey, float]) -> None:
        """Move the fences of attempts; those that are not named keep theirs."""
        moved: dict[Host, None] = {}
        for key, fence_at in fences.items():
            running = self._running.get(key)
            if running is not None and running.fence_at != fence_at:
                running.fence_at = fence_at
                if running.host is not None:
                    moved[running.host] = None
        for host in moved:
            host.set_fence()

    def attempts_of(self, name: str, version: str) -> int:
        """How many attempts of a package version have not ended."""
        package = business.PackageId(name, version)
        return sum(running.dispatch.package == package for running in self._running.values())

    def hosts_of(self, name: str, version: str) -> int:
        return sum(
            (host.spec.name, host.spec.version) == (name, version) for host in self._fleet.hosts
        )

    def retire(self, name: str, version: str) -> None:
        """End the hosts of a package version, which has no attempts; `changed` is called when they are dead."""
        assert self.attempts_of(name, version) == 0, "nothing is taken from under an attempt"
        for host in list(self._fleet.hosts):
            if (host.spec.name, host.spec.version) == (name, version):
                self._fleet.kill(host)

    async def close(self) -> None:
        """Kill everything and wait until it is dead and reaped. What had not ended is told as `gone`.

        Raises:
            TimeoutError: the kernel does not let go of a host.
        """
        self._is_closed = True
        for running in list(self._running.values()):
            running.is_killed = True
            if running.host is None:
                self._end(running, None)
        for host in list(self._fleet.hosts):
            self._fleet.kill(host)
        if self._fleet.hosts:
            self._no_hosts = asyncio.Event()
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._no_hosts.wait()
        await self._disk.close()
        await self._scratch.wait_deleted()
        if self._look_timer is not None:
            self._look_timer.cancel()
        self._teller.close()

    def stats(self) -> HostStats:
        return HostStats(
            hosts=len(self._fleet.hosts),
            starting=self._fleet.starting,
            attempts=len(self._running),
            waiting=len(self._fleet.waiting),
            started_total=self._fleet.started_total,
            died_total=self._fleet.died_total,
            counters=dict(self.counters),
        )

    # -- what hosts say ---------------------------------------------------------------------

    def on_ready(self, host: Host) -> None:
        """It has loaded its package."""
        self._fleet.ready(host)

    def on_outcome(self, host: Host, running: HostedAttempt, outcome: frames.HostResult) -> None:
        """An attempt has ended: remove it from the host."""
        if running.is_killed:
            return  # Rule 4: it is gone when its host is, which is on its way
        host.remove(running)
        if not outcome.folder:
            running.folder = ""
        outcome = self._broker.judged(running, outcome)
        dispatch = running.dispatch
        result = business.Result(
            dispatch.run_id,
            dispatch.task_id,
            dispatch.attempt,
            outcome.status,
            outcome.result,
            outcome.artifacts,
            int((self._clock.now() - running.started_at) * 1000),
            outcome.metrics,
            outcome.error,
        )
        self._end(running, running.masked_result(result))
        if host.is_own:
            self._fleet.freed(host)

    def on_feedback(self, running: HostedAttempt, said: frames.HostFeedback) -> None:
        """An attempt says something."""
        self._teller.add(running, said)

    def on_lines(
        self, running: HostedAttempt, channel: str, lines: list[str], dropped: int
    ) -> None:
        """Lines were printed that can only be this attempt's."""
        self._teller.add_lines(running, channel, lines, dropped)

    def on_next(self, running: HostedAttempt, call: frames.HostNext) -> None:
        """An attempt calls the rest of its chain."""
        if running.is_killed:
            return
        request = business.NextRequest(
            running.dispatch.run_id,
            call.task_id,
            call.attempt,
            call.request_id,
            call.chain_index,
            masked_json(running.mask, call.payload),
            call.timeout_ms,
        )
        running.open_calls.add(call.request_id)
        self._events.call(request)
        if self._fleet.waiting:
            self._fleet.place_waiting()

    def on_resource(
        self,
        host: Host,
        running: HostedAttempt,
        frame: frames.HostRegister | frames.HostLease | frames.HostUse,
    ) -> None:
        """An attempt makes, wants or changes a resource."""
        if isinstance(frame, frames.HostRegister) and running.mask:
            frame = msgspec.structs.replace(
                frame, metadata=masked_json(running.mask, frame.metadata)
            )
        self._broker.on_frame(host, running, frame)

    def on_closed(self, host: Host, closed: frames.HostClosed) -> None:
        """An object that the host kept is closed."""
        self._broker.closed(host, closed)

    def on_strange(self, what: str) -> None:
        """Something came that should not have."""
        self.counters[what] = self.counters.get(what, 0) + 1

    def on_death(self, host: Host, death: HostDeath) -> None:
        """It is dead, and everything it has said has been told."""
        self._fleet.dead(host, death.is_failed_start)
        self._broker.host_gone(host)
        left = list(host.attempts.values())
        for running in left:
            self._end(running, outcome_of(running, death, len(left) == 1))
        self._scratch.discard(host.process.work_dir)
        if not self._fleet.hosts and self._no_hosts is not None:
            self._no_hosts.set()
        if not self._is_closed:
            self._fleet.place_waiting()
        self._changed()

    # -- ends -------------------------------------------------------------------------------

    def _end(self, running: HostedAttempt, result: business.Result | None) -> None:
        """Tell the end of an attempt, after everything it said."""
        del self._running[running.key]
        self._fleet.waiting.pop(running.key, None)
        if running.grace_timer is not None:
            running.grace_timer.cancel()
        self._teller.finish(running)
        self._broker.ended(running)
        if running.folder:
            self._scratch.discard(running.folder)
        if result is None:
            self._events.gone(*running.key)
        else:
            self._observe_duration(result.duration_ms, running.dispatch.node_type)
            self._events.finished(result)
        self._changed()

    def _end_unstarted(self, running: HostedAttempt) -> None:
        """An attempt that waited for a host is not wanted any more."""
        if self._running.get(running.key) is running:
            self._end(running, outcome_of(running, HostDeath(0, "ours"), True))

    def _end_unleased(self, running: HostedAttempt) -> None:
        """A resource that it needs is not to be had: its handler is not started."""
        if self._running.get(running.key) is running:
            assert running.refusal is not None
            self._end(running, None if running.is_killed else failed(running, running.refusal))

    def _refuse(self, running: HostedAttempt, code: errors.Code, message: str) -> None:
        """There can be no host for an attempt."""
        self._later(self._end_refused, running, code, message)

    def _end_refused(self, running: HostedAttempt, code: errors.Code, message: str) -> None:
        if self._running.get(running.key) is not running:
            return
        error = business.AttemptError(
            code.code, "INFRASTRUCTURE" if code.retryable else "CONFIGURATION", message
        )
        self._end(running, None if running.is_killed else failed(running, error))

    def _on_grace_over(self, running: HostedAttempt) -> None:
        assert running.host is not None
        running.is_overdue = True
        self.on_strange("killed after its grace")
        self._fleet.kill(running.host)

    # -- time -------------------------------------------------------------------------------

    def _look_later(self) -> None:
        self._look_timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._look_timer = None
        if self._is_closed:
            return
        now = self._clock.now()
        is_sampling = now >= self._sampled_at + self._settings.memory_sample_s
        if is_sampling:
            self._sampled_at = now
        self._fleet.look(now, is_sampling)
        self._disk.look(now, self._fleet.hosts)
        if self._fleet.hosts or self._fleet.waiting:
            self._look_later()

    def _later(self, call: Callable[..., None], *given: object) -> None:
        asyncio.get_running_loop().call_soon(call, *given)
