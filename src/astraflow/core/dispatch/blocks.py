"""The blocks of the ready queue: which tasks wait without entries of their own, by run and number."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from astraflow.core.dispatch.flows import Block
from astraflow.core.ids import RunId

MIN_BLOCK: Final = 4
"""Fewer tasks have entries: a block of them would take as much."""

_stop: Final = attrgetter("stop")


def rows_of(tasks: Sequence[int]) -> Iterator[Sequence[int]]:
    """The same tasks in the same order, cut so that each piece is a row of consecutive numbers, or has none that is
    long enough for a block."""
    if list(tasks) == list(range(tasks[0], tasks[0] + len(tasks))):
        yield tasks
        return
    first = begin = 0
    for end in range(1, len(tasks) + 1):
        if end < len(tasks) and tasks[end] == tasks[end - 1] + 1:
            continue
        if end - begin >= MIN_BLOCK:
            if first < begin:
                yield tasks[first:begin]
            yield tasks[begin:end]
            first = end
        begin = end
    if first < len(tasks):
        yield tasks[first:]


class BlockTable:
    """By run, in the order of their tasks. The blocks of a run have no task in common."""

    def __init__(self) -> None:
        self._blocks: dict[RunId, list[Block]] = {}
        self.tasks = 0
        """How many tasks are in blocks."""

    def find(self, run_id: RunId, task: int) -> Block | None:
        """The block that a task is in."""
        blocks = self._blocks.get(run_id)
        if blocks is None:
            return None
        place = bisect_right(blocks, task, key=_stop)
        return blocks[place] if place < len(blocks) and task in blocks[place] else None

    def is_free(self, run_id: RunId, start: int, stop: int) -> bool:
        """Whether a block of these tasks has none in common with another, not even one that it has lost."""
        blocks = self._blocks.get(run_id, [])
        place = bisect_right(blocks, start, key=_stop)
        return place == len(blocks) or stop <= blocks[place].start

    def add(self, block: Block) -> None:
        insort(self._blocks.setdefault(block.run_id, []), block, key=_stop)
        self.tasks += block.left

    def note_left(self, block: Block, count: int = 1) -> None:
        """So many of its tasks are in it no more. A block without tasks is forgotten."""
        self.tasks -= count
        if not block.left:
            blocks = self._blocks[block.run_id]
            blocks.remove(block)
            if not blocks:
                del self._blocks[block.run_id]

    def __iter__(self) -> Iterator[Block]:
        return (block for blocks in self._blocks.values() for block in blocks)

    def of_run(self, run_id: RunId) -> list[Block]:
        return list(self._blocks.get(run_id, ()))

    def check(self) -> None:
        """Assert that blocks are in order and counted."""
        for run_id, blocks in self._blocks.items():
            assert blocks, f"a run without blocks was kept: {run_id}"
            ends = 0
            for block in blocks:
                assert block.left == sum(task in block for task in range(block.start, block.stop))
                assert block.left > 0, "an empty block was kept"
                assert ends <= block.start, "two blocks have tasks in common"
                ends = block.stop
        assert self.tasks == sum(block.left for block in self)
