"""The mixed stream: the events of a tenant and of any number of runs on one connection.

Its state is in its position, which names the last event that was seen of each: a client that comes back with it, to
this scheduler or to another, with the same runs or with others, misses none and sees none twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec

from astraflow.core.contract.base import Count, JsonObject, Query, RestObject, Timestamp, doc
from astraflow.core.contract.events import EventScope

MAX_STREAM_RUNS: Final = 100
"""Runs of one stream. A page of a list shows fewer."""
MAX_COALESCE_MS: Final = 5_000
MAX_POSITION_CHARS: Final = 8_192
_POSITION: Final = re.compile(r"([0-9]{1,15})((?:,[^,:\s]{1,64}:[0-9]{1,15})*)", re.ASCII)


class StreamPosition(msgspec.Struct, frozen=True):
    """The last event that was seen of the tenant and of each run: `17,RUN:45,RUN:7` as text."""

    tenant: int | None = None
    runs: Mapping[str, int] = {}

    @classmethod
    def read(cls, text: str) -> StreamPosition | None:
        """None: it is none."""
        found = _POSITION.fullmatch(text)
        if found is None:
            return None
        pairs = (one.split(":") for one in found[2].split(",")[1:])
        runs = {run_id: int(number) for run_id, number in pairs}
        return cls(int(found[1]), runs)

    def __str__(self) -> str:
        return ",".join([str(self.tenant or 0), *(f"{one}:{at}" for one, at in self.runs.items())])


class FollowStream(Query, frozen=True, kw_only=True):
    """Which runs, from where on, and how often."""

    runs: Annotated[
        str,
        doc(
            f"The runs to follow, with commas between them, {MAX_STREAM_RUNS} at the most.",
            max_length=MAX_POSITION_CHARS,
        ),
    ] = ""
    last_event_id: Annotated[
        str,
        doc(
            "The last id that was seen, also of a stream with other runs: each run that it names goes on from there.",
            max_length=MAX_POSITION_CHARS,
        ),
    ] = ""
    snapshot: Annotated[
        bool,
        doc(
            "`true` begins each run that has no position with `run.snapshot`, and not with its first event."
        ),
    ] = False
    worker_load: Annotated[
        bool,
        doc("`true` tells in `worker.load` what workers do, every two seconds while it changes."),
    ] = False
    coalesce_ms: Annotated[
        int,
        doc(
            "At least so many milliseconds are between two batches, and consecutive pieces of output of one node and "
            "one channel are joined. 0: everything at once.",
            ge=0,
            le=MAX_COALESCE_MS,
        ),
    ] = 0


class StreamItem(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """One event of a mixed stream: that of a `RunStreamEvent` with its run, or of a `TenantStreamEvent` without."""

    run_id: Annotated[str | None, doc("The run; missing: it is an event of the tenant.")] = None
    id: Annotated[
        Count,
        doc(
            "Its number in its run or its tenant; of a snapshot, that of the last event in it. Missing: it has none."
        ),
    ] = 0
    type: Annotated[str, doc("What has happened.")]
    occurred_at: Annotated[Timestamp | None, doc("When it was stored.")] = None
    scope: Annotated[EventScope, doc("What it is about.")] = EventScope()
    body: Annotated[Any, doc("What the type says.")] = msgspec.field(name="data")


class StreamBatch(RestObject, frozen=True, kw_only=True):
    """One message of a mixed stream. It arrives whole or not at all."""

    events: Annotated[list[StreamItem], doc("What has happened, in order.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "events": [
            {
                "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
                "id": 1,
                "type": "run.status",
                "occurredAt": "2026-01-15T10:00:00.000Z",
                "data": {"status": "queued"},
            }
        ]
    }
