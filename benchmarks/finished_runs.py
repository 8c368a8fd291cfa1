"""A store with many finished runs: copies of runs that were executed, written through the store's own commit."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import msgspec

from astraflow.core.ids import RunId
from astraflow.store.rows import Changes, FactSegment, RunRow
from astraflow.store.sqlite import SqliteStore

BATCH_NODES = 20_000
"""Copied nodes of one commit."""


class Template(msgspec.Struct, frozen=True):
    """A finished run as it is stored."""

    row: RunRow
    segments: list[FactSegment]
    nodes: int

    def copy_into(self, changes: Changes, number: int) -> None:
        """The same run under another id. It ended `number` milliseconds earlier."""
        old = self.row.run_id
        # Digits are also those of an id; the ten characters before them are its time.
        new = RunId(f"{old[:10]}{number:016d}")
        assert self.row.finished_at is not None
        changes.runs.append(
            msgspec.structs.replace(
                self.row,
                run_id=new,
                created_at=self.row.created_at - number,
                finished_at=self.row.finished_at - number,
            )
        )
        first, *rest = self.segments
        body = first.body.replace(old.encode(), new.encode())
        changes.segments.append(FactSegment(new, first.first, first.last, body))
        changes.segments += [FactSegment(new, one.first, one.last, one.body) for one in rest]


async def fill(path: Path, sizes: dict[str, int], nodes: int, seconds: float) -> tuple[int, int]:
    """Copy the runs of `sizes` (run id: nodes) in equal shares of nodes until there are so many nodes, or the time is
    over. The nodes and the runs that were written."""
    store = SqliteStore(path)
    await store.open()
    claim = await store.claim("fill")
    assert claim is not None
    templates = [await _template(store, run_id, size) for run_id, size in sizes.items()]
    ends_at = perf_counter() + seconds
    written = runs = commits = 0
    while written < nodes and perf_counter() < ends_at:
        changes = Changes()
        for template in templates:
            for _ in range(max(1, BATCH_NODES // template.nodes)):
                runs += 1
                template.copy_into(changes, runs)
                written += template.nodes
        commits += 1
        await store.commit(claim, commits, changes)
    await store.release(claim)
    await store.close()
    return written, runs


async def _template(store: SqliteStore, run_id: str, nodes: int) -> Template:
    row = await store.find_run("default", RunId(run_id))
    assert row is not None
    assert row.status == "succeeded"
    segments = await store.read_segments(row.run_id)
    while more := await store.read_segments(row.run_id, segments[-1].last):
        segments += more
    return Template(row, segments, nodes)
