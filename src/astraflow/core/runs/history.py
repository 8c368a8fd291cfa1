"""What REST shows of the past of a run: the attempts of a node, its timeline in sentences, and the output of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from astraflow.core.contract.events import Event, NodeOutput, NodeState
from astraflow.core.contract.log_levels import LogLevel, is_at_least
from astraflow.core.contract.runs import Attempt, LogLine, TaskError
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    Fact,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.runs.projections import error_view
from astraflow.core.runs.timeline import describe_fact
from astraflow.core.timestamps import iso

DROPPED: Final = "dropped"
"""The channel of lines that say where output is missing."""


def timeline_of(facts: Iterable[Fact]) -> list[str]:
    """One sentence for each fact."""
    return [f"{iso(fact.at)} {describe_fact(fact)}" for fact in facts]


def attempts_of(facts: Iterable[Fact]) -> list[Attempt]:
    """The attempts of a node, from the facts about it, oldest first."""
    attempts: dict[tuple[int, int], Attempt] = {}
    for fact in facts:
        if not isinstance(fact, TaskFact):
            continue
        key = (fact.task, getattr(fact, "attempt", 0))
        known = attempts.get(key)
        if isinstance(fact, TaskLeased):
            attempts[key] = _leased(fact)
        elif known is not None:
            attempts[key] = msgspec.structs.replace(known, **_changes_of(fact))
    return list(attempts.values())


def _leased(fact: TaskLeased) -> Attempt:
    return Attempt(
        attempt=fact.attempt,
        worker_id=fact.worker,
        incarnation=fact.incarnation,
        status="dispatched",
        dispatched_at=iso(fact.at),
        started_at=None,
        finished_at=None,
    )


def _changes_of(fact: TaskFact) -> dict[str, Any]:
    """What a fact changes of its attempt."""
    match fact:
        case AttemptStarted():
            return {"status": "running", "started_at": iso(fact.at)}
        case TaskSucceeded():
            end: dict[str, Any] = {"status": "succeeded"}
        case TaskFailed(error=error) | AttemptFailed(error=error):
            end = {"status": "failed", "error": error_view(error)}
        case AttemptLost(cause=cause):
            end = {"status": "lost", "error": TaskError(code=cause)}
        case AttemptRefused(code=code):
            end = {"status": "refused", "error": TaskError(code=code)}
        case TaskCancelled():
            end = {"status": "cancelled"}
        case TaskSkipped(code=code):
            end = {"status": "skipped", "error": TaskError(code=code)}
        case _:
            return {}
    return {**end, "finished_at": iso(fact.at)}


def log_lines(
    events: Iterable[Event], node_id: str | None, level: LogLevel | None = None
) -> Iterator[LogLine]:
    """The output among the events of a run: of one node or of all, from a level on or all of it."""
    for event in events:
        body = event.body
        if node_id and getattr(body, "node_id", None) != node_id:
            continue
        if isinstance(body, NodeOutput):
            if level is not None and not is_at_least(body.metadata, level):
                continue
            yield LogLine(id=event.id, occurred_at=event.occurred_at, **_fields(body))
        elif isinstance(body, NodeState) and body.dropped:
            yield _gap(event, body)


def _fields(body: NodeOutput) -> dict[str, Any]:
    fields = msgspec.structs.asdict(body)
    if fields["metadata"] is None:
        del fields["metadata"]
    return fields


def _gap(event: Event, body: NodeState) -> LogLine:
    """A line that says that output of an attempt is missing."""
    return LogLine(
        id=event.id,
        occurred_at=event.occurred_at,
        node_id=body.node_id,
        attempt=body.attempt or 0,
        channel=DROPPED,
        index=0,
        mime_type="text/plain",
        text=f"{body.dropped} pieces of output were dropped here",
    )
