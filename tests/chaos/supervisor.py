"""Starts a scheduler and workers as processes, each worker behind a proxy of its own, and restarts what dies.

It ends only what it started, by pid. Its children die with it, whatever it dies of.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import proc
from tests.chaos.proxy import Proxy
from tests.chaos.waiting import LOOK_S, is_seen, until

__all__ = ["LEASE_S", "TOKEN", "Boot", "Process", "Supervisor", "supervised"]

TOKEN = "a token for a chaos run"
ROOT = Path(__file__).resolve().parents[2]
LEASE_S = 3.0
"""Short, so that what takes a lease to show fits into a test; the fence is at 0.6 of it."""
SHORT: Mapping[str, str] = {
    "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": TOKEN,
    "ASTRA_SCHEDULER_SECRET": "a secret for a chaos run, long enough to sign",
    "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": "500",
    "ASTRA_SCHEDULER_LEASE_TTL_MS": str(int(LEASE_S * 1000)),
    "ASTRA_SCHEDULER_SHARD_LEASE_MS": str(int(LEASE_S * 500)),
    "ASTRA_SCHEDULER_DISPATCH_ACK_TIMEOUT_MS": "1500",
    "ASTRA_SCHEDULER_CANCEL_GRACE_MS": "1000",
    "ASTRA_WORKER_AUTH_TOKEN": TOKEN,
    "ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS": "5",
}
START_S = 60.0
"""For a process to be ready; never waited out unless something is broken."""
STOP_S = 30.0
LEFT_S = 5.0


@dataclass(frozen=True)
class Boot:
    """One start of a process: when it was wanted, and when it was ready, both in monotonic ns."""

    name: str
    at_ns: int
    wall_ms: int


@dataclass
class Process:
    """What is wanted of one process, and the process that is there now."""

    name: str
    arguments: list[str]
    folder: Path
    proxy: Proxy | None = None
    environ: dict[str, str] = field(default_factory=dict)
    popen: subprocess.Popen[bytes] | None = None
    is_wanted: bool = True
    is_frozen: bool = False
    boots: int = 0
    log_from: int = 0
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "astraflow"])

    @property
    def pid(self) -> int:
        assert self.popen is not None
        return self.popen.pid

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def is_alive(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def said(self) -> str:
        """What it has written since its last start."""
        return self.log.read_bytes()[self.log_from :].decode(errors="replace")


def free_port() -> int:
    """A port that can be taken again after a restart: below those that the kernel gives to callers."""
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


class Supervisor:
    """The processes of one run. `note` is its timeline."""

    def __init__(
        self, folder: Path, *, database_url: str | None = None, is_loud: bool = False
    ) -> None:
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.timeline: list[tuple[float, str]] = []
        self.boots: list[Boot] = []
        self.exits: list[tuple[str, int]] = []
        self.workers: list[Process] = []
        self.retired: list[Process] = []
        """Schedulers that were replaced."""
        self._database_url = database_url
        self._is_loud = is_loud
        self._began = time.monotonic()
        self._schedulers = 0
        self.scheduler = self.new_scheduler()

    # -- what is there ----------------------------------------------------------------------

    @property
    def port(self) -> int:
        return int(self.scheduler.arguments[self.scheduler.arguments.index("--port") + 1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "astraflow.db"

    @property
    def store_url(self) -> str:
        return self._database_url or f"sqlite:///{self.database}"

    def note(self, text: str) -> None:
        at = time.monotonic() - self._began
        self.timeline.append((at, text))
        if self._is_loud:
            print(f"{at:8.2f}  {text}", flush=True)

    # -- starting ---------------------------------------------------------------------------

    def new_scheduler(self) -> Process:
        """Another scheduler on the same store, not started."""
        self._schedulers += 1
        arguments = ["server", "--port", str(free_port()), "--data-dir", str(self.folder)]
        if self._database_url is not None:
            arguments += ["--database-url", self._database_url]
        name = "scheduler" if self._schedulers == 1 else f"scheduler{self._schedulers}"
        return Process(name, arguments, self.folder)

    async def start_scheduler(self) -> None:
        self.spawn(self.scheduler)
        assert await self.is_ready(self.scheduler), self.scheduler.said()

    async def add_worker(self, *, slots: int = 8, environ: Mapping[str, str] | None = None) -> None:
        number = len(self.workers)
        proxy = Proxy(self.port)
        await proxy.open()
        folder = self.folder / f"worker{number}"
        folder.mkdir()
        url = f"ws://127.0.0.1:{proxy.port}/ws/worker"
        arguments = ["worker", "--scheduler-url", url, "--data-dir", str(folder / "kept")]
        arguments += ["--name", f"worker{number}", "--max-parallel", str(slots)]
        worker = Process(f"worker{number}", arguments, folder, proxy, dict(environ or {}))
        self.workers.append(worker)
        self.spawn(worker)

    def spawn(self, process: Process, environ: Mapping[str, str] | None = None) -> None:
        """Start it. `environ`: for this boot alone."""
        assert not process.is_alive(), f"{process.name} is there already"
        process.log.touch()
        process.log_from = process.log.stat().st_size
        process.boots += 1
        process.is_wanted, process.is_frozen = True, False
        self.boots.append(Boot(process.name, time.monotonic_ns(), int(time.time() * 1000)))
        with process.log.open("ab") as log:
            process.popen = subprocess.Popen(
                [*process.command, *process.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=process.folder,
                env=self._environ({**process.environ, **(environ or {})}),
                start_new_session=True,
                preexec_fn=proc.die_with_parent,
            )
        extra = " ".join(f"{name}={value}" for name, value in (environ or {}).items())
        self.note(f"start {process.name} as {process.pid} {extra}".rstrip())

    def _environ(self, extra: Mapping[str, str]) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ASTRA_")}
        path = os.pathsep.join(filter(None, (str(ROOT / "src"), inherited.get("PYTHONPATH"))))
        return {**inherited, **SHORT, "PYTHONPATH": path, proc.MARK: self.mark, **extra}

    async def is_ready(self, scheduler: Process) -> bool:
        """Wait until it listens; False when it has ended instead."""
        await until(
            lambda: "listening on " in scheduler.said() or not scheduler.is_alive(), START_S
        )
        return scheduler.is_alive()

    # -- faults -----------------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        if process.is_alive():
            self.note(f"kill -9 {process.name} {process.pid}")
            self.signal(process, signal.SIGKILL)

    def signal(self, process: Process, number: signal.Signals) -> None:
        assert process.popen is not None
        process.popen.send_signal(number)  # never sent to a pid that was reaped

    async def freeze(self, process: Process, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        if not process.is_alive():
            return
        self.note(f"freeze {process.name} for {seconds:.1f} s")
        popen = process.popen
        assert popen is not None
        process.is_frozen = True
        popen.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            popen.send_signal(signal.SIGCONT)
            process.is_frozen = False
            self.note(f"thaw {process.name}")

    async def keep_alive(self) -> None:
        """Restart what dies, until cancelled."""
        while True:
            for process in [self.scheduler, *self.workers]:
                if process.is_wanted and not process.is_alive():
                    assert process.popen is not None
                    self.exits.append((process.name, process.popen.returncode))
                    self.note(f"{process.name} has ended with {process.popen.returncode}")
                    self.spawn(process)
            await asyncio.sleep(LOOK_S)

    # -- stopping ---------------------------------------------------------------------------

    async def stop(self, process: Process) -> int:
        """SIGTERM, and its exit code; a process that does not end in time is killed."""
        process.is_wanted = False
        popen = process.popen
        assert popen is not None
        if popen.poll() is None:
            popen.send_signal(signal.SIGTERM)
            await is_seen(lambda: popen.poll() is not None, STOP_S)
        if popen.poll() is None:
            self.note(f"{process.name} did not end; killed")
            popen.kill()
        return popen.wait()

    async def close(self) -> None:
        """Leave nothing behind, in whatever state it is."""
        for process in (*self.workers, self.scheduler, *self.retired):
            process.is_wanted = False
            if process.is_alive():
                self.signal(process, signal.SIGKILL)
            if process.popen is not None:
                process.popen.wait()
        # Hosts end with their workers; what still carries the mark of this run was left behind by a bug.
        await is_seen(lambda: not proc.marked(self.mark), LEFT_S)
        for pid in proc.marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for worker in self.workers:
            assert worker.proxy is not None
            await worker.proxy.close()


@asynccontextmanager
async def supervised(
    folder: Path,
    *,
    workers: int = 3,
    slots: int = 8,
    database_url: str | None = None,
    is_loud: bool = False,
) -> AsyncIterator[Supervisor]:
    """A running system; killed, whatever happens, at the end."""
    supervisor = Supervisor(folder, database_url=database_url, is_loud=is_loud)
    try:
        await supervisor.start_scheduler()
        for _ in range(workers):
            await supervisor.add_worker(slots=slots)
        yield supervisor
    finally:
        await supervisor.close()
