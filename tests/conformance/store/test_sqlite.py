"""What only a file can do: be locked, damaged, foreign, newer, full, or left behind by a killed process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.sqlite import SqliteStore
from astraflow.store.sqlite_file import APPLICATION_ID, LOG_BYTES
from astraflow.store.sqlite_writer import SqliteWriter
from astraflow.store.store import Retention, Store
from tests.conformance.store.backends import SqliteBackend
from tests.conformance.store.samples import NOW_MS, PLAN, finished, package, run, segment, workflow
from tests.processes.process import ROOT


async def refused(store: Store) -> StoreError:
    """Why it cannot be opened."""
    with pytest.raises(StoreError) as caught:
        await store.open()
    return caught.value


def tell(path: Path, *orders: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for order in orders:
            connection.execute(order)
        connection.commit()


def damage(path: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        find = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (root,) = connection.execute(find, (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)


def start(program: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


async def test_the_files_belong_to_their_owner_alone(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        await desk.write(plans=[PLAN])
        files = sorted(sqlite.path.parent.iterdir())
        assert [file.name for file in files] == [
            "store.db",
            "store.db-shm",
            "store.db-wal",
            "store.db.lock",
        ]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


async def test_every_commit_is_flushed(sqlite: SqliteBackend) -> None:
    async with sqlite.opened() as store:
        assert isinstance(store, SqliteStore)

        def settings(writer: SqliteWriter) -> list[object]:
            names = ("synchronous", "journal_mode", "foreign_keys", "application_id")
            return [writer.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        assert await store.database.writes.call(settings) == [2, "wal", 1, APPLICATION_ID]


async def test_a_file_in_use_is_locked_and_says_by_whom(sqlite: SqliteBackend) -> None:
    async with sqlite.opened():
        error = await refused(sqlite.store())
        assert error.code is errors.STORE_LOCKED
        assert f"process {os.getpid()} " in error.message
    async with sqlite.opened():
        pass


async def test_a_newer_schema_is_left_alone(sqlite: SqliteBackend) -> None:
    async with sqlite.opened():
        pass
    tell(
        sqlite.path,
        "INSERT INTO migrations VALUES (1000, 'later', '9.8.7', NULL)",
        "PRAGMA user_version = 1000",
    )
    before = sqlite.path.read_bytes()
    error = await refused(sqlite.store())
    assert error.code is errors.STORE_NEWER
    assert "9.8.7" in error.message
    assert sqlite.path.read_bytes() == before


async def test_what_is_no_database_is_left_alone(sqlite: SqliteBackend) -> None:
    text = b"Dear diary, this is no database. " * 200
    sqlite.path.write_bytes(text)
    assert (await refused(sqlite.store())).code is errors.STORE_FOREIGN
    assert sqlite.path.read_bytes() == text


async def test_the_database_of_another_program_is_left_alone(sqlite: SqliteBackend) -> None:
    tell(sqlite.path, "CREATE TABLE bookmarks (url TEXT)")
    before = sqlite.path.read_bytes()
    assert (await refused(sqlite.store())).code is errors.STORE_FOREIGN
    tell(sqlite.path, "PRAGMA application_id = 7")
    assert (await refused(sqlite.store())).code is errors.STORE_FOREIGN
    assert len(sqlite.path.read_bytes()) == len(before)


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = await refused(SqliteStore(tmp_path / "nowhere" / "store.db"))
    assert error.code is errors.STORE_READ_ONLY
    assert "nowhere/store.db" in error.message


READ_ONLY = """
import asyncio, os, sys
from astraflow.core.errors import StoreError
from astraflow.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(store.open())
except StoreError as error:
    print(error.code)
