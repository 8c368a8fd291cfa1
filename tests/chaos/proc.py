"""The package hosts of a worker, and what a process holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Host", "files_of", "hosts_of"]


class Host(NamedTuple):
    """A package host, and the guard above it."""

    guard_pid: int
    host_pid: int


def hosts_of(worker_folder: Path) -> list[Host]:
    """The hosts that a worker has written down as loaded."""
    found = []
    for path in sorted((worker_folder / "hosts").glob("*.json")):
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
