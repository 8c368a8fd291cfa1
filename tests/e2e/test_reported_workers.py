"""Workers that are known over HTTP, on a real scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.foreign import Foreign, echo
from tests.processes.system import System, running
from tests.processes.waiting import until

BOX = {
    "workerId": "box-7",
    "name": "under the desk",
    "hostname": "h",
    "maxParallel": 2,
    "packages": [{"name": "core", "version": "1.0.0"}],
    "labels": {"zone": "a"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("reported"), heartbeat_ms=500) as server:
        yield server


def post(server: System, what: str, body: Any, token: str | None = None) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = server.rest.http.post(f"/api/workers/{what}", json=body, headers=headers)
    return answer.status_code, answer.json()


def status_of(server: System, worker_id: str) -> str:
    return str(server.rest.worker(worker_id)["status"])


def test_it_is_shown_with_the_others_and_gets_no_work(server: System) -> None:
    status, answer = post(server, "register", BOX)
    assert (status, answer) == (200, {"workerId": "box-7", "heartbeatIntervalMs": 500})
    shown = server.rest.worker("box-7")
    assert (shown["name"], shown["status"], shown["labels"]) == (
        "under the desk",
        "online",
        {"zone": "a"},
    )
    assert shown["packages"] == [{"name": "core", "version": "1.0.0", "status": "reported"}]
    run = server.rest.submit(echo())
    for _ in range(4):
        status, answer = post(server, "heartbeat", {"workerId": "box-7"})
        assert (status, answer["acknowledged"]) == (200, True)
    assert server.rest.worker("box-7")["inflight"] == 0
    # It has no worker, and says so after a moment.
    server.until(lambda: server.rest.get(f"runs/{run}")["nodes"][0]["status"] == "waiting")
    server.rest.post(f"runs/{run}/cancel", {}, wanted=200)


def test_silence_makes_it_offline_and_a_register_brings_it_back(server: System) -> None:
    body = {**BOX, "workerId": "quiet"}
    assert post(server, "register", body)[0] == 200
    server.until(lambda: status_of(server, "quiet") == "lost", "silence counts")
    status, answer = post(server, "heartbeat", {"workerId": "quiet"})
    assert (status, answer["code"]) == (404, "E.WORKER.NOT_FOUND")
    assert post(server, "register", body)[0] == 200
    assert status_of(server, "quiet") == "online"


def test_what_a_heartbeat_says_is_shown(server: System) -> None:
    body = {**BOX, "workerId": "telling"}
    assert post(server, "register", body)[0] == 200
    assert post(server, "heartbeat", {"workerId": "telling", "healthy": False})[0] == 200
    assert status_of(server, "telling") == "degraded"
    assert post(server, "heartbeat", {"workerId": "telling", "draining": True})[0] == 200
    assert status_of(server, "telling") == "draining"
    assert post(server, "register", {**body, "labels": {"zone": "b"}})[0] == 200
    until(lambda: server.rest.worker("telling")["labels"] == {"zone": "b"}, "the new labels")


def test_commands_are_refused_and_cost_it_nothing(server: System) -> None:
    body = {**BOX, "workerId": "ordered"}
    assert post(server, "register", body)[0] == 200
    server.rest.post("workers/ordered/commands", {"type": "drain", "reason": "x"})
    for _ in range(5):
        assert post(server, "heartbeat", {"workerId": "ordered"})[0] == 200
    assert status_of(server, "ordered") == "draining"


@pytest.mark.parametrize(
    ("what", "body", "pointer"),
    [
        ("register", {"workerId": "a/b"}, "/workerId"),
        ("register", {}, ""),
        ("register", {**BOX, "maxParallel": 0}, "/maxParallel"),
        ("register", {**BOX, "labels": {"a": 1}}, "/labels/..."),
        ("register", {**BOX, "unknown": 1}, ""),
        ("heartbeat", {"workerId": "box-7", "memPct": 101}, "/memPct"),
        ("heartbeat", [], ""),
    ],
)
def test_a_body_that_does_not_fit_is_refused(
    server: System, what: str, body: Any, pointer: str
) -> None:
    status, answer = post(server, what, body)
    assert status == 400
    assert answer.get("errors", [{}])[0].get("pointer", "") == pointer, answer


def test_it_needs_a_credential(server: System) -> None:
    assert post(server, "register", BOX, token="wrong")[0] == 401
    assert post(server, "heartbeat", {"workerId": "box-7"}, token="wrong")[0] == 401


async def test_one_id_is_one_worker(server: System) -> None:
    body = {**BOX, "workerId": "both"}
    assert (await asyncio.to_thread(post, server, "register", body))[0] == 200
    async with Foreign(server.port, "both") as worker:
        await worker.enter()
        status, answer = await asyncio.to_thread(post, server, "heartbeat", {"workerId": "both"})
        assert (status, answer["code"]) == (404, "E.WORKER.NOT_FOUND")


def test_it_registers_again_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=1000) as server:
        assert post(server, "register", BOX)[0] == 200
        server.restart()
        assert post(server, "heartbeat", {"workerId": "box-7"})[0] == 404
        assert post(server, "register", BOX)[0] == 200
        assert status_of(server, "box-7") == "online"
