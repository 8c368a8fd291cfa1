"""What a range of facts tells of attempts and waits: the entries of a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from astraflow.core.contract.runs import TaskError
from astraflow.core.contract.timelines import TimelineEntry
from astraflow.core.errors import TASK_DISABLED
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    Fact,
    TaskCancelled,
    TaskDecided,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskParked,
    TaskPassed,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import error_view, waiting_view
from astraflow.core.timestamps import iso

_Key = tuple[int, int]
_NAMED = ("node_id", "host_node_id", "call_id", "scope_path")


class TimelineEntries:
    """Gathers the entries of facts in order. What an attempt becomes in the same range is one entry."""

    def __init__(self, places: TaskPlaces, node_id: str | None = None) -> None:
        self.entries: list[TimelineEntry] = []
        self._places = places
        self._node_id = node_id
        self._attempts: dict[_Key, int] = {}
        """By task and attempt: the place of its entry."""

    def take(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._places.note(fact)
            if isinstance(fact, TaskFact):
                self._take(fact)

    def _take(self, fact: TaskFact) -> None:
        told = _told(fact)
        if told is None:
            return
        fields = self._places.fields_of(fact)
        if self._node_id is not None and self._node_id not in (
            fields.get("middleware_node_id"),
            fields["node_id"],
        ):
            return
        place = {name: fields[name] for name in _NAMED if name in fields}
        if told["kind"] != "attempt":
            self.entries.append(TimelineEntry(**place, **told))
            return
        key = (fact.task, told["attempt"])
        known = self._attempts.get(key)
        if known is None:
            self._attempts[key] = len(self.entries)
            self.entries.append(TimelineEntry(**place, **told))
        else:
            self.entries[known] = msgspec.structs.replace(self.entries[known], **told)


def _told(fact: TaskFact) -> dict[str, Any] | None:
    """What a fact tells; None: nothing that a timeline shows."""
    at = iso(fact.at)
    match fact:
        case TaskWaiting(waiting_for=reason) | TaskParked(waiting_for=reason):
            return {"kind": "wait", "since": at, "waiting_for": waiting_view(reason)}
        case TaskLeased(attempt=number, worker=worker):
            begun = {"worker_id": worker, "dispatched_at": at, "status": "dispatched"}
            return {"kind": "attempt", "attempt": number, **begun}
        case AttemptStarted(attempt=number):
            return {"kind": "attempt", "attempt": number, "status": "running", "started_at": at}
        case TaskDecided() | TaskReused():
            return {"kind": "end", "status": "succeeded", "finished_at": at}
        case TaskPassed():
            error = TaskError(code=TASK_DISABLED.code)
            return {"kind": "end", "status": "skipped", "finished_at": at, "error": error}
        case _:
            return _ended(fact, at)


def _ended(fact: TaskFact, at: str) -> dict[str, Any] | None:
    match fact:
        case TaskSucceeded(attempt=number):
            end: dict[str, Any] = {"status": "succeeded"}
        case TaskFailed(attempt=number, error=error):
            end = {"status": "failed", "error": error_view(error)}
        case AttemptFailed(attempt=number, error=error):
            end = {"status": "failed", "error": error_view(error), **_again(fact, fact.delay_s)}
        case AttemptLost(attempt=number, cause=cause):
            end = {"status": "lost", "error": TaskError(code=cause), **_again(fact, fact.delay_s)}
        case AttemptRefused(attempt=number, code=code):
            end = {"status": "refused", "error": TaskError(code=code), **_again(fact, fact.delay_s)}
        case TaskCancelled(attempt=number):
            end = {"status": "cancelled"}
        case TaskSkipped(attempt=number, code=code):
            end = {"status": "skipped", "error": TaskError(code=code)}
        case _:
            return None
    if not number:
        return {"kind": "end", "finished_at": at, **end}
    return {"kind": "attempt", "attempt": number, "finished_at": at, **end}


def _again(fact: TaskFact, delay_s: float) -> dict[str, Any]:
    return {"retry_at": iso(fact.at + int(delay_s * 1000))}
