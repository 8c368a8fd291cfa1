"""A worker that is written from the protocol's text alone, against a whole scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.api.test_worker_socket import HELLO, TOKEN, connected, served
from tests.rawsocket import RawSocket, frame

NODE = "2b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"
WORKFLOW = "ba55c67a-9ad4-4b6f-a719-b84e774c2d11"
OFFER: dict[str, Any] = {
    "capabilities": {"concurrency": {"max_parallel": 4}, "runtimes": ["python"], "features": []},
    "payload_types": [],
    "packages": [
        {"name": "core", "version": "1.0.0", "status": "installed", "manifest_sha256": ""}
    ],
    "labels": {},
    "inflight": [],
    "held_results": [],
}
ASK = {"request": True}


async def enter(socket: RawSocket) -> dict[str, Any]:
    socket.send(frame("w-1", "control.handshake", HELLO, ack=ASK))
    await socket.next("control.ack")
    socket.send(frame("w-1", "control.register", OFFER, ack=ASK))
    accept: dict[str, Any] = (await socket.next("control.session.accept"))["payload"]
    socket.send(frame("w-1", "control.heartbeat", {"healthy": True, "attempts": []}, ack=ASK))
    await socket.next("control.ack")
    return accept


def client(port: int) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False)


async def submit(http: httpx.AsyncClient) -> str:
    node = {"id": NODE, "type": "core.echo", "parameters": {"value": 1}}
    answer = await http.post("/api/v1/runs", json={"workflow": {"id": WORKFLOW, "nodes": [node]}})
    assert answer.status_code == 202
    run_id: str = answer.json()["runId"]
    return run_id


def result_of(dispatch: dict[str, Any], **fields: Any) -> dict[str, Any]:
    ref = {name: dispatch[name] for name in ("run_id", "task_id", "attempt")}
    return {**ref, "status": "SUCCEEDED", "result": {"value": 1}, "artifacts": [], **fields}


async def acked(socket: RawSocket, seq: int) -> None:
    """Wait until the window ack covers this frame."""
    while True:
        payload = (await socket.next("control.ack"))["payload"]
        if payload["ack_seq"] is not None and payload["ack_seq"] >= seq:
            return


async def test_it_runs_a_node_and_is_told_that_its_result_is_kept(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket, client(port) as http:
        accept = await enter(socket)
        assert accept["resumed"] is False
        assert accept["last_seen_seq"] is None
        run_id = await submit(http)
        received = await socket.next("biz.exec.dispatch")
        dispatch = received["payload"]
        assert (received["seq"], received["corr"]) == (0, dispatch["task_id"])
        assert (dispatch["node_id"], dispatch["parameters"]) == (NODE, {"value": 1})
        assert dispatch["lease"]["ttl_ms"] == accept["lease_ttl_ms"]
        taken = {"ack_seq": 0, "ack_bitmap": "0", "recv_window": 256}
        socket.send(frame("w-1", "control.ack", taken))
        corr = dispatch["task_id"]
        socket.send(frame("w-1", "biz.exec.result", result_of(dispatch), corr=corr, seq=0, ack=ASK))
        await acked(socket, 0)
        run = (await http.get(f"/api/v1/runs/{run_id}")).json()
        assert run["status"] == "succeeded"
        assert run["nodes"][0]["result"] == {"value": 1}


async def test_what_it_cannot_be_understood_in_is_told_and_its_session_lives(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as port, connected(port) as socket, client(port) as http:
        await enter(socket)
        run_id = await submit(http)
        dispatch = (await socket.next("biz.exec.dispatch"))["payload"]
        socket.send(frame("w-1", "biz.unheard.of", {"a": 1}, seq=0))
        unknown = (await socket.next("control.error"))["payload"]
        assert unknown["code"] == "E.CMD.UNKNOWN"
        wrong = result_of(dispatch, status="PERHAPS")
        socket.send(frame("w-1", "biz.exec.result", wrong, corr=dispatch["task_id"], seq=1))
        refused = (await socket.next("control.error"))["payload"]
        assert (refused["code"], refused["pointer"]) == (
            "E.PROTOCOL.BAD_PAYLOAD",
            "/payload/status",
        )
        await acked(socket, 1)
        run = (await http.get(f"/api/v1/runs/{run_id}")).json()
        assert run["nodes"][0]["error"]["code"] == "E.RESULT.INVALID"


async def test_it_resumes_on_another_connection_and_gets_what_it_had_not_taken(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as port, client(port) as http:
        async with connected(port) as first:
            accept = await enter(first)
            await submit(http)
            sent = await first.next("biz.exec.dispatch")
        async with connected(port) as second:
            resume = {name: accept[name] for name in ("session_id", "session_token")}
            resume["last_seen_seq"] = None
            second.send(frame("w-1", "control.resume", resume, ack=ASK))
            again = (await second.next("control.session.accept"))["payload"]
            assert (again["resumed"], again["session_id"]) == (True, accept["session_id"])
            resent = await second.next("biz.exec.dispatch")
            assert (resent["id"], resent["seq"]) == (sent["id"], sent["seq"])


async def test_a_second_connection_with_its_identity_takes_over(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as first, connected(port) as second:
        await enter(first)
        await enter(second)
        frames, code = await first.until_close()
        assert frames[-1]["payload"]["code"] == "E.SESSION.STALE_BINDING"
        assert code == 1000


async def test_a_session_that_is_not_known_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        accept = await enter(socket)
        unknown = {
            "session_id": "01J8ZK2Q3W4E5R6T7Y8V9A0BCD",
            "session_token": accept["session_token"],
            "last_seen_seq": None,
        }
        async with connected(port) as other:
            other.send(frame("w-1", "control.resume", unknown, ack=ASK))
            frames, _ = await other.until_close()
            assert frames[-1]["type"] == "control.reset"
