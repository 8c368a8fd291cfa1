"""The disk usage of unregistered files: measured at intervals, and counted against the quota.

The registry counts these bytes against `resource_max_disk_bytes`. If they alone exceed it, the host that wrote most of
them is killed, and the attempt in it fails with `E.RUNNER.LIMIT`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.scratch import size_of

PAUSE_S: Final = 1.0
"""Between two looks; or ten times as long as the last one took, so that a huge tree does not take a core."""


class DiskWatch:
    """Measures the folders of hosts in a thread, one measurement at a time."""

    def __init__(self, clock: Clock, limit: int | None, count: Callable[[int], None]) -> None:
        """`count` is told the bytes of all hosts after each look."""
        self._clock = clock
        self._limit = limit
        self._count = count
        self._due = 0.0
        self._looking: asyncio.Future[list[int]] | None = None

    def look(self, now: float, hosts: Iterable[Host]) -> None:
        if self._looking is not None or now < self._due:
            return
        looked_at = list(hosts)
        folders = [host.process.work_dir for host in looked_at]
        self._looking = asyncio.get_running_loop().run_in_executor(None, _measure, folders)
        self._looking.add_done_callback(partial(self._on_measured, now, looked_at))

    async def close(self) -> None:
        if self._looking is not None:
            await asyncio.wait([self._looking])

    def _on_measured(
        self, started: float, hosts: list[Host], measured: asyncio.Future[list[int]]
    ) -> None:
        self._looking = None
        now = self._clock.now()
        self._due = now + max(PAUSE_S, 10 * (now - started))
        if measured.cancelled():
            return
        sizes = measured.result()
        self._count(sum(sizes))
        if self._limit is not None and sum(sizes) > self._limit:
            size, largest = max(zip(sizes, hosts, strict=True), key=lambda pair: pair[0])
            largest.kill("disk", f"{size} bytes, allowed are {self._limit} for all")


def _measure(folders: list[Path]) -> list[int]:
    return [size_of(folder) for folder in folders]
