"""The guard: enforces the fence, and kills every process of a host.

Rule 1: the worker writes deadlines into the life line, eight bytes each: a double, seconds of CLOCK_MONOTONIC, the
        last one counts, infinity disarms. The guard kills at the deadline (PROTOCOL §5.3).
Rule 2: should the guard itself be hindered, its kernel timer (`setitimer`, default action) ends it a moment later, and
        the kernel ends the host with it (PDEATHSIG).
Rule 3: the life line closes when the worker lets go of it or is gone, however it went: then all are killed at once.
Rule 4: processes that left the group or lost their parents come to the guard (child subreaper). It ends only when it
        has no children left, so the end of the guard is the end of everything that the host started.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import select
import signal
import struct
import time
from collections.abc import Iterable
from typing import NoReturn

from astraflow_sdk.host.settings import HostSettings

EXIT_FENCED = 75
"""The guard's exit code when the fence passed."""
TIMER_DELAY_S = 0.25
"""How long after the deadline the kernel's own timer acts, which kills the host but not its stray children."""
DATA_FACTOR = 2
DATA_ROOM_BYTES = 1024**3
"""A single huge allocation fails at once with MemoryError; the worker's sampling would come too late for it. The room
is for the stacks of threads, which count although they are hardly used."""

_DEADLINE = struct.Struct("=d")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def set_limits(settings: HostSettings) -> None:
    """Limits of the kernel, inherited by all that the host starts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = (
        settings.open_files if hard == resource.RLIM_INFINITY else min(settings.open_files, hard)
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if settings.memory_bytes is not None:
        room = DATA_FACTOR * settings.memory_bytes + DATA_ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (room, room))


def fork_host(life_fd: int, channel_fds: Iterable[int]) -> bool:
    """Fork. Returns False in the host proper; the guard does not return."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guard_pid = os.getpid()
    host_pid = os.fork()
    if host_pid:
        _close(channel_fds)
        _watch(life_fd, host_pid)
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard_pid:  # it ended before the kernel was asked to tell
        os._exit(1)
    os.close(life_fd)
    for fd in channel_fds:
        os.set_inheritable(fd, False)
    return False


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _close(channel_fds: Iterable[int]) -> None:
    """The guard holds nothing that the worker waits to see closed."""
    for fd in channel_fds:
        os.close(fd)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _watch(life_fd: int, host_pid: int) -> NoReturn:
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(name, signal.SIG_IGN)  # only the worker ends a host, through the life line
    os.set_blocking(life_fd, False)
    poll = select.poll()
    poll.register(life_fd, select.POLLIN)
    poll.register(os.pidfd_open(host_pid), select.POLLIN)
    deadline = math.inf
    status: int | None = None
    is_alive = True
    while is_alive and status is None and time.monotonic() < deadline:
        poll.poll(None if deadline == math.inf else _until(deadline) * 1000)
        deadline, is_alive = _newest_deadline(life_fd, deadline)
        status = _reap(host_pid)
    is_fenced = is_alive and status is None
    if status is None:
        _kill_group(host_pid)
    left = _kill_all(host_pid)
    _end_as(EXIT_FENCED << 8 if is_fenced else left if status is None else status)


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _newest_deadline(life_fd: int, deadline: float) -> tuple[float, bool]:
    """The last deadline that was written, and whether the worker still holds its end."""
    newest = b""
    while True:
        try:
            read = os.read(life_fd, 64 * _DEADLINE.size)
        except BlockingIOError:
            break
        if not read:
            return deadline, False
        newest = (newest + read)[-_DEADLINE.size :]
    if newest:
        (deadline,) = _DEADLINE.unpack(newest)
        is_armed = deadline != math.inf
        signal.setitimer(signal.ITIMER_REAL, _until(deadline) + TIMER_DELAY_S if is_armed else 0)
    return deadline, True


def _reap(host_pid: int) -> int | None:
    """Collect ended children, strays included; the status of the host if it is among them."""
    found: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == host_pid:
            found = status


def _kill_all(host_pid: int) -> int:
    """Kill until there is nothing left; the status of the host, if it was still to be collected."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    left = 0
    while True:
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return left
        if pid == host_pid:
            left = status


def _kill_group(host_pid: int) -> None:
    try:
        os.killpg(host_pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it is gone, or had not come to its setsid: then it is a child like others


def _children() -> list[int]:
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children") as listed:
        return [int(pid) for pid in listed.read().split()]


def _end_as(status: int) -> NoReturn:
    """End as the host did, so that the worker sees its exit code or signal as if there were no guard."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
