"""The packages of the installation, seen and run by a second tenant, with a foreign worker of that tenant."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, OTHER, WORKFLOW, serving
from tests.api.scripted import token_of
from tests.rawsocket import RawSocket, frame, hello

CHAT = {"id": NODE_A, "type": "llm.chat", "parameters": {"model": "m", "prompt": "p"}}


def offer(*packages: str) -> dict[str, Any]:
    capabilities = {
        "concurrency": {"max_parallel": 1},
        "runtimes": ["python"],
        "features": ["pkg.install"],
    }
    has = [{"name": name, "version": "1.0.0", "status": "installed"} for name in packages]
    return {"capabilities": capabilities, "packages": has}


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
            socket.send(
                frame(
                    "w-1",
                    "control.handshake",
                    hello("w-1", token_of(Role.WORKER, OTHER)),
                    tenant=OTHER,
                )
            )
            socket.send(frame("w-1", "control.register", offer(), tenant=OTHER))
            told = (await socket.next("biz.pkg.install"))["payload"]
            assert (told["name"], told["version"], told.get("signature")) == ("llm", "1.0.0", None)
            async with httpx.AsyncClient(verify=False) as stranger:  # there is no TLS here
                archive = await stranger.get(told["url"])
            assert hashlib.sha256(archive.content).hexdigest() == told["sha256"]
            socket.send(frame("w-1", "control.register", offer("llm"), tenant=OTHER))
            dispatch = (await socket.next("biz.exec.dispatch"))["payload"]
            assert (dispatch["run_id"], dispatch["node_type"]) == (made.json()["runId"], "llm.chat")
        finally:
            await socket.close()
