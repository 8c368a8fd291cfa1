"""What a process uses of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from astraflow.bench.processes import cpu_s

__all__ = ["cpu_s", "rss_mib"]


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2