"""


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can look into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def lock_out(folder: Path, name: str) -> None:
    """One file may only be read, the others be written, by everybody."""
    for file in folder.iterdir():
        file.chmod(0o444 if file.name == name else 0o666)


@pytest.mark.parametrize("locked_out", ["store.db", "store.db.lock"])
async def test_a_file_that_may_only_be_read_is_refused(reachable: Path, locked_out: str) -> None:
    async with SqliteBackend(reachable / "store.db").opened():
        pass
    lock_out(reachable, locked_out)
    # The superuser may write everything, so a child without rights tries it.
    answer, _ = start(READ_ONLY, reachable / "store.db").communicate(timeout=30)
    assert answer.strip() == errors.STORE_READ_ONLY.code


async def test_a_damaged_file_is_refused(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        await desk.write(plans=[PLAN])
    with sqlite.path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3_000)
    assert (await refused(sqlite.store())).code is errors.STORE_CORRUPT


async def test_damage_found_later_stops_the_writer_for_good(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
    damage(sqlite.path, "shards")
    async with sqlite.opened() as store:
        for _ in range(2):
            with pytest.raises(StoreError) as caught:
                await store.claim("two")
            assert caught.value.code is errors.STORE_CORRUPT


async def test_a_read_that_meets_damage_says_so(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
    damage(sqlite.path, "plans")
    async with sqlite.opened() as store:
        with pytest.raises(StoreError) as caught:
            await store.find_plan(PLAN.plan_id)
        assert caught.value.code is errors.STORE_CORRUPT
        assert await store.find_run("default", run(1).run_id) == run(1)


async def test_a_full_disk_refuses_the_commit_and_keeps_the_store(sqlite: SqliteBackend) -> None:
    def limit(pages: int) -> object:
        def set_limit(writer: SqliteWriter) -> None:
            writer.connection.execute(f"PRAGMA max_page_count = {pages}")

        return set_limit

    async with sqlite.desk() as desk:
        assert isinstance(desk.store, SqliteStore)
        await desk.write(plans=[PLAN], runs=[run(1)])
        await desk.store.database.writes.call(limit(50))  # type: ignore[arg-type]
        with pytest.raises(StoreError) as caught:
            await desk.write(segments=[segment(run(1), 1, 1, bytes(1_000_000))])
        assert caught.value.code is errors.STORE_FULL
        assert caught.value.retryable
        assert not await desk.store.is_committed(desk.claim, 2)
        assert await desk.store.read_segments(run(1).run_id) == []
        await desk.store.database.writes.call(limit(10_000))  # type: ignore[arg-type]
        await desk.write(segments=[segment(run(1), 1, 1, bytes(1_000_000))])
        assert await desk.store.is_committed(desk.claim, 3)


async def test_a_foreign_program_that_holds_the_file_makes_it_unavailable(
    sqlite: SqliteBackend,
) -> None:
    async with sqlite.desk() as desk:
        assert isinstance(desk.store, SqliteStore)

        def hurry(writer: SqliteWriter) -> None:
            writer.connection.execute("PRAGMA busy_timeout = 1")

        await desk.store.database.writes.call(hurry)
        with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError) as caught:
                await desk.write(plans=[PLAN])
            assert caught.value.code is errors.STORE_UNAVAILABLE
            other.execute("ROLLBACK")
        await desk.write(plans=[PLAN])
        assert await desk.store.find_plan(PLAN.plan_id) == PLAN


async def test_nothing_is_left_running_or_open_after_a_failed_open(sqlite: SqliteBackend) -> None:
    sqlite.path.write_bytes(b"x" * 5_000)
    before = (threading.active_count(), len(os.listdir("/proc/self/fd")))
    for _ in range(3):
        await refused(sqlite.store())
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


async def test_a_store_that_is_not_open_refuses_and_does_not_hang(sqlite: SqliteBackend) -> None:
    sqlite.path.write_bytes(b"x" * 5_000)
    store = sqlite.store()
    for _ in range(2):
        for question in (store.find_plan("p"), store.claim("one")):
            with pytest.raises(StoreError) as caught:
                await question
            assert caught.value.code is errors.STORE_UNAVAILABLE
        await refused(store)


async def test_one_who_stops_waiting_does_not_stop_the_commit(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        waiting = asyncio.ensure_future(desk.write(plans=[PLAN], runs=[run(1)]))
        await asyncio.sleep(0)  # the commit is on its way now
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await desk.store.is_committed(desk.claim, 1)
        assert await desk.find(run(1)) == run(1)


async def test_freed_space_is_used_again(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        rounds = []
        for number in range(6):
            row = finished(number, number + 1)
            segments = [segment(row, one, one, bytes(40_000)) for one in range(1, 51)]
            await desk.write(plans=[PLAN], runs=[row], segments=segments)
            while (await desk.store.sweep(desk.claim, Retention(), NOW_MS)).more:
                pass
            rounds.append((await desk.store.usage()).bytes)
        assert len(set(rounds)) == 1  # nothing stays behind
    assert sqlite.path.stat().st_size < 2 * 50 * 40_000


async def test_a_file_that_is_mostly_free_shrinks(sqlite: SqliteBackend) -> None:
    row = finished(1, 1)
    async with sqlite.desk() as desk:
        segments = [segment(row, one, one, bytes(2**20)) for one in range(1, 41)]
        await desk.write(plans=[PLAN], runs=[row], segments=segments)
        while (await desk.store.sweep(desk.claim, Retention(), NOW_MS)).more:
            pass
    # What is kept to be used again, a piece that was on its way, and the empty tables.
    assert sqlite.path.stat().st_size < 21 * 2**20


async def test_the_log_is_copied_beside_the_writer_and_stays_bounded(
    sqlite: SqliteBackend,
) -> None:
    written = 0
    async with sqlite.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        for number in range(1, 201):
            body = bytes(2**19)
            written += len(body)
            await desk.write(segments=[segment(run(1), number, number, body)])
        log = sqlite.path.with_name("store.db-wal").stat().st_size
        assert log < written / 2
    assert not sqlite.path.with_name("store.db-wal").exists()
    assert sqlite.path.stat().st_size > written


async def test_the_log_stays_bounded_whatever_writes(sqlite: SqliteBackend) -> None:
    """Workflows and packages are saved past the commits of the engine."""
    written = 0
    async with sqlite.desk() as desk:
        for number in range(1, 101):
            body = bytes(2**19)
            written += 2 * len(body)
            row = workflow("a", number, definition=body)
            await desk.store.put_workflow(desk.claim, row)
            await desk.store.put_package(desk.claim, package(f"1.0.{number}", manifest=body))
        log = sqlite.path.with_name("store.db-wal").stat().st_size
    assert log < written / 2


async def test_a_log_has_its_length_from_the_start_and_is_read_up_to_what_was_written(
    sqlite: SqliteBackend, tmp_path: Path
) -> None:
    async with sqlite.desk() as desk:
        log = sqlite.path.with_name("store.db-wal")
        assert log.stat().st_size == LOG_BYTES
        await desk.write(plans=[PLAN], runs=[run(1)])
        await desk.write(segments=[segment(run(1), 1, 1, b"here")])
        assert log.stat().st_size == LOG_BYTES
        crashed = tmp_path / "crashed.db"  # the files as they are at this moment
        shutil.copy(sqlite.path, crashed)
        shutil.copy(log, f"{crashed}-wal")
    for _ in range(2):  # also when it is opened a second time
        async with SqliteBackend(crashed).opened() as store:
            assert await store.find_run("default", run(1).run_id) == run(1)
            (only,) = await store.read_segments(run(1).run_id)
            assert only.body == b"here"


NO_LONGER_LOG = """
import asyncio, resource, sys
from astraflow.store.rows import Changes
from astraflow.store.sqlite import SqliteStore
from tests.conformance.store.samples import PLAN, run

