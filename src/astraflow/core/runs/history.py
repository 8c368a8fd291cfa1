"""What REST shows of the past of a run: the attempts of a node, its timeline in sentences, and the output of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from astraflow.core.contract.events import Event, NodeBody, NodeOutput, NodeState
from astraflow.core.contract.log_levels import LogLevel, is_at_least
from astraflow.core.contract.runs import Attempt, LogLine, TaskError
from astraflow.core.contract.scope_paths import is_within
from astraflow.core.runs.facts import (
    PINNED,
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    Fact,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.runs.projections import error_view
from astraflow.core.runs.timeline import describe_fact
from astraflow.core.timestamps import iso

DROPPED: Final = "dropped"
"""The channel of lines that say where output is missing."""
NEVER_READY: Final[Mapping[int, int]] = MappingProxyType({})
NO_PREFIXES: Final[Mapping[int, str]] = MappingProxyType({})


class NodeHistory(NamedTuple):
    """What REST shows of the past of one node."""

    attempts: list[Attempt]
    timeline: list[str]
    ready_at: str | None = None
    """When all before it had ended."""
    reused_from: str | None = None
    """The run that its result was taken over from."""


def timeline_of(facts: Iterable[Fact], prefixes: Mapping[int, str] = NO_PREFIXES) -> list[str]:
    """One sentence for each fact; what a sentence begins with says which task of a chain it is about."""
    return [
        f"{iso(fact.at)} {prefixes.get(getattr(fact, 'task', -1), '')}{describe_fact(fact)}"
        for fact in facts
    ]


def reused_run(facts: Iterable[Fact], task: int) -> str | None:
    """The run that the result of a task was taken over from; None: it is pinned, or the task's own."""
    found = None
    for fact in facts:
        if isinstance(fact, TaskReused) and fact.task == task:
            found = None if fact.from_run == PINNED else fact.from_run
        elif isinstance(fact, TaskRebuilt) and task in fact.again:
            found = None
    return found


def attempts_of(
    facts: Iterable[Fact],
    tasks: Collection[int] | None = None,
    ready: Mapping[int, int] = NEVER_READY,
) -> list[Attempt]:
    """The attempts of a node, from the facts about it, oldest first; of these tasks only, if some are named. `ready`:
    when tasks could begin, as far as it is known."""
    attempts: dict[tuple[int, int], Attempt] = {}
    calls: dict[int, str] = {}
    queued = dict(ready)
    for fact in facts:
        if not isinstance(fact, TaskFact) or (tasks is not None and fact.task not in tasks):
            continue
        key = (fact.task, getattr(fact, "attempt", 0))
        known = attempts.get(key)
        if isinstance(fact, CallOpened):
            calls[fact.task] = fact.call_id
            queued[fact.task] = fact.at
        elif isinstance(fact, TaskLeased):
            attempts[key] = _leased(fact, calls.get(fact.task), queued.pop(fact.task, None))
        elif known is not None:
            attempts[key] = msgspec.structs.replace(known, **_changes_of(fact))
        if isinstance(fact, AttemptFailed | AttemptLost | AttemptRefused):
            queued[fact.task] = fact.at + int(fact.delay_s * 1000)
    return list(attempts.values())


def _leased(fact: TaskLeased, call_id: str | None, queued: int | None) -> Attempt:
    # A node that is made again is ready at another time than it was for its first attempt: that one is not known.
    since = queued if queued is not None and queued <= fact.at else None
    return Attempt(
        attempt=fact.attempt,
        worker_id=fact.worker,
        incarnation=fact.incarnation,
        status="dispatched",
        queued_at=None if since is None else iso(since),
        dispatched_at=iso(fact.at),
        started_at=None,
        finished_at=None,
        call_id=call_id,
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


class LogFilter(NamedTuple):
    """Which output is wanted. What is None or empty lets everything through."""

    node_id: str | None = None
    level: LogLevel | None = None
    scope: str = ""

    def takes(self, body: object) -> bool:
        """Whether an event is about a node and a scope whose output is wanted."""
        if not isinstance(body, NodeBody):
            return False
        is_wanted_node = not self.node_id or _writer(body) == self.node_id
        return is_wanted_node and (not self.scope or is_within(body.scope_path, self.scope))


def log_lines(events: Iterable[Event], wanted: LogFilter) -> Iterator[LogLine]:
    """The output among the events of a run that a filter lets through."""
    for event in events:
        body = event.body
        if not wanted.takes(body):
            continue
        if isinstance(body, NodeOutput):
            if wanted.level is not None and not is_at_least(body.metadata, wanted.level):
                continue
            yield LogLine(id=event.id, occurred_at=event.occurred_at, **_fields(body))
        elif isinstance(body, NodeState) and body.dropped:
            yield _gap(event, body)


def _writer(body: NodeBody) -> str:
    """The node that an event is about: an outermost middleware, which runs as the task of its host, or the node."""
    return body.middleware_node_id or body.node_id


def _fields(body: NodeOutput) -> dict[str, Any]:
    fields = msgspec.structs.asdict(body)
    del fields["middleware_node_id"]
    fields["node_id"] = _writer(body)
    if fields["metadata"] is None:
        del fields["metadata"]
    return fields


def _gap(event: Event, body: NodeState) -> LogLine:
    """A line that says that output of an attempt is missing."""
    return LogLine(
        id=event.id,
        occurred_at=event.occurred_at,
        node_id=_writer(body),
        scope_path=body.scope_path,
        attempt=body.attempt or 0,
        channel=DROPPED,
        index=0,
        mime_type="text/plain",
        text=f"{body.dropped} pieces of output were dropped here",
    )
