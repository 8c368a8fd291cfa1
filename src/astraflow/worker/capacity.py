"""What the machine of a worker has for nodes that ask for a part of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from astraflow.core.protocol.wire import MachineAmounts
from astraflow.worker.hosts.procfs import machine_memory

_CARD: Final = re.compile(r"nvidia\d+")


def capacity_of(
    cpu: float | None,
    memory_bytes: int | None,
    gpu: int | None,
    devices: Path = Path("/dev"),
    quota: Path = Path("/sys/fs/cgroup/cpu.max"),
) -> MachineAmounts:
    """The amounts that are set, and for the others what the machine, or this part of it, has."""
    return MachineAmounts(
        _processors(quota) if cpu is None else cpu,
        (machine_memory() or 0) if memory_bytes is None else memory_bytes,
        _cards(devices) if gpu is None else gpu,
    )


def _processors(quota: Path) -> float:
    """Those that this process may run on, or the share of them that its container has."""
    count = float(len(os.sched_getaffinity(0)))
    try:
        share, period = quota.read_text("ascii").split()
    except (OSError, ValueError):
        return count
    return min(count, int(share) / int(period)) if share.isdecimal() else count


def _cards(devices: Path) -> int:
    try:
        return sum(1 for name in os.listdir(devices) if _CARD.fullmatch(name))
    except OSError:
        return 0
