"""A map beside a fan-out of as many nodes, and the memory of a map over 100,000 items."""

from __future__ import annotations

import threading
from statistics import median
from time import sleep
from typing import Any

import msgspec
import uvloop

from astraflow.bench.processes import BenchClient, chain, fan_out, running
from astraflow.bench.system import timed
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

WIDTH = 5_000
LARGE = 100_000
ROUNDS = 3


def mapped(count: int) -> bytes:
    """One node, for each number of a list that a node upstream makes; the number is a parameter of the item."""
    request: dict[str, Any] = msgspec.json.decode(chain(2))
    first, second = request["workflow"]["nodes"]
    code = f"def main():\n    return list(range({count}))"
    first.update(type="core.python", parameters={"code": code, "inputs": {}})
    second["parameters"] = {"n": "=item"}
    second["map"] = {"over": f"=nodes['{first['id']}'].results.result"}
    return msgspec.json.encode(request)


class Highest:
    """The largest size of a process while something is done."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.mib = 0.0

    def _look(self) -> None:
        while not self._is_over.is_set():
            self.mib = max(self.mib, rss_mib(self._pid))
            sleep(0.05)

    def __enter__(self) -> Highest:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


async def _rounds(port: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds for a node of a fan-out and for an item of a map, in turns."""
    client = BenchClient(port)
    try:
        await timed(client, fan_out(50))
        fans, maps = [], []
        for _ in range(rounds):
            fans.append(await timed(client, fan_out(WIDTH)) / (WIDTH + 2))
            maps.append(await timed(client, mapped(WIDTH)) / (WIDTH + 1))
    finally:
        await client.close()
    return fans, maps


async def _large(port: int) -> float:
    client = BenchClient(port)
    try:
        return await timed(client, mapped(LARGE)) / LARGE
    finally:
        await client.close()


def figures() -> list[Figure]:
    with running() as system:
        assert system.scheduler is not None
        with Highest(system.scheduler.pid) as seen:
            large = uvloop.run(_large(system.port))
        # The machine is not always as fast: what is compared stands close together, on both sides.
        fans, maps = uvloop.run(_rounds(system.port, ROUNDS))
        large = min(large, uvloop.run(_large(system.port)))
        more = uvloop.run(_rounds(system.port, ROUNDS))
    fan, item = median(fans + more[0]), median(maps + more[1])
    return [
        Figure("a node of a fan-out of 5,000", fan * 1e6, "µs"),
        Figure("an item of a map of 5,000", item * 1e6, "µs"),
        Figure("of a node of the fan-out", item / fan, "times", 1.3),
        Figure("an item of a map of 100,000", large * 1e6, "µs"),
        Figure("of a node of the fan-out", large / fan, "times", 1.3),
        Figure("scheduler during it, at most", seen.mib, "MiB", 400),
    ]
