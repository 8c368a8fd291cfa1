"""What a run costs the SQLite store: to accept and to end it, and to remove it later among many others."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import closing
from pathlib import Path

import msgspec

from astraflow.core.ids import RunId
from astraflow.store.rows import (
    Changes,
    FactSegment,
    PlanRow,
    RunChange,
    RunRow,
    TenantEvent,
)
from astraflow.store.sqlite import SqliteStore
from astraflow.store.sqlite_file import connect_writer
from astraflow.store.sqlite_writer import SHARD, SqliteWriter
from astraflow.store.statements import Statements
from astraflow.store.store import Claim, Retention
from benchmarks.figures import Figure

STORED = 20_000
"""Finished runs that are there before a run is measured."""
WORKFLOWS = 10
RUNS = 300
ACCEPTED = b'{"fact":"task.leased","at":1794871470390,"task":0,"attempt":0,"worker":"w"}\n' * 5
ENDED = b'{"fact":"run.finished","at":1794871470394,"status":"succeeded"}\n' * 3
FEW, MANY = 2_000, 50_000
PIECES = 8
PIECE_RATIO = 1.3
RUN_BUDGET_US = 300.0
RUN_BUDGET_KIB = 95.0


class Runs:
    """Runs as the row writer writes them: what begins at once is one commit, what ends is another."""

    def __init__(self) -> None:
        self._events = 0

    def add_accepted(self, changes: Changes, number: int) -> None:
        """A run is there, has begun, and its task is leased."""
        run_id, at = _run_id(number), number
        changes.runs.append(_row(number))
        changes.run_changes.append(RunChange(run_id, "running", False, at, None, None))
        changes.segments.append(FactSegment(run_id, 1, 3, ACCEPTED))
        self._tell(changes, at, b'{"runId":"%s","status":"queued"}' % run_id.encode())
        self._tell(changes, at, b'{"runId":"%s","status":"running"}' % run_id.encode())

    def add_ended(self, changes: Changes, number: int) -> None:
        run_id, at = _run_id(number), number
        changes.run_changes.append(RunChange(run_id, "succeeded", False, at, at, None))
        changes.segments.append(FactSegment(run_id, 4, 7, ENDED))
        self._tell(changes, at, b'{"runId":"%s","status":"succeeded"}' % run_id.encode())

    def stored(self, first: int, count: int) -> Changes:
        """Runs that have ended."""
        changes = Changes()
        for number in range(first, first + count):
            ended = {"status": "succeeded", "started_at": number, "finished_at": number}
            changes.runs.append(msgspec.structs.replace(_row(number), **ended))
            changes.segments.append(FactSegment(_run_id(number), 1, 7, ACCEPTED + ENDED))
            self._tell(changes, number, b'{"runId":"%s"}' % _run_id(number).encode())
        return changes

    def _tell(self, changes: Changes, at: int, body: bytes) -> None:
        self._events += 1
        changes.events.append(TenantEvent("default", self._events, at, "run.status", body))


def _run_id(number: int) -> RunId:
    return RunId(f"01M7K{number:010}XN3MASXXR00")


def _row(number: int) -> RunRow:
    workflow = number * 37 % WORKFLOWS
    return RunRow(
        run_id=_run_id(number),
        tenant="default",
        workflow_id=f"{workflow:08}-536f-4079-a04c-2f08a03f5558",
        plan_id=_plan_id(workflow),
        created_at=number,
        submitted_by="bootstrap",
    )


def _plan_id(workflow: int) -> str:
    return f"{workflow:02}" * 32


def _plans() -> Changes:
    changes = Changes()
    changes.plans += [PlanRow(_plan_id(number), b"{}", b"{}") for number in range(WORKFLOWS)]
    return changes


def measure_run(folder: Path) -> tuple[float, float]:
    """Microseconds of CPU and KiB of log for one run that is alone in its two commits."""
    path = folder / "runs.db"
    statements, runs = Statements("sqlite"), Runs()
    with closing(connect_writer(str(path), statements)) as connection:
        writer = SqliteWriter(connection, statements)
        claim = Claim("benchmark", writer.claim(SHARD, "benchmark"), None, SHARD)
        writer.commit(claim, 1, _plans())
        writer.commit(claim, 2, runs.stored(0, STORED))
        # The flush is the system's time, which differs from disk to disk.
        connection.execute("PRAGMA synchronous = OFF")
        # Without a copying thread the log is not begun anew: its length is what was written.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        start = time.process_time()
        for number in range(RUNS):
            accepted, ended = Changes(), Changes()
            runs.add_accepted(accepted, STORED + number)
            writer.commit(claim, 3 + 2 * number, accepted)
            runs.add_ended(ended, STORED + number)
            writer.commit(claim, 4 + 2 * number, ended)
        cpu_s = time.process_time() - start
        return cpu_s / RUNS * 1e6, Path(f"{path}-wal").stat().st_size / RUNS / 1024


async def measure_pieces(folder: Path) -> tuple[float, float]:
    """Milliseconds of CPU for a piece of a sweep: among few finished runs, and among many."""
    few, few_claim = await _filled(folder / "few.db", FEW)
    many, many_claim = await _filled(folder / "many.db", MANY)
    of_few: list[float] = []
    of_many: list[float] = []
    limits = Retention(finished_runs=0)
    for _ in range(PIECES + 1):
        for store, claim, found in ((few, few_claim, of_few), (many, many_claim, of_many)):
            start = time.process_time()
            swept = await store.sweep(claim, limits, MANY)
            found.append(time.process_time() - start)
            assert swept.more
    await few.close()
    await many.close()
    # The first piece counts, for all that follow.
    return statistics.median(of_few[1:]) * 1e3, statistics.median(of_many[1:]) * 1e3


async def _filled(path: Path, count: int) -> tuple[SqliteStore, Claim]:
    store, runs = SqliteStore(path), Runs()
    await store.open()
    claim = await store.claim("benchmark")
    assert claim is not None
    await store.commit(claim, 1, _plans())
    for number, first in enumerate(range(0, count, FEW), 2):
        await store.commit(claim, number, runs.stored(first, FEW))
    # Its log is copied when it is closed, not while something else is measured.
    await store.close()
    await store.open()
    claim = await store.claim("benchmark")
    assert claim is not None
    return store, claim


def figures_of_runs(folder: Path) -> list[Figure]:
    cpu_us, log_kib = measure_run(folder)
    few, many = asyncio.run(measure_pieces(folder))
    return [
        Figure(
            "one run accepted and ended, processor without flushes", cpu_us, "µs", RUN_BUDGET_US
        ),
        Figure("one run accepted and ended, log", log_kib, "KiB", RUN_BUDGET_KIB),
        Figure("a piece of a sweep among 2,000 finished runs", few, "ms"),
        Figure("the same among 50,000", many, "ms"),
        Figure("ratio", many / few, "times", PIECE_RATIO),
    ]
