"""Schedulers and workers under a service manager: a socket of a test takes what systemd would take."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes.postgres import postgres_server
from tests.processes.process import Process
from tests.processes.system import System
from tests.processes.waiting import WAIT_S

WATCHDOG = {"WATCHDOG_USEC": "2000000"}


class Told:
    """What one process tells its manager."""

    def __init__(self, path: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(str(path))
        self._sock.settimeout(WAIT_S)
        self.environ = {"NOTIFY_SOCKET": str(path), **WATCHDOG}
        self.heard: list[str] = []

    def until(self, start: str) -> list[str]:
        """Read up to the datagram that starts so; what came since the last one."""
        since = len(self.heard)
        while not self.heard[since:] or not self.heard[-1].startswith(start):
            self.heard.append(self._sock.recv(4096).decode())
        return self.heard[since:]

    def close(self) -> None:
        self._sock.close()


@contextmanager
def managers(folder: Path, *names: str) -> Iterator[list[Told]]:
    opened = [Told(folder / name) for name in names]
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


def ended(process: Process, told: Told) -> int:
    process.send(signal.SIGTERM)
    told.until("STOPPING=1")
    return process.wait()


def test_two_schedulers_and_a_worker(tmp_path: Path) -> None:
    with (
        postgres_server() as url,
        managers(tmp_path, "n1", "n2", "n3") as (first_told, second_told, worker_told),
    ):
        system = System(tmp_path / "site", database_url=url)
        try:
            system.scheduler.start(**first_told.environ)
            assert "STATUS=serving shards: 0" in first_told.until("READY=1")

            second = system.new_scheduler().start(**second_told.environ)
            assert "STATUS=serving shards: none" in second_told.until("READY=1")

            first_told.until("WATCHDOG=1")
            system.scheduler.kill()
            second_told.until("STATUS=serving shards: 0")
            system.hand_over(second)

            worker = system.new_worker("otter").start(**worker_told.environ)
            assert "STATUS=working: 0 attempts" in worker_told.until("READY=1")
            system.until(lambda: len(system.rest.online()) == 1, "the worker")
            assert ended(worker, worker_told) == 0
            assert ended(second, second_told) == 0
        finally:
            system.close()
