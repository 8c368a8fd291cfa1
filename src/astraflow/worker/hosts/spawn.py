"""Spawning a host: its pipes, its process and its first record, all or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec

from astraflow.worker.hosts import procfs
from astraflow.worker.hosts.builtin import host_program
from astraflow.worker.hosts.orphans import HOST_ENV, HostRecord, record_host
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.hosts.settings import HostSpec, PoolSettings
from astraflow.worker.hosts.variables import passed_on


class Spawned(NamedTuple):
    """A started guard and our ends of its pipes, none of which blocks."""

    popen: subprocess.Popen[bytes]
    started: int
    mark: str
    work_dir: Path
    write_fd: int
    life_fd: int
    read_fd: int
    out_fd: int
    err_fd: int
    pid_fd: int


def spawn(spec: HostSpec, settings: PoolSettings, folder: Path) -> Spawned:
    """Start a guard.

    Raises:
        OSError: there is no such program, or no room for a process, a pipe or a record.
    """
    mark = secrets.token_hex(8)
    work_dir = Scratch(folder).make_host_folder(mark)
    try:
        return _spawn(spec, settings, folder, work_dir, mark)
    except OSError:
        shutil.rmtree(work_dir, ignore_errors=True)
        raise


def _spawn(
    spec: HostSpec, settings: PoolSettings, folder: Path, work_dir: Path, mark: str
) -> Spawned:
    mine: list[int] = []
    theirs: list[int] = []
    try:
        for is_to_host in (True, True, False, False, False):
            read_fd, write_fd = os.pipe()
            mine.append(write_fd if is_to_host else read_fd)
            theirs.append(read_fd if is_to_host else write_fd)
        popen = _start(spec, settings, work_dir, theirs, mark)
    except OSError:
        _close(*mine, *theirs)
        raise
    _close(*theirs)
    try:
        mine.append(os.pidfd_open(popen.pid))
        started = procfs.start_time(popen.pid) or 0
        record_host(folder, HostRecord(popen.pid, started, mark=mark))
    except OSError:
        _close(*mine)  # without its life line it ends at once
        popen.wait()
        raise
    for fd in mine:
        os.set_blocking(fd, False)
    return Spawned(popen, started, mark, work_dir, *mine)


def _start(
    spec: HostSpec, settings: PoolSettings, work_dir: Path, fds: list[int], mark: str
) -> subprocess.Popen[bytes]:
    read_fd, life_fd, write_fd, out_fd, err_fd = fds
    told = {
        "read_fd": read_fd,
        "write_fd": write_fd,
        "life_fd": life_fd,
        "folder": str(spec.folder.absolute()),
        "worker_id": settings.worker_id,
        "result_bytes": settings.result_bytes,
        "max_threads": settings.max_threads,
        "open_files": settings.open_files,
        "memory_bytes": spec.memory_limit_bytes,
        "output_bytes": settings.output_bytes,
        "output_bytes_per_s": settings.output_bytes_per_s,
        "tenant": settings.tenant,
        "resources_dir": settings.resources_dir and str(settings.resources_dir.absolute()),
        "keeps_objects": spec.isolation != "attempt",
    }
    # Not resolved: the link is what makes it the Python of its environment.
    python = str(spec.python.absolute())
    return subprocess.Popen(  # noqa: S603  (the package's own interpreter and our own program)
        [python, "-I", "-u", "-X", "utf8", str(host_program()), msgspec.json.encode(told).decode()],
        stdin=subprocess.DEVNULL,
        stdout=out_fd,
        stderr=err_fd,
        pass_fds=(read_fd, write_fd, life_fd),
        cwd=work_dir,
        env={**passed_on(os.environ, settings.environment), HOST_ENV: mark},
        start_new_session=True,
    )


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
