"""Tapes: runs that were accepted lately, in memory: their records, and the segments that were committed of them.

Whoever follows such a run is served without the store. A client submits a run, opens its events, and is told the end.

1. A tape has every segment of its run, or there is none: it begins when the run is accepted.
2. It has only what is committed. The record is that of the engine, which may be ahead: what is shown of it waits for
   the writer, as for any active run.
3. A run that takes more than `RUN_BYTES` has no tape. All tapes take `ALL_BYTES` at the most: the one that was written
   to the longest ago goes first.
4. When runs are removed from the store, or another scheduler may write, there are no tapes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from astraflow.core.ids import RunId
    from astraflow.core.runs.run import RunRecord
    from astraflow.store.rows import FactSegment

RUN_BYTES: Final = 2 * 1024**2
ALL_BYTES: Final = 32 * 1024**2
RECORD_BYTES: Final = 3_000
TASK_BYTES: Final = 1_000
SEGMENT_BYTES: Final = 200
"""What a record takes, and each of its tasks, and a segment, beside their bytes."""

_last = attrgetter("last")


class _Tape:
    __slots__ = ("run", "segments", "size")

    def __init__(self, run: RunRecord, size: int) -> None:
        self.run = run
        self.segments: list[FactSegment] = []
        self.size = size


class Tapes:
    """By run."""

    def __init__(self) -> None:
        self._tapes: OrderedDict[RunId, _Tape] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._tapes)

    def begin(self, run: RunRecord) -> None:
        """This run was accepted. Its first segment follows."""
        size = RECORD_BYTES + TASK_BYTES * len(run.plan.nodes)
        if size <= RUN_BYTES:
            self._tapes[run.run_id] = _Tape(run, size)
            self.bytes += size

    def add(self, segment: FactSegment) -> None:
        """This was committed, after all segments of its run before it."""
        run_id = segment.run_id
        tape = self._tapes.get(run_id)
        if tape is None:
            return
        self._tapes.move_to_end(run_id)
        # The record has what the segment says.
        size = SEGMENT_BYTES + 2 * len(segment.body)
        tape.segments.append(segment)
        tape.size += size
        self.bytes += size
        if tape.size > RUN_BYTES:
            self._drop(run_id)
        while self.bytes > ALL_BYTES:
            self._drop(next(iter(self._tapes)))

    def find(self, run_id: RunId, after: int) -> list[FactSegment] | None:
        """The segments with events beyond `after`; None if the run has no tape."""
        tape = self._tapes.get(run_id)
        if tape is None:
            return None
        if after == 0:
            return list(tape.segments)
        return tape.segments[bisect_right(tape.segments, after, key=_last) :]

    def find_run(self, run_id: RunId) -> RunRecord | None:
        """The run, active or ended."""
        tape = self._tapes.get(run_id)
        return None if tape is None else tape.run

    def last_event(self, run_id: RunId) -> int | None:
        """The number of the last event that is committed; None if the run has no tape."""
        tape = self._tapes.get(run_id)
        return None if tape is None or not tape.segments else tape.segments[-1].last

    def clear(self) -> None:
        self._tapes.clear()
        self.bytes = 0

    def _drop(self, run_id: RunId) -> None:
        self.bytes -= self._tapes.pop(run_id).size
