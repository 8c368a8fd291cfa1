"""CPU, memory and disk usage of the machine, for heartbeats. Linux only; elsewhere the values are 0."""

from __future__ import annotations

import os
from pathlib import Path

from astraflow.core.protocol import control


class Machine:
    """Reads kernel statistics. One object per worker: CPU usage is measured since the last reading."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._busy = 0
        self._total = 0

    def metrics(self, inflight: int, resource: control.ResourceMetrics) -> control.HeartbeatMetrics:
        return control.HeartbeatMetrics(
            cpu_pct=self._cpu_pct(),
            mem_pct=_memory_pct(),
            disk_pct=self._disk_pct(),
            inflight=inflight,
            resource=resource,
        )

    def _cpu_pct(self) -> float:
        try:
            line = Path("/proc/stat").read_text("ascii").partition("\n")[0]
        except OSError:
            return 0.0
        counts = [int(count) for count in line.split()[1:9]]
        total, busy = sum(counts), sum(counts) - counts[3] - counts[4]
        since_total, since_busy = total - self._total, busy - self._busy
        self._total, self._busy = total, busy
        return _pct(since_busy, since_total)

    def _disk_pct(self) -> float:
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return 0.0
        used = disk.f_blocks - disk.f_bfree
        # As `df` counts: what only root may still use does not help us.
        return _pct(used, used + disk.f_bavail)


def _memory_pct() -> float:
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return 0.0
    sizes = {line.partition(":")[0]: line.split()[1] for line in text.splitlines()}
    total, free = int(sizes.get("MemTotal", 0)), int(sizes.get("MemAvailable", 0))
    return _pct(total - free, total)


def _pct(part: int, whole: int) -> float:
    return round(min(100.0, max(0.0, 100.0 * part / whole)), 1) if whole > 0 else 0.0
