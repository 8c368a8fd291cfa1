"""Orphaned hosts: hosts are recorded on disk before they get work, so that the next boot of the worker can kill them.

The guard of a host kills everything when its worker is gone, so normally there are no orphans. A record names two
processes, each by pid *and* start time, because pids are reused.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.worker.hosts import procfs

FOLDER: Final = "hosts"
HOST_ENV: Final = "ASTRAFLOW_HOST"
"""Names the host to all that it starts, so that strays are found when the guard itself was killed."""
GONE_TIMEOUT_MS: Final = 10_000
"""For one killed process to be gone; only the kernel can hold it longer."""
ROUNDS: Final = 100
"""Of killing what was forked while we killed."""


class HostRecord(msgspec.Struct, frozen=True):
    """A host as it is written down. `host_pid` leads a session and a group of its own."""

    guard_pid: int
    guard_start: int
    host_pid: int | None = None
    host_start: int | None = None
    mark: str | None = None
    """What all below the host have as `HOST_ENV` in their environment, unless they took pains to lose it."""


def record_host(folder: Path, record: HostRecord) -> None:
    """Write a host down. No fsync: a machine that loses power leaves no orphans."""
    path = _path(folder, record.guard_pid)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(msgspec.json.encode(record))
    unfinished.rename(path)


def forget_host(folder: Path, guard_pid: int) -> None:
    """The host is dead and reaped."""
    _path(folder, guard_pid).unlink(missing_ok=True)


def kill_orphans(folder: Path) -> int:
    """Kill the hosts of an earlier boot that still live, and wait until they are gone. Call it before anything else.

    Returns how many processes were killed.

    Raises:
        errors.Unavailable: one does not end; its work may still be running, so this worker must not begin.
    """
    killed = 0
    for path in sorted((folder / FOLDER).glob("*")):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=HostRecord)
        except msgspec.DecodeError:
            record = None  # it was being written when the worker died: the guard had no work yet
        if record is not None and path.suffix == ".json":
            killed += _kill(record)
        path.unlink(missing_ok=True)
    return killed


def _kill(record: HostRecord) -> int:
    killed: set[int] = set()
    for _ in range(ROUNDS):
        alive = list(_alive(record))
        if not alive:
            return len(killed)
        waiting = [fd for fd in map(_open, alive) if fd is not None]
        procfs.kill_all(alive)
        killed.update(alive)
        try:
            for fd in waiting:
                _wait(fd)
        finally:
            for fd in waiting:
                os.close(fd)
    raise errors.Unavailable(errors.INTERNAL, f"orphaned hosts keep forking: {sorted(killed)}")


def _alive(record: HostRecord) -> Iterator[int]:
    if procfs.start_time(record.guard_pid) == record.guard_start:
        tree = procfs.tree_of(record.guard_pid)
        yield from (pid for pid in tree if procfs.start_time(pid) is not None)
    if record.host_pid is not None and record.host_start is not None:
        yield from procfs.session_of(record.host_pid, record.host_start)
    if record.mark is not None:
        yield from procfs.bearers_of(f"{HOST_ENV}={record.mark}")


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _wait(pidfd: int) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if not poll.poll(GONE_TIMEOUT_MS):
        raise errors.Unavailable(errors.INTERNAL, "an orphaned host does not end after SIGKILL")


def _path(folder: Path, guard_pid: int) -> Path:
    return folder / FOLDER / f"{guard_pid}.json"
