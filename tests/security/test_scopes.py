"""Each token opens exactly one cell: every token against the thing of every other, on a real scheduler.

How tokens are signed, and what is refused because of it, is in `tests/unit/core/security`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.hostile.foreign import echo
from tests.http_workers.foreign import foreign_pool
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.system import System, running
from tests.rawsocket import RawSocket, frame, hello

TENANTS = ("default", "umbrella")
OFFER = {"capabilities": {"concurrency": {"max_parallel": 1}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("scopes"), heartbeat_ms=20_000) as server:
        server.rest.post("tenants", {"tenant": TENANTS[1]}, wanted=201)
        yield server


def new_token(server: System, tenant: str, role: str) -> str:
    body = {"role": role, "tenant": tenant, "ttlSeconds": 600}
    return str(server.rest.post("tokens", body, wanted=201)["token"])


@dataclass
class Cell:
    """A session, and its key."""

    tenant: str
    worker: str
    session_id: str
    token: str


async def session(server: System, tenant: str, worker: str, bearer: str) -> Cell:
    socket = await RawSocket.open(server.port)
    socket.send(frame(worker, "control.handshake", hello(worker, bearer), tenant=tenant))
    socket.send(frame(worker, "control.register", OFFER, tenant=tenant))
    accept = (await socket.next("control.session.accept"))["payload"]
    await socket.close()
    return Cell(tenant, worker, accept["session_id"], accept["session_token"])


async def is_resumed(server: System, cell: Cell, token: str) -> bool:
    socket = await RawSocket.open(server.port)
    payload = {"session_id": cell.session_id, "session_token": token}
    socket.send(frame(cell.worker, "control.resume", payload, tenant=cell.tenant))
    first = await socket.receive_json()
    await socket.close()
    if first["type"] == "control.session.accept":
        assert first["payload"]["resumed"]
        return True
    assert first["type"] == "control.reset", first
    assert first["payload"]["code"] in ("E.SESSION.DENIED", "E.AUTH.INVALID_TOKEN"), first
    return False


async def test_the_token_of_a_session_resumes_that_session_alone(server: System) -> None:
    bearers = {tenant: new_token(server, tenant, "worker") for tenant in TENANTS}
    cells = [
        await session(server, tenant, worker, bearers[tenant])
        for tenant, worker in itertools.product(TENANTS, ("one", "two"))
    ]
    for cell, key in itertools.product(cells, cells):
        assert await is_resumed(server, cell, key.token) == (cell is key), (cell, key)
    # The claims of one cell may not be mixed, either.
    for tenant, worker, named in itertools.product(TENANTS, ("one", "two"), cells):
        mixed = Cell(tenant, worker, named.session_id, named.token)
        is_own = (tenant, worker) == (named.tenant, named.worker)
        assert await is_resumed(server, mixed, named.token) == is_own, mixed


def test_the_token_of_a_task_reports_that_task_alone(server: System) -> None:
    with foreign_pool() as pool:
        name = put_pool(server, pool)
        for _ in range(2):
            server.rest.submit(workflow(node(name), node(name)))
        tasks = [pool.next(place) for place in range(4)]
        assert len({one.task_id for one in tasks}) == 4
        for task, key in itertools.product(tasks, tasks):
            body = f'{{"attempt": 1, "workerId": "{task.worker_id}"}}'.encode()
            answer = task.send("started", body, token=key.token)
            assert answer.status_code == (200 if task is key else 401), answer.text
        for task in tasks:
            assert task.succeed().status_code == 200


def test_an_api_token_reads_the_runs_of_its_tenant_alone(server: System) -> None:
    keys = {
        (tenant, role): new_token(server, tenant, role)
        for tenant, role in itertools.product(TENANTS, ("admin", "operator", "editor", "viewer"))
    }
    runs = {tenant: _submit(server, keys[tenant, "editor"]) for tenant in TENANTS}
    for ((tenant, role), token), (owner, run_id) in itertools.product(keys.items(), runs.items()):
        answer = _ask(server, token, "GET", f"/api/v1/runs/{run_id}")
        assert answer.status_code == (200 if tenant == owner else 404), (tenant, role, owner)


def _submit(server: System, token: str) -> str:
    answer = _ask(server, token, "POST", "/api/v1/runs", json={"workflow": echo()})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def _ask(server: System, token: str, method: str, path: str, **more: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, server.url + path, headers=headers, timeout=30, **more)