async def main():
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, limit[1]))
    store = SqliteStore(sys.argv[1])
    await store.open()
    claim = await store.claim("child")
    first = Changes()
    first.plans.append(PLAN)
    first.runs.append(run(1))
    await store.commit(claim, 1, first)
    await store.close()

asyncio.run(main())
"""


async def test_a_log_that_cannot_be_lengthened_grows_as_it_is_used(sqlite: SqliteBackend) -> None:
    child = start(NO_LONGER_LOG, sqlite.path)
    child.communicate(timeout=30)
    assert child.returncode == 0
    async with sqlite.opened() as store:
        assert await store.find_run("default", run(1).run_id) == run(1)


async def test_a_log_that_could_not_be_copied_stops_the_writer(sqlite: SqliteBackend) -> None:
    async with sqlite.desk() as desk:
        assert isinstance(desk.store, SqliteStore)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        desk.store.database.writes.post(lambda writer: writer.finish_checkpoint(error))
        for _ in range(2):
            with pytest.raises(StoreError) as caught:
                await desk.write(plans=[PLAN])
            assert caught.value.code is errors.STORE_BROKEN
        assert not caught.value.retryable
        with pytest.raises(StoreError):
            await desk.store.is_committed(desk.claim, 1)


NO_MORE_BYTES = """
import asyncio, resource, sys
from astraflow.core.errors import StoreError
from astraflow.store.rows import Changes
from astraflow.store.sqlite import SqliteStore
from tests.conformance.store.samples import PLAN, segment, run

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    claim = await store.claim("child")
    first = Changes()
    first.plans.append(PLAN)
    first.runs.append(run(1))
    await store.commit(claim, 1, first)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limit[1]))
    for number in (2, 3):
        changes = Changes()
        changes.segments.append(segment(run(1), number, number, bytes(1_000_000)))
        try:
            await store.commit(claim, number, changes)
        except StoreError as error:
            print(error.code)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    await store.close()

