"""What one worker of protocol 1 holds, and under which numbers it knows it.

PROTOCOL §8: "`seq` in `cmd.dispatch` and `result` counts per (run, connection) and stands for the attempt". The first
dispatch of a run on a connection has 1. What was rebound at a register has no number of this connection: its result is
taken with the number that it had before.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol.v1.frames import DEFAULT_TIMEOUT_S, TIMEOUT_SLACK_S
from astraflow.core.protocol.wire import AttemptRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.protocol.v1.frames import LeasedAttempt

RUNS_KEPT: Final = 16_384
"""Runs whose count is kept; the least recently dispatched is forgotten first."""
RESULTS_KEPT: Final = 4096
"""Results that are known again by (task, seq)."""


class V1Attempt:
    """One attempt, given to the worker on this connection or rebound to it."""

    __slots__ = (
        "attempt", "chunk_counts", "command_seq", "due", "frame_id", "is_taken", "run_id", "seq",
        "task_id",
    )  # fmt: skip

    def __init__(self, run_id: RunId, task_id: TaskId, attempt: int) -> None:
        self.run_id = run_id
        self.task_id = task_id
        self.attempt = attempt
        self.seq: int | None = None  # none for what was rebound
        self.frame_id: str | None = None  # of its dispatch on this connection
        self.command_seq: int | None = None  # the seq of the dispatch in the session of protocol 2
        self.is_taken = True
        self.due = inf  # when the adapter itself ends it
        self.chunk_counts: dict[str, int] = {}  # by channel, of its feedback


class AttemptTable:
    """The attempts of one connection."""

    def __init__(self) -> None:
        self._by_task: dict[TaskId, list[V1Attempt]] = {}
        self._by_frame: dict[str, V1Attempt] = {}
        self._last_seq: dict[RunId, int] = {}
        self._reported: dict[tuple[str, int | None], str] = {}

    def next_seq(self, run_id: RunId) -> int:
        """Count one more dispatch of a run."""
        seq = self._last_seq.pop(run_id, 0) + 1
        self._last_seq[run_id] = seq
        if len(self._last_seq) > RUNS_KEPT:
            del self._last_seq[next(iter(self._last_seq))]
        return seq

    def add(self, attempt: V1Attempt) -> None:
        self._by_task.setdefault(attempt.task_id, []).append(attempt)
        if attempt.frame_id is not None:
            self._by_frame[attempt.frame_id] = attempt

    def rebind(self, held: Iterable[LeasedAttempt], now: float) -> None:
        """Take over what the worker had before this connection."""
        for one in held:
            attempt = V1Attempt(one.run_id, one.task_id, one.attempt)
            if not one.has_timeout:
                attempt.due = now + DEFAULT_TIMEOUT_S + TIMEOUT_SLACK_S
            self.add(attempt)

    def remove(self, attempt: V1Attempt) -> None:
        held = self._by_task.get(attempt.task_id, [])
        if attempt in held:
            held.remove(attempt)
            if not held:
                del self._by_task[attempt.task_id]
        if attempt.frame_id is not None:
            self._by_frame.pop(attempt.frame_id, None)

    def of_frame(self, frame_id: str) -> V1Attempt | None:
        """The attempt that was dispatched with this frame and is not over."""
        return self._by_frame.get(frame_id)

    def find(self, task_id: str, attempt: int) -> V1Attempt | None:
        held = self._by_task.get(TaskId(task_id), [])
        return next((one for one in held if one.attempt == attempt), None)

    def meant(self, task_id: str, seq: int | None) -> V1Attempt | None:
        """The attempt that a report about a task means: the newest that was dispatched with its number or before."""
        held = self._by_task.get(TaskId(task_id))
        if held is None:
            return None
        if seq is None:
            return held[-1]
        until = [one for one in held if one.seq is None or one.seq <= seq]
        return until[-1] if until else held[0]

    def is_gap(self, run_id: str, seq: int | None) -> bool:
        """Whether no dispatch of this run on this connection had this number yet."""
        last = self._last_seq.get(RunId(run_id))
        return last is not None and seq is not None and seq > last

    def note_result(self, task_id: str, seq: int | None, report_id: str) -> None:
        """The first result of (task, seq) was passed on under this id."""
        self._reported[task_id, seq] = report_id
        if len(self._reported) > RESULTS_KEPT:
            del self._reported[next(iter(self._reported))]

    def first_report(self, task_id: str, seq: int | None) -> str | None:
        return self._reported.get((task_id, seq))

    def named(self) -> list[AttemptRef]:
        """What a heartbeat renews: all that the worker has taken."""
        return [
            AttemptRef(one.task_id, one.attempt)
            for held in self._by_task.values()
            for one in held
            if one.is_taken
        ]

    def take_overdue(self, now: float) -> list[V1Attempt]:
        """Those whose default timeout is over, each once."""
        over = [one for held in self._by_task.values() for one in held if one.due <= now]
        for one in over:
            one.due = inf
        return over

    def deadline(self) -> float:
        return min((one.due for held in self._by_task.values() for one in held), default=inf)

    def check(self) -> None:
        """Assert that every attempt is indexed, and that no list is empty."""
        assert all(self._by_task.values())
        listed = [one for held in self._by_task.values() for one in held]
        assert all(one in listed for one in self._by_frame.values())
        assert len(self._last_seq) <= RUNS_KEPT and len(self._reported) <= RESULTS_KEPT
