"""The local worker processes of `astra up`: started, restarted when they die, drained at the end.

A drained worker exits, and would be drained again as soon as it is back: it is restarted when it is undrained.

1. A worker holds the read end of a pipe to this process. When this process dies, the pipe is closed and the worker
   exits: no cleanup is needed.
2. A worker is not in this process group, so ^C reaches this process alone, which shuts down in order.
3. The token is passed in the environment: every user of the machine can read command line arguments.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.worker.identity import INSTANCE_FILE

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
STEADY_S: Final = 60.0
"""A worker that ran for this long is restarted with the shortest delay."""

LOOK_S: Final = 1.0
"""Interval for polling whether a drained worker was undrained."""

TOKEN_VARIABLE: Final = "ASTRA_WORKER_AUTH_TOKEN"  # noqa: S105 - the name of a variable


def worker_environment(environ: Mapping[str, str], token: str, drain_s: int) -> dict[str, str]:
    """The environment of a worker: ours without the scheduler's secrets, plus the token."""
    kept = {name: text for name, text in environ.items() if not name.startswith("ASTRA_SCHEDULER_")}
    kept.pop("ASTRA_WORKER_AUTH_TOKEN_FILE", None)
    return {**kept, TOKEN_VARIABLE: token, "ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS": str(drain_s)}


class LocalWorkers:
    """N workers with data folders below one folder."""

    def __init__(
        self,
        url: str,
        folder: Path,
        environment: Mapping[str, str],
        *,
        clock: Clock,
        tell: Callable[[str], None],
        is_drained: Callable[[str], Awaitable[bool]],
        config: Path | None = None,
    ) -> None:
        """`is_drained` tells, by worker id, whether a drain is requested."""
        self._url = url
        self._is_drained = is_drained
        self._folder = folder
        self._environment = dict(environment)
        self._clock = clock
        self._tell = tell
        self._config = config
        self._living: set[asyncio.subprocess.Process] = set()
        self._is_ending = asyncio.Event()

    async def keep(self, number: int) -> None:
        """Keep one worker running until `shut_down` or `kill`."""
        wait_s = FIRST_WAIT_S
        while not self._is_ending.is_set():
            started_at = self._clock.now()
            process = await self._start(number)
            try:
                code = await process.wait()
            finally:
                if process.returncode is None:  # cancelled because another task failed
                    process.kill()
                    await process.wait()
                self._living.discard(process)
            if self._is_ending.is_set():
                return
            if code == 0 and await self._wait_while_drained(number):
                wait_s = FIRST_WAIT_S
                continue
            if self._clock.now() - started_at >= STEADY_S:
                wait_s = FIRST_WAIT_S
            self._tell(f"worker-{number} exited with {_end(code)}; restarting in {wait_s:g} s")
            await self._pause(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def _wait_while_drained(self, number: int) -> bool:
        """Whether the worker was drained; returns when it is undrained, or at shutdown."""
        worker_id = _instance_id(self._folder / str(number))
        if not worker_id or not await self._is_drained(worker_id):
            return False
        self._tell(f"worker-{number} was drained; `astra workers undrain` restarts it")
        while not self._is_ending.is_set() and await self._is_drained(worker_id):
            await self._pause(LOOK_S)
        return True

    async def shut_down(self, within_s: float) -> None:
        """Drain all workers, and kill those that are left after `within_s`. `keep` then returns."""
        self._is_ending.set()
        self._signal(signal.SIGTERM)
        waiting = [asyncio.ensure_future(process.wait()) for process in self._living]
        if not waiting:
            return
        _, late = await asyncio.wait(waiting, timeout=within_s)
        if late:
            self._tell(f"{len(late)} workers did not drain within {within_s:g} s; killing them")
            self.kill()
            await asyncio.wait(late)

    def kill(self) -> None:
        """Kill all workers. Their hosts end with them."""
        self._is_ending.set()
        self._signal(signal.SIGKILL)

    async def _start(self, number: int) -> asyncio.subprocess.Process:
        arguments = ["--scheduler-url", self._url, "--name", f"worker-{number}", "--with-parent"]
        arguments += ["--data-dir", str(self._folder / str(number))]
        if self._config is not None:
            arguments += ["--config", str(self._config)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "astraflow",
            "worker",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            env=self._environment,
            start_new_session=True,
        )
        self._living.add(process)
        if self._is_ending.is_set():
            process.send_signal(signal.SIGTERM)
        return process

    async def _pause(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._is_ending.wait()
        except TimeoutError:
            return

    def _signal(self, number: signal.Signals) -> None:
        for process in self._living:
            if process.returncode is None:
                os.kill(process.pid, number)


def _end(code: int) -> str:
    if code == 0:
        return "exit code 0"
    return f"exit code {code}" if code > 0 else f"signal {-code}"


def _instance_id(folder: Path) -> str:
    try:
        return (folder / INSTANCE_FILE).read_text("ascii").strip()
    except OSError:
        return ""
