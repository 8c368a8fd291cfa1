"""A worker on the generated models alone, with a plain WebSocket: mypy checks every frame that it writes and reads."""

from __future__ import annotations

import json
from types import TracebackType
from typing import assert_type

import astraflow_wire as wire

from tests.processes.rest import TOKEN
from tests.rawsocket import CLOSE, TEXT, RawSocket, new_id

ACK: wire.EnvelopeAck = {"request": True}


class TypedWorker:
    """One worker with one connection. It runs `core.echo`."""

    def __init__(self, socket: RawSocket, name: str) -> None:
        self._socket = socket
        self._name = name
        self._seq = 0
        self.session: wire.ControlSessionAccept | None = None
        self.done: list[wire.BizExecDispatch] = []
        self.acked: int | None = None
        self.errors: list[wire.ControlError] = []

    @classmethod
    async def open(cls, port: int, name: str) -> TypedWorker:
        return cls(await RawSocket.open(port), name)

    async def __aenter__(self) -> TypedWorker:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._socket.close()

    def _common(self) -> wire.AnyFrame:
        sender: wire.EnvelopeSender = {"role": "worker", "id": self._name}
        return {
            "id": new_id(),
            "ts": "2026-01-15T10:00:00.000Z",
            "tenant": "default",
            "sender": sender,
        }

    def _send(self, frame: wire.Frame) -> None:
        self._socket.send(json.dumps(frame).encode())

    def enter(self) -> None:
        about: wire.ControlHandshakeWorker = {
            "worker_instance_id": self._name,
            "incarnation": 1,
            "worker_name": self._name,
            "version": "1",
            "hostname": "h",
        }
        hello: wire.ControlHandshake = {
            "protocol": 2,
            "auth": {"mode": "token", "token": TOKEN},
            "worker": about,
        }
        offer: wire.ControlRegister = {
            "capabilities": {"concurrency": {"max_parallel": 2}, "runtimes": ["python"]},
            "packages": [{"name": "core", "version": "1.0.0", "status": "installed"}],
        }
        self._send({**self._common(), "type": "control.handshake", "payload": hello, "ack": ACK})
        self._send({**self._common(), "type": "control.register", "payload": offer, "ack": ACK})

    async def step(self) -> None:
        """Take one frame, and answer it."""
        kind, raw = await self._socket.receive()
        assert kind != CLOSE, (raw, self.errors)
        if kind != TEXT:
            return
        frame: wire.Frame = json.loads(raw)
        if frame["type"] == "control.session.accept":
            assert_type(frame["payload"], wire.ControlSessionAccept)
            self.session = frame["payload"]
            beat: wire.ControlHeartbeat = {"healthy": True, "attempts": []}
            self._send({**self._common(), "type": "control.heartbeat", "payload": beat})
        elif frame["type"] == "control.ack":
            self.acked = frame["payload"].get("ack_seq", self.acked)
        elif frame["type"] == "control.error":
            self.errors.append(frame["payload"])
        elif frame["type"] == "biz.exec.dispatch":
            self._run(frame)

    def _run(self, frame: wire.BizExecDispatchFrame) -> None:
        given = frame["payload"]
        window: wire.ControlAck = {
            "ack_seq": frame.get("seq"),
            "ack_bitmap": "0",
            "recv_window": 256,
        }
        self._send({**self._common(), "type": "control.ack", "payload": window})
        outcome: wire.BizExecResult = {
            "run_id": given["run_id"],
            "task_id": given["task_id"],
            "attempt": given["attempt"],
            "status": "SUCCEEDED",
            "result": {"value": given["parameters"]["value"]},
        }
        self._send(
            {
                **self._common(),
                "type": "biz.exec.result",
                "payload": outcome,
                "corr": given["task_id"],
                "seq": self._seq,
            }
        )
        self._seq += 1
        self.done.append(given)
