"""What a commit costs through the SQLite store, against the same rows through bare sqlite3 in one thread.

Time on the wall, not of the processor: a commit is mostly a flush. The two take turns, so that a slow moment of the
disk hits both; the median of many is what a commit usually costs, and the ratio is what our share of it is. `TMPDIR`
says on which disk.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from astraflow.core.ids import RunId
from astraflow.store.rows import Changes, FactSegment, PlanRow, RunRow
from astraflow.store.sqlite import SqliteStore
from astraflow.store.sqlite_file import connect_writer
from astraflow.store.statements import Statements
from benchmarks.figures import Figure
from benchmarks.store_runs import figures_of_runs

COMMITS = 400
RUNS = 200
BODY = b'{"type":"task_succeeded","task":"00000000-0000-4000-8000-000000000000"}\n' * 5
SMALL_BUDGET_US = 500.0
SEGMENT_BUDGET_US = 13.0
SMALL_RATIO = 1.5
SEGMENT_RATIO = 1.3


class Segments:
    """Segments of many runs in turn, as a busy scheduler writes them."""

    def __init__(self) -> None:
        self._last = 0

    def take(self, count: int) -> list[FactSegment]:
        first = self._last + 1
        self._last += count
        return [
            FactSegment(RunId(f"01J8ZQ5T9GQ4X7V2N3M1K0H{number % RUNS:03}"), number, number, BODY)
            for number in range(first, first + count)
        ]


def first_rows() -> Changes:
    changes = Changes()
    changes.plans.append(PlanRow("plan", b"{}", b"{}"))
    changes.runs += [
        RunRow(
            run_id=RunId(f"01J8ZQ5T9GQ4X7V2N3M1K0H{number:03}"),
            tenant="default",
            workflow_id="flow",
            plan_id="plan",
            created_at=number,
        )
        for number in range(RUNS)
    ]
    return changes


class Bare:
    """The floor: the same statements on the same tables, without threads, checks or answers."""

    def __init__(self, path: Path) -> None:
        statements = Statements("sqlite")
        self.connection = connect_writer(str(path), statements)
        self.connection.execute("PRAGMA wal_autocheckpoint = 1000")
        claim = statements["claim"]
        self.connection.execute(
            claim.text, claim.arguments({"shard": 0, "owner": "bare"})
        ).fetchall()
        self._begin, self._end = statements["begin"].text, statements["commit"].text
        self._fence = statements["fence_commit"]
        self._insert = statements.put[FactSegment].text
        self._number = 0

    def commit(self, segments: list[FactSegment]) -> None:
        self._number += 1
        execute = self.connection.execute
        execute(self._begin)
        fence = {"shard": 0, "epoch": 1, "number": self._number}
        execute(self._fence.text, self._fence.arguments(fence))
        self.connection.executemany(
            self._insert, [msgspec.structs.astuple(segment) for segment in segments]
        )
        execute(self._end)


async def measure(folder: Path, size: int) -> tuple[float, float]:
    """Median microseconds of a commit of so many segments: ours, and bare."""
    store = SqliteStore(folder / f"ours-{size}.db")
    await store.open()
    claim = await store.claim("benchmark")
    assert claim is not None
    await store.commit(claim, 1, first_rows())
    ours, bare = [], []
    our_segments, bare_segments = Segments(), Segments()
    with closing((floor := Bare(folder / f"bare-{size}.db")).connection):
        for number in range(2, COMMITS + 2):
            changes = Changes()
            changes.segments = our_segments.take(size)
            start = time.perf_counter()
            await store.commit(claim, number, changes)
            ours.append(time.perf_counter() - start)
            rows = bare_segments.take(size)
            start = time.perf_counter()
            floor.commit(rows)
            bare.append(time.perf_counter() - start)
    await store.close()
    return statistics.median(ours) * 1e6, statistics.median(bare) * 1e6


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        small, small_floor = asyncio.run(measure(Path(name), 1))
        large, large_floor = asyncio.run(measure(Path(name), 100))
        of_runs = figures_of_runs(Path(name))
    return [
        Figure("commit of 1 segment, flushed", small, "µs", SMALL_BUDGET_US),
        Figure("the same, bare sqlite3 in one thread", small_floor, "µs"),
        Figure("ratio", small / small_floor, "times", SMALL_RATIO),
        Figure("commit of 100 segments, a segment", large / 100, "µs", SEGMENT_BUDGET_US),
        Figure("the same, bare sqlite3 in one thread", large_floor / 100, "µs"),
        Figure("ratio", large / large_floor, "times", SEGMENT_RATIO),
        *of_runs,
    ]
