"""One host: its process, its attempts and its fence. It reports events to its owner."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol.business import AttemptError
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.exit_outcomes import Cause, HostDeath
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from astraflow.worker.hosts.process import EXIT_FENCED, HostProcess
from astraflow.worker.hosts.settings import HostSpec, PoolSettings

if TYPE_CHECKING:
    from astraflow.worker.hosts.pool import HostPool

FENCE_SLACK_S: Final = 1.0
"""A fence that is nearer than this is moved at once; a farther one is left to the next look, so that the guard is not
woken for every attempt. An armed fence is never later than the earliest of the attempts."""
STOP_GRACE_S: Final = 2.0
"""For what a package does at the end of its process."""
STRANGE_FRAMES: Final = 1000
"""Frames of no attempt in that host, or that are none: more are no accident."""
STACK_CHARS: Final = 16 * 1024

_ANSWERED: Final = frozenset({"result", "next", "register", "use"})
"""Frames whose attempt hears of it when they cannot be read."""


class Host:
    """Runs attempts of one package version."""

    def __init__(
        self,
        spec: HostSpec,
        is_own: bool,
        lane: int,
        owner: HostPool,
        settings: PoolSettings,
        folder: Path,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Raises OSError when no process can be started."""
        self.spec = spec
        self.is_own = is_own  # for one attempt only
        self.lane = lane  # of all its attempts
        self.attempts: dict[tuple[str, int], HostedAttempt] = {}
        self.is_ready = False
        self.is_ending = False
        self.started_at = self.idle_since = clock.now()
        self._owner = owner
        self._clock = clock
        self.kept: set[str] = set()  # tokens of objects that live in it
        self._load_error: AttemptError | None = None
        self._cause: Cause = "itself"
        self._detail = ""
        self._strange = 0
        self._folders = itertools.count(1)
        self.process = HostProcess(spec, settings, folder, clock, loop, self)
        self._work_dir = f"{self.process.work_dir}{os.sep}"

    @property
    def is_free(self) -> bool:
        """Whether it could run something and does not."""
        return self.is_ready and not self.is_ending and not self.attempts

    @property
    def is_spare(self) -> bool:
        """Whether nothing would be missed if it ended."""
        return self.is_free and not self.kept

    @property
    def is_parked(self) -> bool:
        """Whether it does nothing and cannot be ended: all that it runs waits for calls, or it only keeps objects."""
        if self.attempts:
            return all(one.open_calls for one in self.attempts.values())
        return self.is_free and bool(self.kept)

    # -- from the owner ---------------------------------------------------------------------

    def add(self, running: HostedAttempt) -> None:
        """Give it an attempt, which is started when the host is ready. The fence stands before the frame leaves."""
        now = self._clock.now()
        armed = self.process.armed
        running.host = self
        running.folder = f"{self._work_dir}{next(self._folders)}"
        self.attempts[running.key] = running
        if running.fence_at < armed or armed < now + FENCE_SLACK_S:
            self.set_fence()
        if self.is_ready:
            self.process.send(running.start_frame())

    def take_back(self, running: HostedAttempt) -> bool:
        """Take an attempt out that was never started; whether it was not."""
        if self.is_ready:
            return False
        self.remove(running)
        running.host = None
        running.folder = ""
        return True

    def send(self, raw: bytes) -> None:
        """To attempts that were started."""
        if self.is_ready:
            self.process.send(raw)
        else:
            self._owner.on_strange("frame for an attempt that was not started")

    def set_fence(self) -> None:
        """Arm the guard to the earliest fence of what is in the host; disarm it when there is nothing."""
        earliest = math.inf
        for one in self.attempts.values():
            earliest = min(earliest, one.fence_at)
        self.process.arm(earliest)

    def remove(self, running: HostedAttempt) -> None:
        """The attempt has ended."""
        del self.attempts[running.key]
        if self.attempts:
            return
        self.idle_since = self._clock.now()
        if self.process.armed < self.idle_since + FENCE_SLACK_S:
            self.set_fence()

    def keep(self, token: str) -> None:
        self.kept.add(token)

    def close_object(self, token: str) -> None:
        self.send(frames.encode(frames.HostClose(token)))

    def let_go(self, token: str) -> None:
        self.kept.discard(token)
        if self.is_free and not self.kept:
            self.idle_since = self._clock.now()

    def stop(self) -> None:
        """It has no work and is not needed: let it end by itself, but not for long."""
        if not self.is_ending:
            self.is_ending = True
            self._cause = "ours"
            self.process.send(frames.encode(frames.HostStop()))
            self.process.kill_later(STOP_GRACE_S)

    def kill(self, cause: Cause, detail: str = "") -> None:
        """End it now. The first cause counts."""
        if not self.is_ending:
            self.is_ending = True
            self._cause = cause
            self._detail = detail
        self.process.kill()

    # -- from the process -------------------------------------------------------------------

    def on_frames(self, frames_read: list[bytes]) -> None:
        for raw in frames_read:
            try:
                frame = frames.decode(raw)
            except frames.BrokenStream as problem:
                self.on_broken(str(problem))
                return
            except msgspec.ValidationError as problem:
                self._on_unreadable(raw, str(problem))
            else:
                self._on_frame(frame)

    def on_broken(self, why: str) -> None:
        self._owner.on_strange("broken channel")
        self.kill("broken", why)

    def on_output(self, channel: str, lines: list[str], dropped: int) -> None:
        if len(self.attempts) == 1:
            (running,) = self.attempts.values()
            self._owner.on_lines(running, channel, lines, dropped)
        else:
            # With several, or none, nobody can tell whose it is; the end of it is kept for the case of a death.
            self._owner.on_strange("printed lines of nobody")

    def on_ended(self, exit_code: int) -> None:
        self.is_ending = True
        if self._cause == "itself" and exit_code in (EXIT_FENCED, -signal.SIGALRM):
            self._cause = "fence"
        death = HostDeath(
            exit_code,
            self._cause,
            self._detail,
            self.process.tail()[-STACK_CHARS:],
            self.is_ready,
            self._load_error,
            self.process.was_short_of_memory(),
        )
        self._owner.on_death(self, death)

    # -- frames -----------------------------------------------------------------------------

    def _on_frame(self, frame: frames.FromHost) -> None:
        if isinstance(frame, frames.HostHello):
            self._on_hello(frame)
            return
        if isinstance(frame, frames.HostBroken):
            self._load_error = _load_error(frame.error)
            return
        if isinstance(frame, frames.HostClosed):
            self._owner.on_closed(self, frame)
            return
        running = self.attempts.get((frame.task_id, frame.attempt))
        if running is None:
            self._on_strange("frame of no attempt")
        elif isinstance(frame, frames.HostResult):
            self._owner.on_outcome(self, running, frame)
        elif isinstance(frame, frames.HostFeedback):
            self._owner.on_feedback(running, frame)
        elif isinstance(frame, frames.HostNext):
            self._owner.on_next(running, frame)
        else:
            self._owner.on_resource(self, running, frame)

    def _on_hello(self, hello: frames.HostHello) -> None:
        if self.is_ready:
            self._on_strange("second hello")
            return
        self.process.greeted(hello.pid)
        self.is_ready = True
        for running in self.attempts.values():
            self.process.send(running.start_frame())
        self._owner.on_ready(self)

    def _on_unreadable(self, raw: bytes, problem: str) -> None:
        """It is JSON, but no frame. What it is about may still be told."""
        about = frames.about(raw)
        running = self.attempts.get((about.task_id, about.attempt)) if about is not None else None
        if about is None or running is None or about.type not in _ANSWERED:
            self._on_strange("unreadable frame")
        elif about.type in ("register", "use"):
            code = errors.RESOURCE_INVALID.code
            refusal = AttemptError(code, "CONFIGURATION", problem, retryable=False)
            running.refusal = running.refusal or refusal
        elif about.type == "result":
            error = AttemptError(errors.RESULT_INVALID.code, "USER_CODE", problem, retryable=False)
            outcome = frames.HostResult(about.task_id, about.attempt, "FAILED", error=error)
            self._owner.on_outcome(self, running, outcome)
        else:
            error = AttemptError(errors.NEXT_INVALID.code, "USER_CODE", problem, retryable=False)
            answer = frames.HostAnswer(about.task_id, about.attempt, about.request_id, error=error)
            self.send(frames.encode(answer))

    def _on_strange(self, what: str) -> None:
        self._owner.on_strange(what)
        self._strange += 1
        if self._strange > STRANGE_FRAMES:
            self.on_broken(f"too many frames that make no sense, the last: {what}")


def _load_error(error: AttemptError) -> AttemptError:
    """A package that cannot be loaded is not set up right: trying again does not help."""
    message = f"the package cannot be loaded: {error.message}"
    return msgspec.structs.replace(error, category="CONFIGURATION", message=message[: 64 * 1024])
