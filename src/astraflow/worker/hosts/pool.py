"""The pool: gives attempts to hosts, and tells how they ended.

Rule 1: every attempt given to `start` ends with exactly one `finished`, or with one `gone` if `kill` was called for it.
Rule 2: attempts of one package version share a host. An attempt has a host of its own when its package says so, or when
        it was lost before and so may be what kills hosts.
Rule 3: a host ends by being killed, and its end is told only when everything it started is dead and everything it said
        has been told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow import errors
from astraflow.clock import Clock
from astraflow.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.endings import Death, failed, outcome_of
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.running import PendingFeedback, Running
from astraflow.worker.hosts.settings import HostEvents, HostSettings, HostSpec

__all__ = ["HostPool", "HostStats"]

LOOK_S: Final = 0.25
"""Between two looks at all hosts: fences to move, memory, idle hosts, slow starts."""
MERGE_S: Final = 0.05
"""How long feedback waits for more of it."""
CLOSE_TIMEOUT_S: Final = 15.0
"""For all hosts to be dead; only the kernel can hold them longer."""

AttemptKey = tuple[str, int]


class HostStats(msgspec.Struct, frozen=True):
    """Numbers for the worker's metrics. `counters` names what went wrong, by kind."""

    hosts: int
    starting: int
    attempts: int
    waiting: int
    started_total: int
    died_total: int
    counters: dict[str, int]


class _Failure(msgspec.Struct):
    """A package that did not start: when it may be tried again."""

    times: int
    until: float


