"""A second scheduler on PostgreSQL responds from the start, through the first, and takes over. Real processes, a real
database."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from astraflow.api.app import ROUTES
from tests.definitions import node, workflow
from tests.processes.postgres import PostgresProcess, postgres_process
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System, port_of
from tests.processes.waiting import until

METRICS_TOKEN = "a token for metrics of tests"
UPGRADE = (
    b"GET /ws/worker HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
def postgres() -> Iterator[PostgresProcess]:
    with postgres_process() as process:
        yield process


@contextmanager
def _system(folder: Path, postgres: PostgresProcess) -> Iterator[System]:
    settings = {"ASTRA_SCHEDULER_METRICS_TOKEN": METRICS_TOKEN}
    system = System(folder, database_url=postgres.url, environ=settings)
    try:
        yield system
    finally:
        system.close()


def _ask(scheduler: Process, method: str, path: str, token: str = TOKEN) -> httpx.Response:
    url = f"http://127.0.0.1:{port_of(scheduler)}{path}"
    return httpx.request(method, url, headers={"authorization": f"Bearer {token}"}, timeout=10)


def _responds(scheduler: Process) -> bool:
    try:
        return _ask(scheduler, "GET", "/healthz").status_code == 200
    except httpx.ConnectError:
        return False


def _upgrade(scheduler: Process) -> bytes:
    """What a worker's socket is told."""
    with socket.create_connection(("127.0.0.1", port_of(scheduler)), timeout=10) as sock:
        sock.sendall(UPGRADE)
        return sock.recv(65536)


def _listening(scheduler: Process) -> bool:
    return b"listening on http://" in (scheduler.folder / f"{scheduler.name}.out").read_bytes()


@pytest.mark.timeout(180)
def test_a_scheduler_that_owns_nothing_passes_everything_on_and_takes_over(
    tmp_path: Path, postgres: PostgresProcess
) -> None:
    with _system(tmp_path, postgres) as system:
        system.start()
        owner, other = system.scheduler, system.new_scheduler().start()
        until(lambda: _listening(other), "the line that says that it is ready")
        for route in ROUTES:
            path = route.path.replace("{", "").replace("}", "")
            if path.endswith(("/events", "/stream")):
                continue  # a stream does not end
            answers = [_ask(one, route.method, path) for one in (owner, other)]
            assert answers[0].status_code == answers[1].status_code, route
            kinds = {answer.headers.get("content-type") for answer in answers}
            assert len(kinds) == 1, route
        samples = _ask(other, "GET", "/metrics", METRICS_TOKEN).text
        assert "\nastraflow_ready 1.0\n" in samples
        assert "\nastraflow_queue_depth{" not in samples, "only the owner counts what waits"
        told = _upgrade(other)
        assert told.startswith(b"HTTP/1.1 101 ")

        system.new_worker("worker", url=f"ws://127.0.0.1:{port_of(other)}/ws/worker").start()
        system.until(lambda: len(system.rest.online()) == 1, "a worker that was sent to the owner")
        assert owner.stop() == 0
        system.hand_over(other)
        system.until(lambda: system.rest.status("/readyz") == 200, "a take-over")
        view = system.rest.run(workflow(node("core.noop")))
        assert view["status"] == "succeeded"


@pytest.mark.timeout(180)
def test_a_scheduler_whose_database_does_not_respond_says_so(
    tmp_path: Path, postgres: PostgresProcess
) -> None:
    with _system(tmp_path, postgres) as system:
        with postgres.frozen():
            scheduler = system.scheduler.start()
            until(lambda: _responds(scheduler), "a response")
            ready = _ask(scheduler, "GET", "/readyz")
            assert ready.status_code == 503
            assert ready.json()["code"] == "E.SCHEDULER.NOT_READY"
            assert _ask(scheduler, "GET", "/api/v1/runs").status_code == 503
            assert not _listening(scheduler)
        system.until_ready()
        until(lambda: _listening(scheduler), "the line that says so")
