"""A backup holds every row, is refused when a byte of it is wrong, and fills a store of either kind."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.errors import Refused, StoreError
from astraflow.store.backup import (
    EPOCH_GAP,
    RESTORED,
    RestoreNote,
    check_schema,
    manifest_of,
    open_source,
    open_target,
    restore_tables,
    write_tables,
)
from astraflow.store.backup_file import MANIFEST, BackupManifest, reading, writing
from astraflow.store.rows import AffinityRow, RolloutRow, TenantRow
from tests.conformance.store.backends import Backend, PostgresBackend, SqliteBackend
from tests.conformance.store.samples import (
    NEWEST,
    NOW_MS,
    PLAN,
    audit,
    draft,
    event,
    finished,
    intent,
    package,
    resource,
    run,
    segment,
    worker,
    workflow,
)
from tests.conformance.store.test_migrations import bring

KINDS = ["sqlite", "postgres"]


def quiet(step: str, done: int) -> None:
    """Progress that nobody looks at."""


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest) -> Backend:
    backend = request.getfixturevalue(request.param)
    assert isinstance(backend, Backend)
    return backend


@pytest.fixture(params=KINDS)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Another place, with nothing in it."""
    if request.param == "sqlite":
        yield SqliteBackend(tmp_path / "other" / "store.db")
        return
    from tests.processes.postgres import database

    with database(request.getfixturevalue("postgres_url"), "other_store") as url:
        yield PostgresBackend(url)


def url_of(place: Backend) -> str:
    if isinstance(place, SqliteBackend):
        return f"sqlite:///{place.path}"
    assert isinstance(place, PostgresBackend)
    return place.url


async def fill(place: Backend) -> None:
    """Rows of most kinds, with every type of value."""
    async with place.desk() as desk:
        claim = desk.claim
        await desk.write(
            plans=[PLAN],
            runs=[run(1, cancel_requested=True), finished(2, NOW_MS, error=b'{"code":"E"}')],
            segments=[segment(run(1), 1, 2, b"\x00\xff"), segment(run(1), 3, 3)],
            workers=[worker("w-1", labels=b'{"zone":"\xc3\xa4"}', drain=b"{}")],
            intents=[intent("w-1")],
            resources=[resource(1, is_artifact=True, size_bytes=3, blob="artifacts/x")],
            affinities=[AffinityRow("default", "session:7", "w-1", NOW_MS, NOW_MS + 5)],
            rollouts=[RolloutRow("default", "r-1", "acme.texts", "running", b"{}", NOW_MS)],
            events=[event(1), event(2)],
            audits=[audit(1), audit(2)],
            tenants=[TenantRow("acme", True, b"{}", 1, "ann", 2)],
        )
        await desk.store.put_package(claim, package("1.0.0", signature=b"{}"))
        await desk.store.put_workflow(claim, workflow("ä", 1))
        await desk.store.put_draft(claim, draft("ä", 1))
        await desk.store.release(claim)


async def back_up(place: Backend, file: Path) -> BackupManifest:
    with writing(file) as writer:
        async with open_source(url_of(place)) as opened:
            await write_tables(opened, writer, quiet)
        with writer.blob("packages/a") as out:
            out.write(b"an archive")
        manifest = manifest_of(opened.snapshot, writer, NOW_MS, has_blobs=True)
        writer.finish(manifest)
    return manifest


async def restore(file: Path, place: Backend, *, replace: bool = False) -> RestoreNote:
    with reading(file) as reader:
        check_schema(reader)
        reader.verify()
        async with open_target(url_of(place), replace=replace) as target:
            return await restore_tables(reader, target, NOW_MS, quiet)


async def all_rows(place: Backend) -> dict[str, list[Any]]:
    """Every row of every table that is in a backup, whatever its kind."""
    found: dict[str, list[Any]] = {}
    async with open_source(url_of(place)) as opened:
        for table, columns in opened.tables.items():
            kept = [name for name in columns if (table, name) != ("runs", "attempt_floor")]
            rows = [tuple(row) async for some in opened.rows(table, kept) for row in some]
            found[table] = sorted(rows, key=repr)
    found["site"] = [row for row in found["site"] if not row[0].startswith(RESTORED)]
    return {table: [tuple(map(_plain, row)) for row in rows] for table, rows in found.items()}


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


