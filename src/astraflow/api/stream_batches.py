"""A mixed stream on the wire: batches, each with the position after it as its id.

A Server-Sent Event reaches the client whole or not at all. A batch is one such event, so that the position of the
client is always that of the last batch that it has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Final

from astraflow.api.event_streams import error_bytes
from astraflow.api.responses import PIECE_BYTES, encode
from astraflow.api.run_routes import bounded
from astraflow.core.contract.events import RunSnapshot
from astraflow.core.contract.streams import StreamItem, StreamPosition
from astraflow.core.errors import AstraflowError
from astraflow.core.runs.coalescing import join_outputs
from astraflow.scheduler.mixed_events import MixedFollower

_BATCH: Final = b'id: %b\nevent: batch\ndata: {"events":[%b]}\n\n'


def batch_bytes(position: StreamPosition, encoded: Iterable[bytes]) -> bytes:
    """One batch of encoded events."""
    return _BATCH % (str(position).encode(), b",".join(encoded))


async def batch_pieces(follower: MixedFollower, interval_s: float) -> AsyncGenerator[bytes, None]:
    """What a follower sees, as batches of at most about `PIECE_BYTES`. With an interval, output is joined."""
    cut = _Batches(follower.position)
    async with aclosing(follower.batches(interval_s)) as batches:
        try:
            async for items in batches:
                groups = join_outputs(items) if interval_s else ([item] for item in items)
                for piece in cut.cut(groups):
                    yield piece
        except AstraflowError as error:
            yield error_bytes(error)


class _Batches:
    """Cuts events into batches, and counts how far the client has come."""

    def __init__(self, position: StreamPosition) -> None:
        self._tenant = position.tenant
        self._lanes = dict(position.lanes)
        self._runs = dict(position.runs)

    def cut(self, groups: Iterable[list[StreamItem]]) -> Iterator[bytes]:
        """A group is never cut: the numbers in it are not in order."""
        gathered: list[bytes] = []
        size = 0
        for group in groups:
            for item in group:
                self._count(item)
                if isinstance(item.body, RunSnapshot):
                    bounded(item.body)
                gathered.append(encode(item))
                size += len(gathered[-1])
            if size >= PIECE_BYTES:
                yield batch_bytes(self._position(), gathered)
                gathered, size = [], 0
        if gathered:
            yield batch_bytes(self._position(), gathered)

    def _count(self, item: StreamItem) -> None:
        if not item.id:
            return
        if item.run_id is None and item.lane:
            self._lanes[item.lane] = item.id
        elif item.run_id is None:
            self._tenant = item.id
        else:
            self._runs[item.run_id] = max(item.id, self._runs.get(item.run_id, 0))

    def _position(self) -> StreamPosition:
        return StreamPosition(self._tenant, self._runs, self._lanes)
