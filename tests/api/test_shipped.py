"""The packages of the installation, seen and run by a second tenant, with a foreign worker of that tenant."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, OTHER, WORKFLOW, serving
from tests.api.scripted import token_of
from tests.rawsocket import RawSocket, envelope

CHAT = {"id": NODE_A, "type": "llm.chat", "parameters": {"model": "m", "prompt": "p"}}


def hello() -> dict[str, Any]:
    return {
        "protocol": 2,
        "auth": {"mode": "token", "token": token_of(Role.WORKER, OTHER)},
        "worker": {
            "worker_instance_id": "w-1",
            "incarnation": 1,
            "worker_name": "one",
            "version": "0",
            "hostname": "h",
        },
    }


def offer(*packages: str) -> dict[str, Any]:
    capabilities = {
        "concurrency": {"max_parallel": 1},
        "runtimes": ["python"],
        "features": ["pkg.install"],
    }
    has = [{"name": name, "version": "1.0.0", "status": "installed"} for name in packages]
    return {"capabilities": capabilities, "packages": has}


async def next_of(socket: RawSocket, frame_type: str) -> dict[str, Any]:
    while True:
        frame = await socket.receive_json()
        if frame["type"] == frame_type:
            payload: dict[str, Any] = frame["payload"]
            return payload


async def test_a_second_tenant_sees_installs_and_runs_a_package_of_the_installation() -> None:
    async with serving() as rig:
        headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        shown = await rig.get("/api/v1/packages/llm/1.0.0", headers=headers)
        assert (shown.status_code, shown.json()["active"]) == (200, True)
        workflow = {"id": WORKFLOW, "nodes": [CHAT], "edges": []}
        made = await rig.post("/api/v1/runs", json={"workflow": workflow}, headers=headers)
        assert made.status_code == 202, made.text
        socket = await RawSocket.open(rig.port)
        try:
            socket.send(envelope("control.handshake", hello(), tenant=OTHER))
            socket.send(envelope("control.register", offer(), tenant=OTHER))
            told = await next_of(socket, "biz.pkg.install")
            assert (told["name"], told["version"], told.get("signature")) == ("llm", "1.0.0", None)
            async with httpx.AsyncClient(verify=False) as stranger:  # there is no TLS here
                archive = await stranger.get(told["url"])
            assert hashlib.sha256(archive.content).hexdigest() == told["sha256"]
            socket.send(envelope("control.register", offer("llm"), tenant=OTHER))
            dispatch = await next_of(socket, "biz.exec.dispatch")
            assert (dispatch["run_id"], dispatch["node_type"]) == (made.json()["runId"], "llm.chat")
        finally:
            await socket.close()
