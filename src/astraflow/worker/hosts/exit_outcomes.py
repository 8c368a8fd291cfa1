"""Exit outcomes: the outcome of each attempt in a host that has died.

Rule 1: a cancelled attempt has ended. If it was killed after its grace period, its error says so.
Rule 2: an attempt that was alone in the host fails with the cause of the death.
Rule 3: if several attempts were in the host, the culprit is unknown: all are lost, not failed, and run next in hosts of
        their own, where Rule 2 applies. The same holds for attempts whose host was killed because of another attempt.
Rule 4: if the package cannot be loaded, every attempt that waits for the host fails.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from astraflow.core import errors
from astraflow.core.protocol.business import AttemptError, Result
from astraflow.worker.hosts.hosted_attempt import HostedAttempt

Cause = Literal["itself", "ours", "fence", "memory", "disk", "processes", "broken", "late"]


_SAYS: Final[Mapping[Cause, str]] = {
    "memory": "the host was killed because it held more memory than allowed: {}",
    "disk": "the host was killed because it wrote more files than allowed: {}",
    "processes": "the host was killed because it started more processes than allowed: {}",
    "broken": "the host was killed because of what it wrote into its channel: {}",
    "late": "the host did not load its package in time: {}",
    "fence": "the host ended at its fence, because its worker was not heard from",
    "ours": "the host was killed because of another attempt in it",
}


class HostDeath(msgspec.Struct, frozen=True):
    """How a host died. `itself`: it exited or was killed by a foreign signal; `ours`: killed because of another
    attempt; `late`: it did not start in time."""

    exit_code: int
    cause: Cause
    detail: str = ""
    tail: str = ""
    is_ready: bool = True
    load_error: AttemptError | None = None
    was_short_of_memory: bool = False

    def says(self) -> str:
        """One sentence about it."""
        if self.cause != "itself":
            return _SAYS[self.cause].format(self.detail)
        if self.exit_code >= 0:
            return f"the host exited before the attempt ended, with code {self.exit_code}"
        name = _signal_name(-self.exit_code)
        if self._is_oom:
            return "the host was killed by the system, which had no memory left"
        return f"the host was killed by a signal: {name}"

    @property
    def is_failed_start(self) -> bool:
        """Whether it ended by its own fault before its package was loaded."""
        return not self.is_ready and self.cause not in ("ours", "fence")

    @property
    def _is_oom(self) -> bool:
        return self.cause == "memory" or (
            self.cause == "itself"
            and self.exit_code == -signal.SIGKILL
            and self.was_short_of_memory
        )

    def error(self) -> AttemptError:
        """The failure of an attempt that was alone in it."""
        code = errors.RUNNER_OOM if self._is_oom else errors.RUNNER_CRASHED
        if self.cause in ("disk", "processes"):
            code = errors.RUNNER_LIMIT
        return AttemptError(code.code, "INFRASTRUCTURE", self.says(), stack=self.tail or None)


def outcome_of(running: HostedAttempt, death: HostDeath, is_alone: bool) -> Result | None:
    """The outcome of an attempt that was in the host; None if only its end matters."""
    if running.is_killed:
        return None
    if running.grace_s is not None:
        return _stopped(running)
    if death.is_failed_start:
        return failed(running, death.load_error or death.error())
    if is_alone and death.cause not in ("ours", "fence"):
        return failed(running, death.error())
    lost = AttemptError(errors.TASK_HOST_LOST.code, "INFRASTRUCTURE", death.says())
    return failed(running, lost)


def failed(running: HostedAttempt, error: AttemptError) -> Result:
    dispatch = running.dispatch
    masked = running.masked_error(error)
    return Result(dispatch.run_id, dispatch.task_id, dispatch.attempt, "FAILED", error=masked)


def _stopped(running: HostedAttempt) -> Result:
    if running.is_overdue and running.grace_s:
        message = f"the attempt did not end within its grace and was killed: {running.grace_s} s"
        return failed(running, AttemptError(errors.CANCEL_TIMEOUT.code, "CANCELLED", message))
    # It was promised no grace, or ended by itself: the agent knows what the stop was for.
    dispatch = running.dispatch
    return Result(dispatch.run_id, dispatch.task_id, dispatch.attempt, "CANCELLED")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