async def test_every_row_comes_back_in_a_store_of_either_kind(
    source: Backend, other: Backend, tmp_path: Path
) -> None:
    await fill(source)
    file = tmp_path / "backup"
    manifest = await back_up(source, file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert (manifest.store, manifest.schema_version) == (source.name, NEWEST)
    assert {part.name: part.rows for part in manifest.tables}["runs"] == 2
    before = await all_rows(source)
    restored = await restore(file, other)
    assert await all_rows(other) == before
    assert sum(map(len, before.values())) == manifest.rows >= 17
    async with other.opened() as store:
        assert (await store.usage()).active_runs == 1
        (active,) = await store.active_runs()
        assert active == msgspec.structs.replace(
            run(1, cancel_requested=True), attempt_floor=restored.first_epoch
        )
        ended = await store.find_run("default", finished(2, NOW_MS).run_id)
        assert ended is not None and ended.attempt_floor == 0
        note = await store.find_site(f"{RESTORED}0")
        assert note is not None and msgspec.json.decode(note, type=RestoreNote) == restored


async def test_a_restored_store_goes_on_above_every_epoch_and_number_of_its_former_life(
    source: Backend, other: Backend, tmp_path: Path
) -> None:
    await fill(source)
    await back_up(source, tmp_path / "backup")
    async with source.desk("two") as desk:
        former = desk.claim.epoch
    restored = await restore(tmp_path / "backup", other)
    async with other.desk() as desk:
        assert desk.claim.epoch > restored.first_epoch >= former + EPOCH_GAP - 1
        await desk.write(audits=[audit(3)])
        numbers = [number for number, _ in await desk.store.audit("default", limit=9)]
        assert numbers == sorted(set(numbers), reverse=True) and numbers[0] > numbers[1]
        assert (await desk.store.usage()).bytes > 0
        await desk.write(segments=[segment(run(1), 4, 4)])


async def test_a_store_is_replaced_only_when_that_is_asked_for_and_its_owner_is_fenced(
    source: Backend, tmp_path: Path
) -> None:
    await fill(source)
    await back_up(source, tmp_path / "backup")
    before = await all_rows(source)
    async with source.desk("two") as desk:
        await desk.write(runs=[run(7)])
        stale = desk.claim
        with pytest.raises(StoreError) as caught:
            await restore(tmp_path / "backup", source, replace=True)
        assert caught.value.code is errors.STORE_LOCKED
        await desk.store.release(stale)
    with pytest.raises(StoreError) as caught:
        await restore(tmp_path / "backup", source)
    assert caught.value.code is errors.STORE_NOT_EMPTY
    assert len((await all_rows(source))["runs"]) == 3
    restored = await restore(tmp_path / "backup", source, replace=True)
    assert await all_rows(source) == before
    async with source.desk() as desk:
        assert desk.claim.epoch > restored.first_epoch > stale.epoch
        desk.claim = stale
        with pytest.raises(StoreError) as caught:
            await desk.write(runs=[run(8)])
        assert caught.value.code is errors.STORE_FENCED


async def test_a_backup_of_an_older_schema_is_brought_forward(
    source: Backend, other: Backend, tmp_path: Path
) -> None:
    await bring(source)
    manifest = await back_up(source, tmp_path / "backup")
    assert manifest.schema_version == 3
    await restore(tmp_path / "backup", other)
    async with source.opened() as store:
        assert (await store.usage()).runs == 2
    assert await all_rows(other) == await all_rows(source)


async def test_a_restore_that_fails_leaves_nothing(
    source: Backend, other: Backend, tmp_path: Path
) -> None:
    """A run whose plan is not there: the file is whole, and no store takes it."""
    await fill(source)
    file = tmp_path / "backup"
    await back_up(source, file)
    with altered(file) as entries:
        manifest = msgspec.json.decode(entries[MANIFEST], type=BackupManifest)
        tables = [part for part in manifest.tables if part.name != "plans"]
        del entries["tables/plans.rows"]
        entries[MANIFEST] = msgspec.json.encode(msgspec.structs.replace(manifest, tables=tables))
    with pytest.raises(StoreError) as caught:
        await restore(file, other)
    assert caught.value.code is errors.STORE_REFUSED
    if isinstance(other, SqliteBackend):
        assert [one.name for one in other.path.parent.iterdir()] == ["store.db.lock"]
    async with other.opened() as store:
        assert (await store.usage()).runs == 0


# -- files that are wrong -------------------------------------------------------------------


@contextmanager
def altered(file: Path) -> Iterator[dict[str, bytes]]:
    """The entries of a backup; what is left of them at the end is written in its place."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    yield entries
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def change_entry(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        with altered(file) as entries:
            entries[name] = change(entries[name])

    return alter


def change_manifest(**fields: Any) -> Callable[[Path], None]:
    def change(text: bytes) -> bytes:
        return msgspec.json.encode({**msgspec.json.decode(text), **fields})

    return change_entry(MANIFEST, change)


def remove(name: str) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        with altered(file) as entries:
            del entries[name]

    return alter


def add(name: str) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        with altered(file) as entries:
            entries[name] = b"more"

    return alter


def tear(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])


def flip(file: Path) -> None:
    """One bit in the middle of what is compressed."""
    with zipfile.ZipFile(file) as archive:
        entry = archive.getinfo("tables/runs.rows")
        place = entry.header_offset + len(entry.filename) + 60
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (tear, "not a whole backup"),
        (flip, "table runs is damaged"),
        (lambda file: file.write_bytes(b"something else"), "not a whole backup"),
        (lambda file: file.unlink(), "No such file"),
        (change_entry("tables/runs.rows", lambda rows: rows[:-3]), "table runs is damaged"),
        (change_entry("tables/runs.rows", lambda rows: rows + rows), "table runs is damaged"),
        (change_entry("blobs/packages/a", lambda _: b"other"), "blob packages/a is damaged"),
        (change_entry(MANIFEST, lambda text: text[:-9]), "the manifest is damaged"),
        (change_manifest(product="other"), "not a backup of AstraFlow"),
        (change_manifest(tables=[{"name": "runs"}]), "the manifest is damaged"),
        (remove("tables/plans.rows"), "table plans is missing"),
        (remove("blobs/packages/a"), "blob packages/a is missing"),
        (remove(MANIFEST), "the manifest is missing"),
        (add("tables/more.rows"), "the manifest does not name tables/more.rows"),
    ],
)
async def test_a_file_that_is_wrong_is_refused_by_what_is_wrong(
    sqlite: SqliteBackend, tmp_path: Path, alter: Callable[[Path], None], words: str
) -> None:
    await fill(sqlite)
    file = tmp_path / "backup"
    await back_up(sqlite, file)
    alter(file)
    with pytest.raises(Refused) as caught:
        await restore(file, SqliteBackend(tmp_path / "other.db"))
    assert caught.value.code is errors.BACKUP_INVALID
    assert words in caught.value.message and str(file) in caught.value.message
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"format": 2}, "format 2"), ({"schemaVersion": NEWEST + 1}, f"schema {NEWEST + 1}")],
)
async def test_a_backup_of_a_newer_version_is_refused(
    sqlite: SqliteBackend, tmp_path: Path, fields: dict[str, int], words: str
) -> None:
    file = tmp_path / "backup"
    await fill(sqlite)
    await back_up(sqlite, file)
    change_manifest(**fields)(file)
    with pytest.raises(Refused) as caught:
        await restore(file, SqliteBackend(tmp_path / "other.db"))
    assert caught.value.code is errors.BACKUP_NEWER
    assert words in caught.value.message


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "sqlite":
        return SqliteBackend(tmp_path / "other.db")
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Backend)
    return found


async def test_a_backup_with_facts_of_a_later_release_is_refused_and_leaves_nothing(
    sqlite: SqliteBackend, empty: Backend, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    await fill(sqlite)
    with closing(sqlite3.connect(sqlite.path)) as connection:
        connection.execute("UPDATE site SET value = '999' WHERE name = 'facts_version'")
        connection.commit()
    await back_up(sqlite, file)
    with pytest.raises(Refused) as caught:
        await restore(file, empty)
    assert caught.value.code is errors.BACKUP_NEWER
    assert "facts of a later version" in caught.value.message
    async with empty.desk() as desk:
        assert await desk.store.list_runs("acme", limit=10) == []