asyncio.run(main())
"""


async def test_a_write_that_the_system_fails_is_the_last_one(sqlite: SqliteBackend) -> None:
    """The system refuses a write in the middle; that it would take the next one changes nothing."""
    answer, _ = start(NO_MORE_BYTES, sqlite.path).communicate(timeout=30)
    assert answer.split() == [errors.STORE_BROKEN.code] * 2
    async with sqlite.opened() as store:
        assert await store.find_run("default", run(1).run_id) == run(1)
        assert await store.read_segments(run(1).run_id) == []


WRITER = """
import asyncio, sys
from astraflow.store.sqlite import SqliteStore
from astraflow.store.rows import Changes
from tests.conformance.store.samples import PLAN, segment, run

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    claim = await store.claim("child")
    number = 0
    while True:
        number += 1
        changes = Changes()
        if number == 1:
            changes.plans.append(PLAN)
            changes.runs.append(run(1))
        changes.segments += [segment(run(1), 2 * number - 1, 2 * number - 1, b"x" * 5000),
                          segment(run(1), 2 * number, 2 * number, b"y" * 5000)]
        await store.commit(claim, number, changes)
        print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 7, 60])
async def test_a_killed_process_leaves_every_acknowledged_commit_whole(
    sqlite: SqliteBackend, acknowledged: int
) -> None:
    child = start(WRITER, sqlite.path)
    assert child.stdout is not None
    try:
        told = [int(child.stdout.readline()) for _ in range(acknowledged)]
    finally:
        os.kill(child.pid, signal.SIGKILL)
        # Not `communicate`: it reads past what `readline` has buffered.
        rest = child.stdout.read()
        child.wait(30)
        child.stdout.close()
    told += [int(line) for line in rest.splitlines() if line]
    async with sqlite.opened() as store:
        segments = await store.read_segments(run(1).run_id, max_bytes=10**9)
        assert len(segments) % 2 == 0
        assert len(segments) // 2 in (told[-1], told[-1] + 1)
        assert [one.last for one in segments] == list(range(1, len(segments) + 1))
    with closing(sqlite3.connect(sqlite.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
