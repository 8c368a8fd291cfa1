"""Who has a store's file open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from astraflow import errors
from astraflow.client.endpoint import place_of, read_endpoint
from astraflow.config import SchedulerSettings

__all__ = ["file_of", "holder_of", "refuse_if_held"]


def file_of(settings: SchedulerSettings) -> Path | None:
    """The file of a SQLite store; None for other stores."""
    url = settings.store_url
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


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
    """Raises: StoreError, naming the process and where it listens, before anything is started."""
    file = file_of(settings)
    holder = holder_of(file) if file is not None else None
    if holder is None:
        return
    kept = read_endpoint(place_of(settings.data_dir))
    where = f", listening on {kept.url}," if kept and str(kept.pid) == holder else ""
    raise errors.StoreError(
        errors.STORE_LOCKED, f"process {holder}{where} has the store open: {file}"
    )
