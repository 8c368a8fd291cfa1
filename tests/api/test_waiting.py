"""What a waiting node says through the API, with a foreign worker that takes work and keeps it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from astraflow.core.workflow import core_manifest
from tests.api.test_worker_socket import HELLO, TOKEN, connected, served
from tests.rawsocket import RawSocket, frame

LOOKED_EVERY_S = 0.02


def offer(slots: int) -> dict[str, Any]:
    package = {"name": "core", "version": core_manifest().version, "status": "installed"}
    concurrency = {"max_parallel": slots}
    capabilities = {"concurrency": concurrency, "runtimes": ["python"], "features": []}
    return {"capabilities": capabilities, "packages": [package]}


class Site:
    """A client of the API, and the socket of the one worker."""

    def __init__(self, client: httpx.AsyncClient, socket: RawSocket) -> None:
        self.client = client
        self.socket = socket

    async def dispatched(self) -> dict[str, Any]:
        """The next dispatch that the worker is sent."""
        payload: dict[str, Any] = (await self.socket.next("biz.exec.dispatch"))["payload"]
        return payload

    async def submit(self, *nodes: dict[str, Any]) -> str:
        made = [
            {"id": f"00000000-0000-4000-8000-{number:012d}", "type": "core.noop", **node}
            for number, node in enumerate(nodes)
        ]
        body = {"workflow": {"id": "00000000-0000-4000-8000-999999999999", "nodes": made}}
        answer = await self.client.post("/api/v1/runs", json=body)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["runId"]
        return run_id

    async def until(self, run_id: str, holds: Callable[[list[Any]], bool]) -> list[Any]:
        """The waits of the nodes of a run, once they are as they should be."""
        while True:
            view = (await self.client.get(f"/api/v1/runs/{run_id}")).json()
            waits = [node["waitingFor"] for node in view["nodes"]]
            if holds(waits):
                return waits
            await asyncio.sleep(LOOKED_EVERY_S)

    async def events(self, run_id: str, count: int) -> list[Any]:
        """The first waits that the events of a run tell of."""
        found: list[Any] = []
        query = f"/api/v1/events?runId={run_id}"
        async with self.client.stream("GET", query, timeout=30) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    waits = json.loads(line[6:])["data"].get("waitingFor")
                    found += [waits] if waits else []
                if len(found) == count:
                    break
        return found

    def fail(self, task: dict[str, Any]) -> None:
        """The worker says that the attempt has failed."""
        error = {"code": "E.RUNNER.FAILURE", "category": "USER_CODE", "message": "boom"}
        report = {
            **{name: task[name] for name in ("run_id", "task_id", "attempt")},
            "status": "FAILED",
            "error": error,
        }
        self.socket.send(frame("w-1", "biz.exec.result", report, seq=0))


@asynccontextmanager
async def site(port: int, slots: int) -> AsyncIterator[Site]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        connected(port) as socket,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as client,
    ):
        socket.send(frame("w-1", "control.handshake", HELLO))
        socket.send(frame("w-1", "control.register", offer(slots)))
        while (await socket.receive_json())["type"] != "control.session.accept":
            pass
        yield Site(client, socket)


async def test_a_node_without_a_slot_says_who_is_busy(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 1) as one:
        run_id = await one.submit({}, {})
        await one.dispatched()
        waits = await one.until(run_id, any)
        assert waits == [None, {"kind": "slot", "detail": "worker w-1 is busy"}]


async def test_a_node_whose_key_is_taken_says_who_has_it(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 4) as one:
        first = await one.submit({"concurrencyKey": "printer"})
        holder = await one.dispatched()
        second = await one.submit({"concurrencyKey": "printer"})
        [wait] = await one.until(second, any)
        assert wait["kind"] == "key"
        assert wait["heldBy"] == {"runId": first, "nodeId": holder["node_id"]}
        node = await one.client.get(f"/api/v1/runs/{second}/nodes/{holder['node_id']}")
        assert node.json()["waitingFor"] == wait
        assert node.json()["status"] == "ready"


async def test_a_node_that_is_tried_again_says_when(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 4) as one:
        retry = {"maxAttempts": 2, "backoff": {"initialSeconds": 60, "jitter": 0}}
        run_id = await one.submit({"retry": retry})
        one.fail(await one.dispatched())
        [wait] = await one.until(run_id, any)
        assert (wait["kind"], wait["detail"]) == ("retry", "attempt 1 failed; failure 1 of 2")
        assert wait["retryAt"] == wait["until"]
        view = (await one.client.get(f"/api/v1/runs/{run_id}")).json()
        assert view["nodes"][0]["status"] == "retrying"
        assert wait["retryAt"] > view["startedAt"]


async def test_a_node_that_no_worker_fits_says_what_is_missing(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 1) as one:
        run_id = await one.submit({"workerHints": {"labels": {"zone": "eu"}}})
        [wait] = await one.until(run_id, any)
        assert wait["kind"] == "worker"
        assert "the label zone=eu" in wait["detail"], wait


async def test_a_wait_for_a_slot_or_a_key_that_lasts_is_an_event(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 2) as one:
        first = await one.submit({"concurrencyKey": "printer"})
        holder = (await one.dispatched())["node_id"]
        keyed = await one.submit({"concurrencyKey": "printer"})
        await one.submit({})
        await one.dispatched()
        plain = await one.submit({}, {})
        [by_key] = await one.events(keyed, 1)
        detail = f"node {holder} of run {first} has the concurrency key printer"
        held_by = {"runId": first, "nodeId": holder}
        assert by_key == {"kind": "key", "detail": detail, "heldBy": held_by}
        # Of two nodes one speaks for both.
        assert await one.events(plain, 1) == [{"kind": "slot", "detail": "worker w-1 is busy"}]
        node = (await one.client.get(f"/api/v1/runs/{keyed}/nodes/{holder}")).json()
        assert any(f"waits for key: {detail}" in str(line) for line in node["story"]), node["story"]


async def test_a_retry_is_an_event_with_its_time(tmp_path: Any) -> None:
    async with served(tmp_path) as port, site(port, 1) as one:
        retry = {"maxAttempts": 3, "backoff": {"initialSeconds": 60, "jitter": 0}}
        run_id = await one.submit({"retry": retry})
        one.fail(await one.dispatched())
        [wait] = await one.until(run_id, any)
        [said] = await one.events(run_id, 1)
        assert (said["kind"], said["detail"]) == ("retry", "attempt 1 failed; failure 1 of 3")
        assert said["retryAt"][:16] == wait["retryAt"][:16]
