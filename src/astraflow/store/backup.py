"""Backup and restore of a store: one consistent snapshot into a file, and a file into an empty store.

A restored store never speaks with the numbers of its former life (ADR 38): its epochs, and the attempts of the runs
that were active, go on above `first_epoch`, which nothing of that life can have reached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from astraflow.core import errors
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.backup_file import (
    FORMAT,
    PRODUCT,
    BackupManifest,
    BackupReader,
    BackupWriter,
    StoreSnapshot,
)
from astraflow.store.statements import Dialect, load_migrations
from astraflow.store.written_facts import stated_facts

LEFT_OUT: Final = frozenset({"migrations", "shards", "nodes"})
"""Tables that say who uses the store and how it was made, not what it holds. The manifest has what counts of them."""
EPOCH_GAP: Final = 2**20
"""Claims that a store can have seen since its backup, at the very most."""
RESTORED: Final = "restored:"
"""How the values of the site begin that the first scheduler of each shard finds after a restore."""

Progress = Callable[[str, int], None]
"""Told the table and how many of its rows are done."""


class Source(Protocol):
    """A snapshot of a store, for as long as it is open."""

    snapshot: StoreSnapshot
    tables: dict[str, list[str]]
    """The columns of each table."""

    def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[list[Any]]:
        """All rows, some at a time."""


class Target(Protocol):
    """An empty store that is being filled. Nothing of it is seen before its block has ended well."""

    first_epoch: int
    """An epoch that nothing in the place of the store has reached; 0 if nothing was there."""

    async def prepare(self, schema_version: int, epochs: dict[int, int]) -> list[str]:
        """Make an empty schema of this version; its tables, each behind those that it refers to."""

    async def columns(self, table: str) -> list[str]: ...

    async def add(self, table: str, columns: Sequence[str], rows: list[list[Any]]) -> None: ...

    async def site_values(self) -> dict[str, str]:
        """What the rows that were added say of the facts that are written."""

    async def finish(self, sequences: dict[str, int], epoch: int, note: str) -> None:
        """Bring the schema forward, and write what a restored store begins with."""


class RestoreNote(msgspec.Struct, frozen=True, rename="camel"):
    """What the first scheduler after a restore is told."""

    restored_at: int
    taken_at: int
    first_epoch: int


def open_source(url: str) -> AbstractAsyncContextManager[Source]:
    """The store that a URL names, as it is now. Raises: StoreError, when entered."""
    # Imported where needed: a store of one kind does not pay for the other.
    if dialect_of(url) == "sqlite":
        from astraflow.store.sqlite_backup import sqlite_source

        return sqlite_source(Path(url.removeprefix("sqlite:///")))
    from astraflow.store.postgres_backup import postgres_source

    return postgres_source(url)


def open_target(url: str, *, replace: bool) -> AbstractAsyncContextManager[Target]:
    """The store that a URL names, to be filled. Raises: StoreError, when entered."""
    if dialect_of(url) == "sqlite":
        from astraflow.store.sqlite_restore import sqlite_target

        return sqlite_target(Path(url.removeprefix("sqlite:///")), replace=replace)
    from astraflow.store.postgres_restore import postgres_target

    return postgres_target(url, replace=replace)


def dialect_of(url: str) -> Dialect:
    """Raises: Refused, for a store in memory."""
    if url.startswith("sqlite:///") and not url.endswith(":memory:"):
        return "sqlite"
    if url.startswith("postgres"):
        return "postgres"
    raise errors.Refused(
        errors.CONFIG_INVALID, "A store in memory has no backup", pointer="/database_url"
    )


async def write_tables(source: Source, writer: BackupWriter, progress: Progress) -> None:
    """The rows of every table of the snapshot."""
    for name, columns in source.tables.items():
        progress(name, 0)
        with writer.table(name, columns) as out:
            async for rows in source.rows(name, columns):
                for row in rows:
                    out.add(row)
                progress(name, out.count)


def manifest_of(
    snapshot: StoreSnapshot, writer: BackupWriter, taken_at: int, *, has_blobs: bool
) -> BackupManifest:
    return BackupManifest(
        product=PRODUCT,
        format=FORMAT,
        schema_version=snapshot.schema_version,
        software=snapshot.software,
        store=snapshot.store,
        taken_at=taken_at,
        epochs=snapshot.epochs,
        sequences=snapshot.sequences,
        tables=writer.tables,
        has_blobs=has_blobs,
        blobs=writer.blobs,
    )


def check_schema(reader: BackupReader) -> None:
    """Raises: Refused, if this version cannot bring the schema of the backup forward to its own."""
    manifest, newest = reader.manifest, len(load_migrations("sqlite"))
    if manifest.schema_version > newest:
        raise errors.Refused(
            errors.BACKUP_NEWER,
            f"AstraFlow {manifest.software} wrote it with schema {manifest.schema_version}, "
            f"this version has schema {newest}: {reader.path}",
        )


async def restore_tables(
    reader: BackupReader, target: Target, now_ms: int, progress: Progress
) -> RestoreNote:
    """Fill the target with the rows of a backup that was verified.

    Raises:
        Refused: the backup does not fit the schema that it names.
        StoreError: the store refused it; nothing of it is there.
    """
    manifest = reader.manifest
    parts = {table.name: table for table in manifest.tables}
    order = await target.prepare(manifest.schema_version, manifest.epochs)
    for name in sorted(set(parts) - set(order)):
        raise _unfit(reader, f"schema {manifest.schema_version} has no table {name}")
    for name in order:
        part = parts.get(name)
        if part is None:
            continue
        for column in sorted(set(part.columns) - set(await target.columns(name))):
            raise _unfit(reader, f"table {name} has no column {column}")
        done = 0
        for rows in reader.rows(part):
            await target.add(name, part.columns, rows)
            done += len(rows)
            progress(name, done)
    if "site" in order and stated_facts(await target.site_values()) > FACTS_VERSION:
        raise errors.Refused(
            errors.BACKUP_NEWER,
            f"AstraFlow {manifest.software} wrote it with facts of a later version, "
            f"this version reads them up to {FACTS_VERSION}: {reader.path}",
        )
    known = max((target.first_epoch, *manifest.epochs.values()))
    restored = RestoreNote(now_ms, manifest.taken_at, max(now_ms, known + EPOCH_GAP))
    note = msgspec.json.encode(restored).decode()
    await target.finish(manifest.sequences, restored.first_epoch, note)
    return restored


def _unfit(reader: BackupReader, problem: str) -> errors.Refused:
    return errors.Refused(errors.BACKUP_INVALID, f"{problem}: {reader.path}")
