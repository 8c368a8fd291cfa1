"""Reads `/proc`: identity, children and memory of processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final, NamedTuple

_CGROUP_LIMITS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/<pid>/stat after the name, which may itself hold spaces and brackets.
_STATE: Final = 0
_SESSION: Final = 3
_START_TIME: Final = 19


def start_time(pid: int) -> int | None:
    """When a living process started, in ticks since boot: with the pid it names a process for all time."""
    fields = _stat(pid)
    if fields is None or fields[_STATE] in ("Z", "X"):
        return None
    return int(fields[_START_TIME])


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += map(int, text.split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended while we looked
    return found


def tree_of(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        found += children_of(one)
    return found


def session_of(leader: int, since: int) -> list[int]:
    """Living members of the session of a leader that started at `since`, also when the leader is gone."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        fields = _stat(int(name)) if name.isdigit() else None
        if fields is None or fields[_STATE] in ("Z", "X"):
            continue
        if int(fields[_SESSION]) == leader and int(fields[_START_TIME]) >= since:
            found.append(int(name))
    return found


def bearers_of(mark: str) -> list[int]:
    """Living processes that were started with `mark` (NAME=value) in their environment."""
    wanted = mark.encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # gone while we looked, or of another user: no process of ours
    return found


class ProcessUsage(NamedTuple):
    """The memory and the number of processes of a process tree."""

    processes: int
    rss_bytes: int


def held_below(pid: int) -> ProcessUsage:
    """What all below a process take."""
    pages = 0
    below = tree_of(pid)[1:]
    for one in below:
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ProcessUsage(len(below), pages * _PAGE_BYTES)


def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of the part of it that this container may use."""
    sizes = []
    for path, scale in (("/proc/meminfo", 1024), *((one, 1) for one in _CGROUP_LIMITS)):
        try:
            words = Path(path).read_text().split()
        except OSError:
            continue
        number = words[1] if path == "/proc/meminfo" else words[0]
        if number.isdecimal():
            sizes.append(int(number) * scale)
    return min(sizes, default=None)


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
