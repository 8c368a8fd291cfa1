"""A scheduler and workers in a folder, as somebody who installs them would have them, and a client for tests."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from tests.processes.process import ASTRA, Process, free_port, marked
from tests.processes.rest import TOKEN, Rest
from tests.processes.waiting import WAIT_S, until

__all__ = ["System", "port_of", "running", "traceback_lines"]

NONE: Mapping[str, str] = MappingProxyType({})
SECRET = "a secret for tests, long enough to sign"
FoundT = TypeVar("FoundT")


def timing(heartbeat_ms: int) -> dict[str, str]:
    """Settings that notice a dead worker after three heartbeats, and end its leases after six."""
    names = {"HEARTBEAT_INTERVAL_MS": 1, "SHARD_LEASE_MS": 3, "LEASE_TTL_MS": 6}
    chosen = {name: str(times * heartbeat_ms) for name, times in names.items()}
    chosen["RESOURCE_GRACE_SECONDS"] = str(max(1, 6 * heartbeat_ms // 1000))
    return {f"ASTRA_SCHEDULER_{name}": value for name, value in chosen.items()}


class System:
    """One installation. `heartbeat_ms`: None leaves all timing as shipped; `command`: another program that is a
    scheduler; `environ`: settings of all."""

    def __init__(
        self,
        folder: Path,
        *,
        heartbeat_ms: int | None = 500,
        database_url: str | None = None,
        command: tuple[str, ...] = ASTRA,
        environ: Mapping[str, str] = NONE,
    ) -> None:
        self.folder = folder
        self.database_url = database_url
        self.environ = {
            "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": TOKEN,
            "ASTRA_SCHEDULER_SECRET": SECRET,
            "ASTRA_WORKER_AUTH_TOKEN": TOKEN,
            **({} if heartbeat_ms is None else timing(heartbeat_ms)),
            **environ,
        }
        self.processes: list[Process] = []
        self.workers: dict[str, Process] = {}
        self.scheduler = self.new_scheduler(command)
        self.rest = Rest(self.url)

    @property
    def port(self) -> int:
        return port_of(self.scheduler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        """The folder of the schedulers."""
        return self.folder / "scheduler"

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data / 'astraflow.db'}"

    def new_scheduler(self, command: tuple[str, ...] = ASTRA) -> Process:
        """A scheduler on the store of this system, not started."""
        number = sum(one.name.startswith("scheduler") for one in self.processes) + 1
        arguments = ["server", "--port", str(free_port()), "--data-dir", str(self.data)]
        if self.database_url is not None:
            arguments += ["--database-url", self.database_url]
        name = "scheduler" if number == 1 else f"scheduler{number}"
        return self._add(Process(name, arguments, self.folder, dict(self.environ), command))

    def new_worker(self, name: str, *arguments: str, url: str = "", **environ: str) -> Process:
        """A worker, not started. `url`: where it finds its scheduler, if not straight at the one of this system."""
        folder = self.folder / name
        url = url or f"ws://127.0.0.1:{self.port}/ws/worker"
        given = ["worker", "--scheduler-url", url, "--data-dir", str(folder / "kept")]
        given += ["--name", name, *arguments]
        self.workers[name] = self._add(Process(name, given, folder, {**self.environ, **environ}))
        return self.workers[name]

    def _add(self, process: Process) -> Process:
        self.processes.append(process)
        return process

    def start(self) -> None:
        """Start the scheduler, and wait until it is ready."""
        self.scheduler.start()
        self.until_ready()

    def until_ready(self) -> None:
        self.until(lambda: self.rest.status("/readyz") == 200, "a scheduler that is ready")

    def hand_over(self, scheduler: Process) -> None:
        """Another scheduler on the same store is the one that is asked from now on."""
        self.scheduler = scheduler
        self.rest.http.base_url = self.url

    def restart(self) -> None:
        """As after a `kill -9`."""
        self.scheduler.kill()
        self.start()

    def until(
        self,
        condition: Callable[[], FoundT | None],
        what: str = "a condition",
        within_s: float = WAIT_S,
    ) -> FoundT:
        """Wait for something while the scheduler lives; a failure shows its log."""
        return self.scheduler.until(condition, what, within_s)

    def family(self) -> dict[int, str]:
        """The living among its processes and what they have started, by pid."""
        return marked(*(one.mark for one in self.processes))

    def stop(self) -> None:
        """As an operator does. All that live end with 0, and nothing of them is left."""
        alive = [one for one in self.processes if one.is_alive()]
        for process in alive:
            process.send(signal.SIGTERM)
        codes = {process.name: process.wait() for process in alive}
        assert not any(codes.values()), [codes, *(one.said()[-2000:] for one in alive)]
        until(lambda: not self.family(), "the end of all that was started")

    def close(self) -> None:
        """Leave nothing behind, in whatever state it is."""
        for process in self.processes:
            process.close()
        self.rest.close()


def port_of(scheduler: Process) -> int:
    return int(scheduler.arguments[scheduler.arguments.index("--port") + 1])


def traceback_lines(said: str) -> list[str]:
    """Those of the product: the driver of the database logs some of its own while a server is away."""
    lines = said.splitlines()
    return [one for one in lines if "Traceback" in one and '"logger":"asyncpg' not in one]


@contextmanager
def running(
    folder: Path,
    workers: int = 0,
    *,
    heartbeat_ms: int | None = 500,
    database_url: str | None = None,
    command: tuple[str, ...] = ASTRA,
    environ: Mapping[str, str] = NONE,
) -> Iterator[System]:
    """A scheduler that is ready and workers that are online; stopped at the end."""
    system = System(
        folder,
        heartbeat_ms=heartbeat_ms,
        database_url=database_url,
        command=command,
        environ=environ,
    )
    try:
        system.start()
        for number in range(workers):
            system.new_worker(f"worker-{number + 1}").start()
        system.until(lambda: len(system.rest.online()) == workers, "all workers online")
        yield system
        assert command is not ASTRA or not traceback_lines(system.scheduler.said())
        system.stop()
    finally:
        system.close()
