"""The events of a run on the wire, made once for all who follow it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Final, NamedTuple

from astraflow.api.event_streams import error_bytes
from astraflow.api.responses import PIECE_BYTES, encode
from astraflow.api.short_events import short_bytes
from astraflow.core.contract.events import Event
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.errors import AstraflowError
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import RunFinished
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from astraflow.scheduler.byte_cache import ByteCache
from astraflow.scheduler.ended_runs import facts_of
from astraflow.scheduler.run_events import RunEvents
from astraflow.store.rows import FactSegment

CACHE_BYTES: Final = 8 * 1024**2
LARGEST_BYTES: Final = 1024**2
SHOWN_BYTES: Final = 300
"""What a segment takes beside its bytes."""

_Batches = AsyncGenerator[tuple[RunEvents, list[FactSegment]], None]


def event_bytes(event: Event, position: str = "") -> bytes:
    """One event on the wire. JSON has no line ends, so one `data` line is enough. `position`: its id in the stream, if
    that is not its number."""
    number = (position or str(event.id)).encode()
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (number, event.type.encode(), encode(event))


def pieces_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Joined to pieces of at most about `PIECE_BYTES`."""
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _lines(facts: list[NumberedFact], places: TaskPlaces) -> Iterator[bytes]:
    for numbered in facts:
        fact, first = numbered.fact, numbered.first
        short = short_bytes(fact, first, places)
        if short is None:
            yield from map(event_bytes, events_of(fact, first, places))
        else:
            yield short


class _Shown(NamedTuple):
    pieces: tuple[bytes, ...]
    is_over: bool


class ShownSegments:
    """Keeps what was made of the last segments: those who follow a run are mostly at the same place."""

    def __init__(self) -> None:
        self._cache: ByteCache[tuple[RunId, int], _Shown] = ByteCache(CACHE_BYTES, LARGEST_BYTES)

    async def follow(self, batches: _Batches) -> AsyncGenerator[bytes, None]:
        """What a follower of a run is sent, in pieces."""
        async with aclosing(batches):
            try:
                async for made, segments in batches:
                    shown = (piece for one in segments for piece in self._show(made, one))
                    for piece in pieces_of(shown):
                        yield piece
            except AstraflowError as error:
                yield error_bytes(error)

    def _show(self, made: RunEvents, segment: FactSegment) -> tuple[bytes, ...]:
        if made.after >= segment.first:  # some of it was seen before: that is nobody else's place
            return tuple(map(event_bytes, made.take((segment,))))
        key = (segment.run_id, segment.last)
        shown = self._cache.find(key)
        if shown is not None:
            made.pass_over(segment, is_over=shown.is_over)
            return shown.pieces
        facts = facts_of(segment)
        pieces = tuple(pieces_of(_lines(facts, made.places)))
        made.pass_over(segment, is_over=isinstance(facts[-1].fact, RunFinished))
        size = SHOWN_BYTES + sum(map(len, pieces))
        self._cache.put(key, _Shown(pieces, made.is_over), size)
        return pieces
