"""Fills the queue of a tenant that has no worker, in a process of its own: making the requests takes as much processor
time as taking them.

`python -m benchmarks.load_queue PORT TOKEN TASKS PER_RUN` submits TASKS tasks that all differ, in runs of PER_RUN, and
prints the seconds that the scheduler took to accept them.
"""

from __future__ import annotations

import sys
from time import perf_counter

import uvloop

from benchmarks.scale import distinct
from benchmarks.tenants import TenantClient


async def _fill(port: int, token: str, tasks: int, per_run: int) -> float:
    client = TenantClient(port, token)
    taken = 0.0
    for begin in range(0, tasks, per_run):
        request = distinct(min(per_run, tasks - begin))
        started = perf_counter()
        await client.submit(request)
        taken += perf_counter() - started
    await client.close()
    return taken


if __name__ == "__main__":
    port, token, tasks, per_run = sys.argv[1:]
    print(uvloop.run(_fill(int(port), token, int(tasks), int(per_run))), flush=True)