class HostPool:
    """All hosts of a worker. Used on the thread of one running loop; `close` it before the loop ends."""

    def __init__(
        self,
        *,
        folder: Path,
        clock: Clock,
        settings: HostSettings,
        packages: Callable[[str, str], HostSpec | None],
        events: HostEvents,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._settings = settings
        self._packages = packages
        self._events = events
        self._running: dict[AttemptKey, Running] = {}
        self._waiting: dict[AttemptKey, Running] = {}  # for a host; a part of `_running`
        self._hosts: dict[Host, None] = {}
        self._shared: dict[tuple[str, str], Host] = {}
        self._failures: dict[tuple[str, str], _Failure] = {}
        self._telling: dict[AttemptKey, Running] = {}
        self._merge_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        self._sampled_at = 0.0
        self._no_hosts: asyncio.Event | None = None
        self._is_closed = False
        self._started_total = 0
        self._died_total = 0
        self.counters: dict[str, int] = {}

    # -- inputs -----------------------------------------------------------------------------

    def start(self, dispatch: business.Dispatch, fence_at: float) -> None:
        """Run an attempt. Its host dies at `fence_at` (`clock.now()`), unless `refence` moves that."""
        running = Running(dispatch, fence_at, self._clock.now())
        assert running.key not in self._running, "an attempt is started once"
        self._running[running.key] = running
        self._place(running)

    def cancel(self, task_id: str, attempt: int, grace_s: float, reason: str) -> None:
        """Ask an attempt to end, and kill its host after the grace if it has not."""
        running = self._running.get((task_id, attempt))
        if running is None or running.grace_s is not None or running.is_killed:
            return
        running.grace_s = grace_s
        host = running.host
        if host is None:
            self._later(self._end_unstarted, running)
            return
        host.send(frames.encode(frames.CancelAttempt(task_id, attempt, reason)))
        wait_s = grace_s if len(host.attempts) == 1 else max(grace_s, self._settings.shared_grace_s)
        loop = asyncio.get_running_loop()
        running.grace_timer = loop.call_later(wait_s, self._on_grace_over, running)

    def kill(self, task_id: str, attempt: int) -> None:
        """Kill an attempt's host at once; `gone` follows when it is dead."""
        running = self._running.get((task_id, attempt))
        if running is None:
            self._later(self._events.gone, task_id, attempt)
            return
        running.is_killed = True
        if running.host is None:
            self._later(self._end_unstarted, running)
        else:
            running.host.kill("ours")

    def answer(self, response: business.NextResponse) -> None:
        """Give the answer of a call to the attempt that made it."""
        running = self._running.get((response.task_id, response.attempt))
        if running is None or running.host is None:
            self._count("answer that nobody waits for")
            return
        answer = frames.Answer(
            response.task_id,
            response.attempt,
            response.request_id,
            response.result,
            response.error,
        )
        running.host.send(frames.encode(answer))

    def refence(self, fences: Mapping[AttemptKey, float]) -> None:
        """Move the fences of attempts; those that are not named keep theirs."""
        moved: set[Host] = set()
        for key, fence_at in fences.items():
            running = self._running.get(key)
            if running is not None and running.fence_at != fence_at:
                running.fence_at = fence_at
                if running.host is not None:
                    moved.add(running.host)
        for host in moved:
            host.set_fence()

    async def close(self) -> None:
        """Kill everything and wait until it is dead and reaped. What had not ended is told as `gone`."""
        self._is_closed = True
        for running in list(self._running.values()):
            running.is_killed = True
            if running.host is None:
                self._end(running, None)
        for host in list(self._hosts):
            host.kill("ours")
        if self._hosts:
            self._no_hosts = asyncio.Event()
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._no_hosts.wait()
        for timer in (self._look_timer, self._merge_timer):
            if timer is not None:
                timer.cancel()

    def stats(self) -> HostStats:
        return HostStats(
            hosts=len(self._hosts),
            starting=sum(not host.is_ready for host in self._hosts),
            attempts=len(self._running),
            waiting=len(self._waiting),
            started_total=self._started_total,
            died_total=self._died_total,
            counters=dict(self.counters),
        )

    # -- giving attempts to hosts -----------------------------------------------------------

    def _place(self, running: Running) -> None:
        dispatch = running.dispatch
        spec = self._packages(dispatch.package.name, dispatch.package.version)
        if spec is None:
            name = f"{dispatch.package.name} {dispatch.package.version}"
            self._fail_later(running, errors.PKG_NOT_FOUND, f"this worker has no package: {name}")
            return
        is_own = spec.isolation == "attempt" or running.needs_own_host
        shared = None if is_own else self._shared.get((spec.name, spec.version))
        if shared is not None:
            shared.add(running)
        elif self._may_start(spec):
            self._start_host(spec, is_own, running)
        else:
            self._waiting[running.key] = running
            self._look_later()

    def _may_start(self, spec: HostSpec) -> bool:
        failure = self._failures.get((spec.name, spec.version))
        if failure is not None and self._clock.now() < failure.until:
            return False
        if len(self._hosts) < self._settings.max_hosts:
            return True
        idle = [host for host in self._shared.values() if not host.attempts]
        if idle:
            self._retire(min(idle, key=lambda host: host.idle_since))
        return False  # its place is free when it is dead

    def _start_host(self, spec: HostSpec, is_own: bool, running: Running) -> None:
        loop = asyncio.get_running_loop()
        try:
            host = Host(spec, is_own, self, self._settings, self._folder, self._clock, loop)
        except OSError as problem:
            self._note_failure(spec)
            self._fail_later(running, errors.RUNNER_CRASHED, f"no host can be started: {problem}")
            return
        self._started_total += 1
        self._hosts[host] = None
        if not is_own:
            self._shared[spec.name, spec.version] = host
        host.add(running)
        self._look_later()

    def _place_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for running in waiting.values():
            self._place(running)

    def _retire(self, host: Host) -> None:
        """No attempt is given to it any more."""
        key = (host.spec.name, host.spec.version)
        if self._shared.get(key) is host:
            del self._shared[key]
        host.stop()

    def _note_failure(self, spec: HostSpec) -> None:
        failure = self._failures.setdefault((spec.name, spec.version), _Failure(0, 0.0))
        delay_s = self._settings.start_backoff_s * 2.0**failure.times
        failure.until = self._clock.now() + min(delay_s, self._settings.start_backoff_max_s)
        failure.times += 1

    # -- what hosts say ---------------------------------------------------------------------

    def on_ready(self, host: Host) -> None:
        self._failures.pop((host.spec.name, host.spec.version), None)

    def on_outcome(self, host: Host, running: Running, outcome: frames.Outcome) -> None:
        if host.is_own:
            self._retire(host)
        if running.is_killed:
            # Rule 3: it is gone when its host is, which is on its way.
            host.attempts[running.key] = running
            return
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
        self._end(running, result)

    def on_feedback(self, running: Running, said: frames.Feedback) -> None:
        self._pending(running).add(said, self._clock.now())
        self._tell_soon(running)

    def on_lines(self, running: Running, channel: str, lines: list[str], dropped: int) -> None:
        self._pending(running).add_lines(channel, lines, dropped, self._clock.now())
        self._tell_soon(running)

    def on_next(self, running: Running, call: frames.Next) -> None:
        if running.is_killed:
            return
        request = business.NextRequest(
            running.dispatch.run_id,
            call.task_id,
            call.attempt,
            call.request_id,
            call.chain_index,
            call.payload,
            call.timeout_ms,
        )
        self._events.call(request)

    def on_strange(self, what: str) -> None:
        self._count(what)

    def on_death(self, host: Host, death: Death) -> None:
        self._died_total += 1
        del self._hosts[host]
        if self._shared.get((host.spec.name, host.spec.version)) is host:
            del self._shared[host.spec.name, host.spec.version]
        if not host.is_ready and death.cause != "ours":
            self._note_failure(host.spec)
        left = list(host.attempts.values())
        for running in left:
            self._end(running, outcome_of(running, death, len(left) == 1))
        if not self._hosts and self._no_hosts is not None:
            self._no_hosts.set()
        if not self._is_closed:
            self._place_waiting()

    # -- ends -------------------------------------------------------------------------------

    def _end(self, running: Running, result: business.Result | None) -> None:
        """Tell the end of an attempt, after everything it said."""
        del self._running[running.key]
        self._waiting.pop(running.key, None)
        if running.grace_timer is not None:
            running.grace_timer.cancel()
        if running.feedback is not None:
            self._telling.pop(running.key, None)
            self._tell(running)
        if result is None:
            self._events.gone(*running.key)
        else:
            self._events.finished(result)

    def _end_unstarted(self, running: Running) -> None:
        """An attempt that waited for a host is not wanted any more."""
        if self._running.get(running.key) is not running:
            return
        if running.host is not None:
            running.host.kill("ours")  # it got one meanwhile
            return
        self._end(running, outcome_of(running, Death(0, "ours"), True))

    def _fail_later(self, running: Running, code: errors.Code, message: str) -> None:
        category: Any = "INFRASTRUCTURE" if code.retryable else "CONFIGURATION"
        result = failed(running, business.TaskError(code.code, category, message))
        self._later(self._end_if_there, running, result)

    def _end_if_there(self, running: Running, result: business.Result) -> None:
        if self._running.get(running.key) is running:
            self._end(running, None if running.is_killed else result)

    def _on_grace_over(self, running: Running) -> None:
        if running.host is None or running.is_killed:
            return
        running.is_overdue = True
        self._count("killed after its grace")
        running.host.kill("ours")

    # -- feedback ---------------------------------------------------------------------------

    def _pending(self, running: Running) -> PendingFeedback:
        if running.feedback is None:
            running.feedback = PendingFeedback(self._settings, self._clock.now())
        return running.feedback

    def _tell_soon(self, running: Running) -> None:
        assert running.feedback is not None
        if running.feedback.is_full:
            self._telling.pop(running.key, None)
            self._tell(running)
            return
        self._telling[running.key] = running
        if self._merge_timer is None:
            loop = asyncio.get_running_loop()
            self._merge_timer = loop.call_later(MERGE_S, self._tell_all)

    def _tell_all(self) -> None:
        self._merge_timer = None
        telling, self._telling = self._telling, {}
        for running in telling.values():
            self._tell(running)

    def _tell(self, running: Running) -> None:
        assert running.feedback is not None
        feedback = running.feedback.take(running.dispatch)
        if feedback is not None and not running.is_killed:
            self._events.feedback(feedback)

    # -- looking after hosts ----------------------------------------------------------------

    def _look_later(self) -> None:
        if self._look_timer is None and not self._is_closed:
            self._look_timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._look_timer = None
        now = self._clock.now()
        is_sampling = now >= self._sampled_at + self._settings.memory_sample_s
        if is_sampling:
            self._sampled_at = now
        for host in list(self._hosts):
            host.set_fence()
            self._look_at(host, now, is_sampling)
        if self._waiting:
            self._place_waiting()
        if self._hosts or self._waiting:
            self._look_later()

    def _look_at(self, host: Host, now: float, is_sampling: bool) -> None:
        settings = self._settings
        limit = host.spec.memory_limit_bytes
        if host.is_ending:
            return
        if not host.is_ready:
            if now >= host.started_at + settings.start_timeout_s:
                host.kill("late", f"{settings.start_timeout_s} s")
        elif not host.attempts and now >= host.idle_since + settings.idle_timeout_s:
            self._retire(host)
        elif limit is not None and is_sampling:
            held = host.process.rss_bytes()
            if held > limit:
                host.kill("memory", f"{held} bytes, allowed are {limit}")

    def _later(self, call: Callable[..., None], *given: object) -> None:
        """Events are never told from inside a call of the caller's."""
        asyncio.get_running_loop().call_soon(call, *given)

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1
