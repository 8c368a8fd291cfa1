"""Inspection of the store from outside: its contents, and the process that has its file open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Annotated

import typer

from astraflow.cli.server import run_loop
from astraflow.client.endpoint import place_of, read_endpoint
from astraflow.config import SchedulerSettings, load_scheduler
from astraflow.core import errors
from astraflow.store.inspection import Condition
from astraflow.store.sqlite_inspection import inspect_file

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Store: sqlite:///PATH or postgresql://…", show_default="SQLite in the data directory"
    ),
]


def settings_of(
    data_dir: Path | None, database_url: str | None, config: Path | None
) -> SchedulerSettings:
    flags = {"data_dir": data_dir, "database_url": database_url}
    return load_scheduler(flags=flags, file=config).settings


def file_of(settings: SchedulerSettings) -> Path | None:
    """The file of a SQLite store; None for other stores."""
    url = settings.store_url
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def shown_store(settings: SchedulerSettings) -> str:
    """The URL of the store without credentials."""
    scheme, _, rest = settings.store_url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def look_into(settings: SchedulerSettings) -> Condition:
    """Inspect the store, read-only.

    Raises:
        StoreError: the store cannot be inspected.
    """
    file = file_of(settings)
    if file is not None:
        return inspect_file(file)
    if not settings.store_url.startswith("postgres"):
        raise errors.StoreError(
            errors.STORE_READ_ONLY, "A store in memory can only be inspected by its own process"
        )
    # Imported here: the other commands need no PostgreSQL.
    from astraflow.store.postgres_inspection import inspect_database

    found: Condition = run_loop(inspect_database(settings.store_url))
    return found


def holder_of(file: Path) -> str | None:
    """The process id of the scheduler that has the file open."""
    try:
        lock = os.open(f"{file}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


def refuse_if_held(settings: SchedulerSettings) -> None:
    """Raises: StoreError, naming the process that has the store open and its URL."""
    file = file_of(settings)
    holder = holder_of(file) if file is not None else None
    if holder is None:
        return
    kept = read_endpoint(place_of(settings.data_dir))
    where = f", listening on {kept.url}," if kept and str(kept.pid) == holder else ""
    raise errors.StoreError(
        errors.STORE_LOCKED, f"Process {holder}{where} has the store open: {file}"
    )
