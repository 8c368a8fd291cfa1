"""Who a worker is: an instance id for ever, an incarnation for each boot, and a lock on its data folder.

PROTOCOL §2: "the instance id alone cannot tell a restarted worker from a reconnected one", so boots are counted, and
the count is on disk before anybody hears of it. "A worker locks its data folder": two processes with one identity
would take each other's work.
"""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from astraflow.core import errors

INSTANCE_FILE: Final = "worker_instance_id"
INCARNATION_FILE: Final = "worker_incarnation"
LOCK_FILE: Final = "worker.lock"


def _keep_all(path: Path) -> None:
    """Nothing of an earlier boot is in the way."""


class DataFolder:
    """A worker's folder, locked while this object lives. Made with `open`, ended with `close`."""

    def __init__(self, path: Path, lock: int, instance_id: str, incarnation: int) -> None:
        self.path = path
        self.instance_id = instance_id
        self.incarnation = incarnation
        self._lock = lock

    @classmethod
    def open(
        cls,
        path: Path,
        make_room: Callable[[Path], None] = _keep_all,
        instance_id: str | None = None,
    ) -> DataFolder:
        """Lock the folder, `make_room` in it, and count this boot. `instance_id`: the one that a certificate names.

        Room is made before anything is written: the boot before may have filled the disk.

        Raises:
            Unavailable: another worker uses the folder, or the disk is full.
            Refused: it cannot be used.
        """
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"Cannot use the data directory: {error}",
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
                f"Data directory {path} is locked by another worker (pid {holder or 'unknown'})",
            ) from error
        try:
            with ExitStack() as undo:
                undo.callback(os.close, lock)
                make_room(path)
                os.truncate(lock, 0)
                os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
                folder = cls(path, lock, *_count_boot(path, instance_id))
                undo.pop_all()
                return folder
        except OSError as error:
            raise errors.Unavailable(
                errors.STORE_FULL if error.errno == errno.ENOSPC else errors.STORE_UNAVAILABLE,
                f"Cannot write to the data directory: {error}",
                detail={"hint": f"free disk space for {path.absolute()}"},
            ) from error

    def close(self) -> None:
        os.close(self._lock)


def _count_boot(path: Path, wanted: str | None) -> tuple[str, int]:
    """The instance id, and the number of this boot. Raises OSError; Refused, when the folder is of another worker."""
    instance_id = _read(path / INSTANCE_FILE)
    if not instance_id:
        instance_id = wanted or str(uuid.uuid4())
        _write(path / INSTANCE_FILE, instance_id)
    if wanted is not None and instance_id != wanted:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"The data directory {path} is that of worker {instance_id}, the certificate names {wanted}",
            pointer="/tls_cert_file",
            detail={"hint": "use another --data-dir, or the certificate of that worker"},
        )
    counted = _read(path / INCARNATION_FILE)
    incarnation = int(counted) + 1 if counted.isdecimal() else 1
    _write(path / INCARNATION_FILE, str(incarnation))
    return instance_id, incarnation


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
