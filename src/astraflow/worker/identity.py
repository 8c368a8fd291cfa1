"""Who a worker is: an instance id for ever, an incarnation for each boot, and a lock on its data folder.

PROTOCOL §2: "the instance id alone cannot tell a restarted worker from a reconnected one", so boots are counted, and
the count is on disk before anybody hears of it. "A worker locks its data folder": two processes with one identity
would take each other's work.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from pathlib import Path
from typing import Final

from astraflow import errors

__all__ = ["DataFolder"]

INSTANCE_FILE: Final = "worker_instance_id"
INCARNATION_FILE: Final = "worker_incarnation"
LOCK_FILE: Final = "worker.lock"


class DataFolder:
    """A worker's folder, locked while this object lives. Made with `open`, ended with `close`."""

    def __init__(self, path: Path, lock: int, instance_id: str, incarnation: int) -> None:
        self.path = path
        self.instance_id = instance_id
        self.incarnation = incarnation
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Lock the folder and count this boot.

        Raises:
            Unavailable: another worker uses the folder.
            Refused: it cannot be used.
        """
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"the data folder cannot be used: {error}",
                pointer="/data_dir",
                detail={"hint": "choose another folder with --data-dir, or make this one writable"},
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            os.close(lock)
            raise errors.Unavailable(
                errors.WORKER_LOCKED,
                f"another worker (pid {holder or 'unknown'}) uses the folder: {path}",
            ) from error
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        instance_id = _read(path / INSTANCE_FILE)
        if not instance_id:
            instance_id = str(uuid.uuid4())
            _write(path / INSTANCE_FILE, instance_id)
        counted = _read(path / INCARNATION_FILE)
        incarnation = int(counted) + 1 if counted.isdecimal() else 1
        _write(path / INCARNATION_FILE, str(incarnation))
        return cls(path, lock, instance_id, incarnation)

    def close(self) -> None:
        os.close(self._lock)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except FileNotFoundError:
        return ""


def _write(path: Path, text: str) -> None:
    """Durable before it is used: a boot that was told to somebody must not be counted again."""
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
