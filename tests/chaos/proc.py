"""What the kernel tells about the processes of one chaos run: which they are, what they hold."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from pathlib import Path
from typing import NamedTuple

__all__ = ["MARK", "Host", "die_with_parent", "files_of", "hosts_of", "marked", "rss_mib"]

MARK = "CHAOS_MARK"
"""The variable that every process of a run inherits, hosts and what they start included."""

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Host(NamedTuple):
    """A package host, and the guard above it."""

    guard_pid: int
    host_pid: int


def die_with_parent() -> None:
    """Between fork and exec: whatever becomes of the supervisor, its children do not outlive it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def marked(mark: str) -> dict[int, str]:
    """Living processes of the run, by pid, with their command lines."""
    wanted = f"{MARK}={mark}".encode()
    found: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdecimal() or int(entry) == os.getpid():
            continue
        folder = Path("/proc", entry)
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                text = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry)] = text.decode(errors="replace")[:120]
        except OSError:
            continue  # gone while we looked
    return found


def hosts_of(worker_folder: Path) -> list[Host]:
    """The hosts that a worker has written down as loaded."""
    found = []
    for path in sorted((worker_folder / "hosts" / "hosts").glob("*.json")):
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # being written, or just removed
        if record.get("host_pid"):
            found.append(Host(record["guard_pid"], record["host_pid"]))
    return found


def files_of(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2
