"""The states of a task, each with exactly what is known in it.

A task that belongs to a worker is `Leased(worker, attempt, …)`, not five optional fields that must
agree. Who moves a task out of a state is said at the state.
"""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.core.runs.facts import StopWhy, TaskFailure, WaitReason


class State(msgspec.Struct, frozen=True):
    """The base of all states."""


class Pending(State, frozen=True):
    """Some task upstream is not settled. Moved by that task's end, or by cancel."""


class Ready(State, frozen=True):
    """May be leased now. Moved by placement, or by cancel."""


class Attempted(State, frozen=True):
    """The base of those in which a report of the current attempt still decides."""

    worker: str
    attempt: int


class Leased(Attempted, frozen=True):
    """Given to a worker that has not said that it has it. Moved by its ack, report or silence."""

    ttl_ms: int


class Running(Attempted, frozen=True):
    """Taken by its worker. Moved by its report, by silence, by its timeout, or by cancel.

    `by`: the `workerId` of the HTTP invocation that runs it."""

    ttl_ms: int
    by: str = ""


class Stopping(Attempted, frozen=True):
    """The worker was asked to stop it. Moved by a report or by proof that it does not run."""

    ttl_ms: int
    why: StopWhy
    grace_ms: int
    by: str = ""


class Lost(Attempted, frozen=True):
    """Proved not to run, without a report. Ready after its delay; a late report still counts,
    as long as no newer attempt was issued (PROTOCOL §5.1)."""


class Backoff(State, frozen=True):
    """Failed, or refused, and to be tried again. Ready after its delay."""

    is_refused: bool = False


class Succeeded(State, frozen=True):
    """Terminal: its result is committed."""


def _left_ms(until: int | None, for_ms: int | None, at: int) -> int | None:
    """A clock that was set back gives a wait no more than its whole time."""
    if until is None:
        return None
    left = max(0, until - at)
    return left if for_ms is None else min(left, for_ms)


class Parked(State, frozen=True):
    """The scheduler waits at it: for a time, a person or a message. Moved by that, by its deadline, or by cancel."""

    waiting_for: WaitReason
    for_ms: int | None = None

    def left_ms(self, at: int) -> int | None:
        """How long it is to be waited for at most, as far as the wall clock can tell; None: for ever."""
        return _left_ms(self.waiting_for.until, self.for_ms, at)


class Opened(State, frozen=True):
    """The tasks of its body are under way. Moved by the end of the last of them."""

    until: int | None = None
    for_ms: int | None = None

    def left_ms(self, at: int) -> int | None:
        """As of a parked task."""
        return _left_ms(self.until, self.for_ms, at)


class Passed(State, frozen=True):
    """Terminal: the node is disabled, what it was given is its result."""


class Failed(State, frozen=True):
    """Terminal."""

    error: TaskFailure
    confirmed: bool = True


class Skipped(State, frozen=True):
    """Terminal: it did not run."""

    code: str


class Cancelled(State, frozen=True):
    """Terminal: stopped by a committed cancel, or never started because of it."""

    confirmed: bool = True


class Subsumed(State, frozen=True):
    """Terminal from the start: a middleware is not run for itself, only by calls round its host."""


PENDING: Final = Pending()
READY: Final = Ready()
BACKOFF: Final = Backoff()
REFUSED: Final = Backoff(is_refused=True)
SUBSUMED: Final = Subsumed()
SUCCEEDED: Final = Succeeded()
PASSED: Final = Passed()
CANCELLED: Final = Cancelled()

TERMINAL: Final[frozenset[type[State]]] = frozenset(
    {Succeeded, Passed, Failed, Skipped, Cancelled, Subsumed}
)
LIVE: Final[frozenset[type[State]]] = frozenset({Succeeded, Passed})
"""States from which the edges go on, unless they are error edges."""
ATTEMPT_UNDER_WAY: Final[frozenset[type[State]]] = frozenset({Leased, Running, Stopping})
"""States in which a worker may be running the current attempt."""
WAITING: Final[frozenset[type[State]]] = frozenset({Ready, Backoff, Lost})
"""States in which a task may be given a place."""
