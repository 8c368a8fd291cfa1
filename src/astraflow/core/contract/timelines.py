"""The timeline of a run: every attempt of every node, and what nodes waited for, in one list."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from astraflow.core.contract.base import (
    Count,
    Id,
    JsonObject,
    Page,
    RestObject,
    Timestamp,
    WidePageQuery,
    doc,
)
from astraflow.core.contract.runs import TaskError, WaitingFor
from astraflow.core.contract.words import AttemptStatus, NodeStatus

EntryKind = Literal["attempt", "wait", "end"]


class TimelineEntry(RestObject, frozen=True, kw_only=True):
    """One attempt, one wait, or the end of a node that no attempt has ended. Members that the events of this page do
    not tell are missing: an attempt that began on an earlier page is on both, and they are one."""

    kind: Annotated[
        EntryKind, doc("`attempt`; `wait`, which lasts until the next entry of its node; or `end`.")
    ]
    node_id: Annotated[str, doc("The node.")]
    host_node_id: Annotated[str | None, doc("The node whose chain called it, if one did.")] = None
    call_id: Annotated[str | None, doc("The call.")] = None
    scope_path: Annotated[str | None, doc("Where the node is, if it is inside of others.")] = None
    attempt: Annotated[Count | None, doc("The number of the attempt, from 1 on.")] = None
    status: Annotated[
        AttemptStatus | NodeStatus | None,
        doc("Where the attempt stands, or how it or the node ended."),
    ] = None
    worker_id: Annotated[str | None, doc("The worker that the attempt was given to.")] = None
    since: Annotated[Timestamp | None, doc("When the wait began.")] = None
    waiting_for: Annotated[WaitingFor | None, doc("What the node waits for.")] = None
    dispatched_at: Annotated[Timestamp | None, doc("When the attempt was given to its worker.")] = (
        None
    )
    started_at: Annotated[Timestamp | None, doc("When the worker acknowledged it.")] = None
    finished_at: Annotated[Timestamp | None, doc("When it ended.")] = None
    retry_at: Annotated[Timestamp | None, doc("When the next attempt may start.")] = None
    error: Annotated[TaskError | None, doc("Why it did not succeed.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "kind": "attempt",
        "nodeId": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
        "attempt": 1,
        "status": "succeeded",
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "dispatchedAt": "2026-01-15T10:00:00.002Z",
        "startedAt": "2026-01-15T10:00:00.004Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
    }

    @property
    def key(self) -> tuple[object, ...]:
        """What the parts of one attempt on several pages have in common."""
        return (self.kind, self.node_id, self.scope_path, self.call_id, self.attempt, self.since)

    def joined(self, later: TimelineEntry) -> TimelineEntry:
        """With what a later page tells of the same."""
        told = msgspec.structs.asdict(later)
        return msgspec.structs.replace(
            self, **{name: value for name, value in told.items() if value is not None}
        )


class TimelinePage(Page[TimelineEntry], frozen=True, kw_only=True):
    """What happened in a range of the events of a run. `nextCursor` is null when nothing more is stored now."""


class ListTimeline(WidePageQuery, frozen=True, kw_only=True):
    """Which entries."""

    node_id: Annotated[Id | None, doc("Only entries of this node.")] = None
