"""Sessions of workers in a process of their own, which are opened when they are told to.

`python -m benchmarks.load_sessions PORT FIRST COUNT SLOTS` prints `ready`, waits for a line, and keeps COUNT sessions
from number FIRST on until it is terminated.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from astraflow.clock import SystemClock
from benchmarks.file_limits import raise_file_limit
from benchmarks.light_workers import light_worker


async def _run(port: int, first: int, count: int, slots: int) -> None:
    clock = SystemClock()
    async with asyncio.TaskGroup() as group:
        for number in range(first, first + count):
            group.create_task(light_worker(port, number, slots, clock))


if __name__ == "__main__":
    raise_file_limit()
    print("ready", flush=True)
    sys.stdin.readline()
    uvloop.run(_run(*map(int, sys.argv[1:])))
