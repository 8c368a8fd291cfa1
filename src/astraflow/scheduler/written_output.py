"""What the nodes of a run have written so far, for who comes late: the newest of it, up to a limit."""

from __future__ import annotations

from typing import Final, NamedTuple

from astraflow.core.contract.events import JoinedOutput, NodeOutput
from astraflow.core.contract.streams import StreamItem
from astraflow.core.ids import RunId
from astraflow.core.runs.coalescing import as_joined, join_outputs
from astraflow.core.runs.facts import AttemptProgressed
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from astraflow.scheduler.ended_runs import facts_of
from astraflow.store.rows import FactSegment
from astraflow.store.store import Store

OUTPUT_CHARS: Final = 1024**2
"""The output of a run that a snapshot holds."""
SCANNED_BYTES: Final = 4 * 1024**2
"""The facts that are read for it."""
READ_BYTES: Final = 256 * 1024
"""What is read at once: others have their turn between."""


class WrittenOutput(NamedTuple):
    """The end of the output of a run."""

    output: list[JoinedOutput]
    is_truncated: bool


async def read_output(store: Store, run_id: RunId, upto: int, places: TaskPlaces) -> WrittenOutput:
    """The output up to event `upto`. `places` knows all tasks of the run."""
    found: list[StreamItem] = []
    chars = scanned = 0
    before = upto + 1
    while before > 1 and chars < OUTPUT_CHARS and scanned < SCANNED_BYTES:
        segments = await store.read_segments_back(run_id, before, READ_BYTES)
        if not segments:
            break
        for segment in segments:
            pieces = _pieces(segment, upto, places)
            found += reversed(pieces)
            chars += sum(len(one.body.text or one.body.data_base64 or "") for one in pieces)
        scanned += sum(len(one.body) for one in segments)
        before = segments[-1].first
    kept, is_whole = _newest(found), before <= 1
    joined = [as_joined(one.body) for group in join_outputs(reversed(kept)) for one in group]
    return WrittenOutput(joined, not is_whole or len(kept) < len(found))


def _pieces(segment: FactSegment, upto: int, places: TaskPlaces) -> list[StreamItem]:
    """The pieces of output of a segment, in order."""
    return [
        StreamItem(id=event.id, type=event.type, body=event.body)
        for numbered in facts_of(segment)
        if isinstance(numbered.fact, AttemptProgressed) and numbered.fact.chunks
        for event in events_of(numbered.fact, numbered.first, places)
        if event.id <= upto and isinstance(event.body, NodeOutput)
    ]


def _newest(found: list[StreamItem]) -> list[StreamItem]:
    """Of pieces, the newest first, those within the limit."""
    left = OUTPUT_CHARS
    for place, one in enumerate(found):
        left -= len(one.body.text or one.body.data_base64 or "")
        if left < 0 and place:
            return found[:place]
    return found
