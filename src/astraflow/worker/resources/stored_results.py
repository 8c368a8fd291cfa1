"""Results with stored values: reported once the values are in the blob store, where every worker can read them.

The scheduler asks for the upload as soon as it hears of a value. So a committed result never refers to something that
is on one worker alone. If the upload fails, or nobody asks for it in time, the attempt has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostEvents

ASKED_WITHIN_S: Final = 60.0
"""The scheduler asks for an upload at once; without a connection the lease of the attempt ends before."""
REMEMBERED: Final = 10_000
"""Uploads that ended before their result came."""

Outcome = Callable[[str, str | None], None]


class UploadOutcomes:
    """Tells how uploads have ended to who watches them."""

    def __init__(self) -> None:
        self._watching: list[Outcome] = []

    def watch(self, outcome: Outcome) -> None:
        self._watching.append(outcome)

    def ended(self, resource_id: str, problem: str | None = None) -> None:
        for outcome in self._watching:
            outcome(resource_id, problem)


class _Waiting:
    """A result that waits for uploads."""

    __slots__ = ("missing", "result", "timer")

    def __init__(self, result: business.Result, missing: set[str]) -> None:
        self.result = result
        self.missing = missing
        self.timer: asyncio.TimerHandle | None = None


class StoredResults:
    """Wraps the receiver of the hosts' events: a result is told when what it refers to is stored."""

    def __init__(
        self, events: HostEvents, outcomes: UploadOutcomes, asked_within_s: float = ASKED_WITHIN_S
    ) -> None:
        self._events = events
        self._asked_within_s = asked_within_s
        self._waiting: dict[tuple[str, int], _Waiting] = {}
        self._ended: dict[str, str | None] = {}
        self.feedback = events.feedback
        self.call = events.call
        outcomes.watch(self._on_upload)

    def finished(self, result: business.Result) -> None:
        values = {one.resource_id for one in result.artifacts if one.type == VALUE_TYPE}
        if not values or result.status != "SUCCEEDED":
            self._events.finished(result)
            return
        waiting = _Waiting(result, values)
        self._waiting[result.task_id, result.attempt] = waiting
        loop = asyncio.get_running_loop()
        waiting.timer = loop.call_later(
            self._asked_within_s, self._fail, waiting, "the scheduler did not ask for it in time"
        )
        for resource_id in values & self._ended.keys():
            self._take_outcome(waiting, resource_id, self._ended.pop(resource_id))

    def gone(self, task_id: TaskId, attempt: int) -> None:
        waiting = self._waiting.get((task_id, attempt))
        if waiting is not None:
            self._end(waiting)
        self._events.gone(task_id, attempt)

    def _on_upload(self, resource_id: str, problem: str | None) -> None:
        wanted = [one for one in self._waiting.values() if resource_id in one.missing]
        for waiting in wanted:
            self._take_outcome(waiting, resource_id, problem)
        if not wanted:
            self._ended[resource_id] = problem
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]

    def _take_outcome(self, waiting: _Waiting, resource_id: str, problem: str | None) -> None:
        if problem is not None:
            self._fail(waiting, problem)
            return
        waiting.missing.discard(resource_id)
        if not waiting.missing and self._end(waiting):
            self._events.finished(waiting.result)

    def _fail(self, waiting: _Waiting, problem: str) -> None:
        if not self._end(waiting):
            return
        code = errors.RESULT_NOT_STORED
        error = business.AttemptError(code.code, "INFRASTRUCTURE", f"{code.says}: {problem}")
        result = waiting.result
        failed = business.Result(
            result.run_id, result.task_id, result.attempt, "FAILED", error=error
        )
        self._events.finished(msgspec.structs.replace(failed, duration_ms=result.duration_ms))

    def _end(self, waiting: _Waiting) -> bool:
        """Whether it was still waiting."""
        if waiting.timer is not None:
            waiting.timer.cancel()
        key = (waiting.result.task_id, waiting.result.attempt)
        return self._waiting.pop(key, None) is not None
