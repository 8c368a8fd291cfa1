"""Every frame type before the handshake, and with another tenant, sender or direction: none has an effect.

The frame types are those of the code, the payloads are valid examples: what is refused is who sends it, and when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.protocol.frame_table import FRAME_TYPES
from tests.conftest import ROOT
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.rawsocket import RawSocket, frame, hello

OPENING = {"control.handshake", "control.resume"}
"""What opens a session; the tokens of the examples are not ours."""
NUMBERED = {name for name in FRAME_TYPES if name.startswith("biz.")} | {"control.drain"}
OFFER = {"capabilities": {"concurrency": {"max_parallel": 1}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder: Path = tmp_path_factory.mktemp("frames")
    with running(folder, heartbeat_ms=20_000) as server:
        yield server


def example(name: str) -> Any:
    whole = json.loads((ROOT / "schemas" / "examples" / f"{name}.json").read_text())
    return next(iter(whole["valid"].values()))


def numbered(name: str) -> dict[str, Any]:
    return {"seq": 0} if name in NUMBERED else {}


async def opened(server: System, worker: str) -> RawSocket:
    """A connection with an open session."""
    socket = await RawSocket.open(server.port)
    socket.send(frame(worker, "control.handshake", hello(worker, TOKEN)))
    socket.send(frame(worker, "control.register", OFFER))
    await socket.next("control.session.accept")
    return socket


async def ended(socket: RawSocket) -> tuple[str, int | None]:
    """The code of the reset, and of the close after it."""
    frames, closed = await socket.until_close()
    await socket.close()
    return frames[-1]["payload"]["code"], closed


@pytest.mark.parametrize("name", FRAME_TYPES)
async def test_before_the_handshake_nothing_is_taken(server: System, name: str) -> None:
    socket = await RawSocket.open(server.port)
    payload = hello("stranger", "x") if name == "control.handshake" else example(name)
    socket.send(frame("stranger", name, payload, **numbered(name)))
    wanted = "E.AUTH.INVALID_TOKEN" if name in OPENING else "E.SESSION.DENIED"
    assert await ended(socket) == (wanted, 1008)


@pytest.mark.parametrize("name", FRAME_TYPES)
@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "umbrella"},
        {"sender": {"role": "worker", "id": "somebody-else"}},
        {"sender": {"role": "scheduler", "id": "forger"}},
    ],
    ids=["tenant", "id", "role"],
)
async def test_a_frame_of_another_tenant_or_sender_ends_the_session(
    server: System, name: str, other: dict[str, Any]
) -> None:
    socket = await opened(server, "forger")
    socket.send(frame("forger", name, example(name), **numbered(name), **other))
    assert await ended(socket) == ("E.SESSION.DENIED", 1008)


@pytest.mark.parametrize(
    "name", [name for name, row in FRAME_TYPES.items() if row.receiver == "worker"]
)
async def test_a_worker_cannot_send_what_only_a_scheduler_sends(server: System, name: str) -> None:
    runs = server.rest.get("runs")["items"]
    socket = await opened(server, f"pretender-{name}")
    socket.send(frame(f"pretender-{name}", name, example(name), **numbered(name)))
    socket.send(frame(f"pretender-{name}", "control.heartbeat", {}, ack={"request": True}))
    answers: list[dict[str, Any]] = []
    while (
        not answers or answers[-1]["type"] != "control.ack" or "for" not in answers[-1]["payload"]
    ):
        answers.append(await socket.receive_json())
    told = [one["payload"]["code"] for one in answers if one["type"] == "control.error"]
    assert told == (["E.CMD.UNKNOWN"] if name in NUMBERED else [])
    assert server.rest.get("runs")["items"] == runs
    assert server.rest.worker(f"pretender-{name}")["status"] == "online"
    await socket.close()


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_only_workers_and_admins_open_a_session(server: System, role: str) -> None:
    made = server.rest.post("tokens", {"role": role, "label": role}, wanted=201)
    socket = await RawSocket.open(server.port)
    socket.send(frame(role, "control.handshake", hello(role, made["token"])))
    code, closed = await ended(socket)
    assert (code.startswith("E.AUTH."), closed) == (True, 1008)


async def test_a_token_of_another_tenant_opens_none_of_ours(server: System) -> None:
    server.rest.post("tenants", {"tenant": "umbrella"}, wanted=201)
    body = {"role": "worker", "label": "w", "tenant": "umbrella", "ttlSeconds": 600}
    made = server.rest.post("tokens", body, wanted=201)
    refused = await RawSocket.open(server.port)
    refused.send(frame("w", "control.handshake", hello("w", made["token"])))
    code, closed = await ended(refused)
    assert (code, closed) == ("E.AUTH.INVALID_TOKEN", 1008)
    own = await RawSocket.open(server.port)
    own.send(frame("w", "control.handshake", hello("w", made["token"]), tenant="umbrella"))
    own.send(frame("w", "control.register", OFFER, tenant="umbrella"))
    await own.next("control.session.accept")
    await own.close()
