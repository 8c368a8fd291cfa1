"""The mixed stream: the events of a tenant and of any number of runs on one connection.

Its state is in its position, which names the last event that was seen of each: a client that comes back with it, to
this scheduler or to another, with the same runs or with others, misses none and sees none twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec

from astraflow.core.contract.base import Count, JsonObject, Query, RestObject, Timestamp, doc
from astraflow.core.contract.events import EventScope

MAX_STREAM_RUNS: Final = 100
"""Runs of one stream. A page of a list shows fewer."""
MAX_COALESCE_MS: Final = 5_000
MAX_POSITION_CHARS: Final = 8_192
MAX_NUMBER_CHARS: Final = 15
_LANE: Final = "[0-9]{1,4}"
_NUMBER: Final = "[0-9]{1,15}"
_LANES: Final = re.compile(rf"0:{_NUMBER}(?:,{_LANE}:{_NUMBER})*", re.ASCII)
_POSITION: Final = re.compile(
    rf"({_NUMBER}|0:{_NUMBER}(?:,{_LANE}:{_NUMBER})*)((?:,[^,:\s]{{1,64}}:{_NUMBER})*)", re.ASCII
)


class LanePosition(msgspec.Struct, frozen=True):
    """The last event that was seen of the stream of a tenant: `17`; with several lanes `0:512,1:77`, a number for each.

    A lane that has none was not there yet: all of its events come.
    """

    home: int = 0
    others: Mapping[int, int] = {}

    @classmethod
    def read(cls, text: str) -> LanePosition | None:
        """None: it is none."""
        if text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_CHARS:
            return cls(int(text))
        if _LANES.fullmatch(text) is None:
            return None
        pairs = (one.split(":") for one in text.split(","))
        lanes = {int(lane): int(number) for lane, number in pairs}
        return cls(lanes.pop(0), lanes)

    @classmethod
    def of(cls, lanes: Mapping[int, int]) -> LanePosition:
        return cls(lanes.get(0, 0), {lane: at for lane, at in lanes.items() if lane})

    def after(self, lanes: Iterable[int]) -> dict[int, int]:
        """Where each of these lanes goes on."""
        return {lane: self.others.get(lane, 0) if lane else self.home for lane in lanes}

    def __str__(self) -> str:
        if not self.others:
            return str(self.home)
        return ",".join([f"0:{self.home}", *(f"{lane}:{at}" for lane, at in self.others.items())])


class StreamPosition(msgspec.Struct, frozen=True):
    """The last event that was seen of the tenant and of each run: `17,RUN:45,RUN:7` as text; of a tenant with several
    lanes `0:17,1:3,RUN:45`. No run has an id as short as the number of a lane."""

    tenant: int | None = None
    runs: Mapping[str, int] = {}
    lanes: Mapping[int, int] = {}
    """Of a tenant with several, the numbers of all but the first."""

    @classmethod
    def read(cls, text: str) -> StreamPosition | None:
        """None: it is none."""
        found = _POSITION.fullmatch(text)
        if found is None:
            return None
        tenant = LanePosition.read(found[1])
        if tenant is None:
            return None
        pairs = (one.split(":") for one in found[2].split(",")[1:])
        runs = {run_id: int(number) for run_id, number in pairs}
        return cls(tenant.home, runs, tenant.others)

    def __str__(self) -> str:
        tenant = str(LanePosition(self.tenant or 0, self.lanes))
        return ",".join([tenant, *(f"{one}:{at}" for one, at in self.runs.items())])


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
    lane: Annotated[
        Count,
        doc(
            "The lane of the tenant that has numbered it, if the tenant has several. Missing: the first."
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
