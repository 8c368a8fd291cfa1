"""One `core.noop` from POST to SSE: how many calls, functions, files and packages does it pass through?

Scheduler and worker run as processes under `sys.setprofile` (`python -m benchmarks.trace server …`). SIGUSR1 starts a
trace, SIGUSR2 writes it into the file that ASTRA_TRACE names. Calls of this project alone are counted; a coroutine that
is resumed is called again. A *hop* is a change of package between two consecutive calls of a thread; it goes *back*
when the thread has been in that package before.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from types import FrameType

import msgspec
import uvloop

import astraflow
from astraflow.bench.processes import BenchClient, System, running_as, wide
from astraflow.cli.main import main
from benchmarks.figures import Figure

RUNS = 7
WARM_UP_RUNS = 20
SETTLE_S = 0.2
"""After the client has seen the end: acknowledgements are still on their way."""
WRITE_TIMEOUT_S = 10.0
PATH_VARIABLE = "ASTRA_TRACE"
ROOT = f"{Path(astraflow.__file__).parent}{os.sep}"

Place = tuple[str, str]
"""A file below src/astraflow, and a function of it."""


class Tracer:
    """Notes the calls of this process between two signals."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_on = False
        self._calls: dict[int, list[Place]] = defaultdict(list)

    def install(self) -> None:
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        signal.signal(signal.SIGUSR1, self._start)
        signal.signal(signal.SIGUSR2, self._write)

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        if not self._is_on or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(ROOT):
            place = (code.co_filename[len(ROOT) :], code.co_qualname)
            self._calls[threading.get_ident()].append(place)

    def _start(self, *_: object) -> None:
        self._calls.clear()
        self._is_on = True

    def _write(self, *_: object) -> None:
        self._is_on = False
        partial = self._path.with_suffix(".part")
        partial.write_bytes(msgspec.json.encode(list(self._calls.values())))
        partial.rename(self._path)


class Trace(msgspec.Struct, frozen=True):
    """The calls of one process, by thread."""

    threads: list[list[Place]]

    @property
    def calls(self) -> list[Place]:
        return [call for thread in self.threads for call in thread]

    def hops(self) -> tuple[int, int]:
        """All of them, and those that go back."""
        hops = back = 0
        for thread in self.threads:
            packages = [package_of(file) for file, _ in thread]
            seen = set(packages[:1])
            for before, after in pairwise(packages):
                if after != before:
                    hops += 1
                    back += after in seen
                    seen.add(after)
        return hops, back

    def figures(self, side: str) -> list[Figure]:
        hops, back = self.hops()
        counts = {
            "calls": len(self.calls),
            "functions": len(set(self.calls)),
            "files": len({file for file, _ in self.calls}),
            "package hops": hops,
            "hops back": back,
        }
        return [Figure(f"{side}: {name}", value, "") for name, value in counts.items()]

    def text(self) -> str:
        """Calls by package and file, for people."""
        files = Counter(file for file, _ in self.calls)
        lines = [f"{count:6} {file}" for file, count in sorted(files.items())]
        return "\n".join(lines)


def package_of(file: str) -> str:
    """`core/engine/step.py` is of `core/engine`, `api/app.py` of `api`, `clock.py` of `clock.py`."""
    parts = file.split(os.sep)
    return os.sep.join(parts[: 2 if parts[0] == "core" else 1])


class TracedSystem(System):
    """Processes that can be asked for a trace."""

    def trace_path(self, name: str) -> Path:
        return self.folder / f"{name}.trace"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "benchmarks.trace", *arguments]

    def environment(self, *arguments: str) -> dict[str, str]:
        path = str(self.trace_path(arguments[0]))
        return {**super().environment(*arguments), PATH_VARIABLE: path}

    def start_traces(self) -> None:
        for process, _ in self._traced():
            process.send_signal(signal.SIGUSR1)

    def take_traces(self) -> tuple[Trace, ...]:
        """Of the scheduler and of the worker."""
        return tuple(self._take_trace(process, path) for process, path in self._traced())

    def _traced(self) -> list[tuple[subprocess.Popen[str], Path]]:
        assert self.scheduler is not None
        return [
            (self.scheduler, self.trace_path("server")),
            (self.workers[0], self.trace_path("worker")),
        ]

    def _take_trace(self, process: subprocess.Popen[str], path: Path) -> Trace:
        process.send_signal(signal.SIGUSR2)
        give_up_at = time.monotonic() + WRITE_TIMEOUT_S
        while not path.exists():
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"no trace was written to {path}")
            time.sleep(0.01)
        trace = Trace(msgspec.json.decode(path.read_bytes(), type=list[list[Place]]))
        path.unlink()
        return trace


async def run_one(client: BenchClient) -> None:
    async with client.stream() as events:
        await client.ended({await client.submit(wide(1))}, events)


async def collect(system: TracedSystem) -> list[tuple[Trace, ...]]:
    client = BenchClient(system.port)
    for _ in range(WARM_UP_RUNS):
        await run_one(client)
    found = []
    for _ in range(RUNS):
        async with client.stream() as events:
            await asyncio.sleep(SETTLE_S)
            system.start_traces()
            await asyncio.sleep(SETTLE_S)
            await client.ended({await client.submit(wide(1))}, events)
            await asyncio.sleep(SETTLE_S)
            found.append(system.take_traces())
    await client.close()
    return found


def figures() -> list[Figure]:
    """Of the shortest traces: heartbeats and timers fall into the others."""
    with running_as(TracedSystem) as system:
        found = uvloop.run(collect(system))
    result = []
    for side, traces in zip(("scheduler", "worker"), zip(*found, strict=True), strict=True):
        shortest = min(traces, key=lambda trace: len(trace.calls))
        print(f"{side}, calls by file\n{shortest.text()}")
        result += shortest.figures(side)
    return result


if __name__ == "__main__":
    Tracer(Path(os.environ[PATH_VARIABLE])).install()
    main()
