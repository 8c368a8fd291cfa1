"""`astra db backup`, `restore` and `verify`: the whole store in one file, and back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from astraflow.cli.exit_codes import note
from astraflow.cli.output import AsJson, answer
from astraflow.cli.prompts import Yes, confirm
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import DatabaseUrl, refuse_if_held, settings_of, shown_store
from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings
from astraflow.core.timestamps import iso
from astraflow.scheduler.blob_backup import check_place, check_source, restore_blobs, write_blobs
from astraflow.scheduler.blobs import Blobs, blobs_name, open_blobs
from astraflow.store.backup import (
    RestoreNote,
    check_schema,
    manifest_of,
    open_source,
    open_target,
    restore_tables,
    write_tables,
)
from astraflow.store.backup_file import BackupManifest, BackupReader, reading, writing

SHOW_EVERY_S: Final = 0.2

File = Annotated[Path, typer.Argument(metavar="FILE", help="File of the backup")]
WithBlobs = Annotated[
    bool | None,
    typer.Option(
        "--with-blobs/--without-blobs",
        help="Package archives and exported artifacts",
        show_default="with blobs in a folder, without blobs in a bucket",
    ),
]


def backup(
    file: File,
    with_blobs: WithBlobs = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the store into a file. Works while a scheduler is running, and does not hold it up.

    Secrets are in the backup as they are in the store: encrypted with the master key, which is not in the backup. Keep
    the master key (`secrets.key` in the data directory, unless settings name another), the files `secret` and `token`
    and the settings apart from it.
    """
    settings = settings_of(data_dir, database_url, config)
    if file.exists():
        confirm(f"Replace {file}?", yes)
    if with_blobs is None:
        with_blobs = not (settings.blobs_url or "").startswith("s3://")
    blobs = open_blobs(settings.blobs_url, settings.data_dir) if with_blobs else None
    with _Progress("Backing up") as progress:
        manifest: BackupManifest = run_loop(_backup(settings, file, blobs, progress))
    size = file.stat().st_size
    said = f"Wrote {file}: {_contents(manifest)}, {size:,} bytes"
    answer({**_shown(file, manifest), "fileBytes": size}, said, as_json)


async def _backup(
    settings: SchedulerSettings, file: Path, blobs: Blobs | None, progress: _Progress
) -> BackupManifest:
    with writing(file) as writer:
        async with open_source(settings.store_url) as source:
            if blobs is not None:
                name = blobs_name(settings.blobs_url, settings.data_dir)
                await check_source(source, blobs, name)
            taken_at = SystemClock().wall_ms()
            await write_tables(source, writer, progress)
        if blobs is not None:
            # Behind the snapshot: every blob that it refers to is there by now.
            await write_blobs(blobs, writer, progress)
        manifest = manifest_of(source.snapshot, writer, taken_at, has_blobs=blobs is not None)
        writer.finish(manifest)
    return manifest


def restore(
    file: File,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete what the store holds now")
    ] = False,
    with_blobs: WithBlobs = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty store from a backup, of SQLite or PostgreSQL, of this version or an older one.

    No scheduler may use the store. The backup is verified first; then the store is restored as a whole or not at all.
    The first scheduler that starts on it waits for one lease before it serves.
    """
    settings = settings_of(data_dir, database_url, config)
    with reading(file) as reader:
        check_schema(reader)
        refuse_if_held(settings)
        if replace:
            confirm(f"Delete everything in {shown_store(settings)}?", yes)
        blobs = None
        if with_blobs is not False and reader.manifest.has_blobs:
            blobs = open_blobs(settings.blobs_url, settings.data_dir)
        with _Progress("Restoring") as progress:
            progress("verifying the file", 0)
            reader.verify()
            restored: RestoreNote = run_loop(
                _restore(settings, reader, blobs, replace=replace, progress=progress)
            )
    said = f"Restored {_contents(reader.manifest)} into {shown_store(settings)}"
    answer({**_shown(file, reader.manifest), "firstEpoch": restored.first_epoch}, said, as_json)
    if not as_json and not reader.manifest.has_blobs:
        note(
            "hint: the backup has no blobs; blobs_url must name the bucket or folder that has them"
        )


async def _restore(
    settings: SchedulerSettings,
    reader: BackupReader,
    blobs: Blobs | None,
    *,
    replace: bool,
    progress: _Progress,
) -> RestoreNote:
    async with open_target(settings.store_url, replace=replace) as target:
        if blobs is not None:
            # First: a store refers to its blobs. Those of a restore that fails are removed by the next scheduler.
            if not replace:
                await check_place(reader, blobs)
            await restore_blobs(reader, blobs, progress)
        return await restore_tables(reader, target, SystemClock().wall_ms(), progress)


def verify(file: File, as_json: AsJson = False) -> None:
    """Read a backup and compare everything in it with its manifest. Exits with 1 if it is damaged."""
    with reading(file) as reader, _Progress("Verifying") as progress:
        progress(str(file), 0)
        reader.verify()
    answer(_shown(file, reader.manifest), f"ok: {file}: {_contents(reader.manifest)}", as_json)


def _shown(file: Path, manifest: BackupManifest) -> dict[str, Any]:
    return {
        "file": str(file),
        "takenAt": iso(manifest.taken_at),
        "store": manifest.store,
        "schemaVersion": manifest.schema_version,
        "writtenBy": manifest.software,
        "rows": {table.name: table.rows for table in manifest.tables},
        "hasBlobs": manifest.has_blobs,
        "blobs": len(manifest.blobs),
        "blobBytes": sum(blob.size_bytes for blob in manifest.blobs),
    }


def _contents(manifest: BackupManifest) -> str:
    runs = sum(table.rows for table in manifest.tables if table.name == "runs")
    blobs = f"{len(manifest.blobs):,} blobs" if manifest.has_blobs else "no blobs"
    return f"{runs:,} runs, {manifest.rows:,} rows, {blobs}"


class _Progress:
    """One line at the terminal, which is gone at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next_at = 0.0

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, step: str, done: int) -> None:
        now = SystemClock().now()
        if self._is_shown and now >= self._next_at:
            self._next_at = now + SHOW_EVERY_S
            typer.echo(f"\r\x1b[K{self._what}: {step}, {done:,}", err=True, nl=False)

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            typer.echo("\r\x1b[K", err=True, nl=False)
