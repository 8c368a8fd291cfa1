"""What a process uses of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from astraflow.bench.processes import cpu_s

__all__ = ["busy_s", "cpu_s", "family_cpu_s", "rss_mib"]

_TICKS = os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def family_cpu_s(pid: int) -> float:
    """Processor time of a process and its children, those that have ended included."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ended = _numbers(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2])[13:15]
    return cpu_s(pid) + sum(ended) / _TICKS + sum(map(_cpu_s_if_there, children))


def _cpu_s_if_there(pid: str) -> float:
    try:
        return cpu_s(int(pid))
    except OSError:
        return 0.0  # it has just ended


def busy_s() -> float:
    """What all processors of the machine have done so far, whoever wanted it: a core has a second a second."""
    first = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _wait, *interrupts = _numbers(first.removeprefix("cpu"))[:8]
    return (user + nice + system + sum(interrupts)) / _TICKS


def _numbers(text: str) -> list[int]:
    return [int(word) if word.lstrip("-").isdigit() else 0 for word in text.split()]
