"""Nodes that pass connections of workers on, and what stands in for their owner, on real sockets."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from astraflow.api.node_signatures import NodeSignatures
from astraflow.api.relayed_worker import LaneOwner
from astraflow.api.worker_relay import WorkerRelays
from astraflow.api.worker_socket import socket_class
from astraflow.clock import SystemClock
from astraflow.core.security.certificates import PeerCertificate
from astraflow.core.security.policy import Role
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.service import Scheduler
from astraflow.tls.authority import Authority
from astraflow.tls.contexts import ServerTls
from tests.api.scripted import token_of
from tests.processes.waiting import until_seen
from tests.rawsocket import TEXT, RawSocket, frame, hello

SECRET = b"a secret that all nodes share"
FIRST = frame("w-1", "control.handshake", hello("w-1", token_of(Role.WORKER)))
MOVED = b'{"type":"control.reset"}'
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"
TRY_LATER = 1013
READ_BYTES = 256 * 1024
"""What one read of a loop takes at most."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Tls(NamedTuple):
    """Contexts of an authority that a test has made."""

    server: ssl.SSLContext
    node: ssl.SSLContext
    worker: ssl.SSLContext
    """With the certificate of the worker `w-1` of tenant `default`."""

    @classmethod
    def made_in(cls, folder: Path) -> Tls:
        authority = Authority(folder, SystemClock())
        authority.create()
        server = ServerTls(*authority.issue_server(["127.0.0.1"]), authority.certificate_file)
        node, worker = (ssl.create_default_context(cafile=authority.certificate_file) for _ in "nw")
        worker.load_cert_chain(*authority.issue_worker("w-1", "default"))
        return cls(server.context, node, worker)


class Node:
    """The places of a node, and how its sockets are reached."""

    def __init__(self, found: Scheduler | LaneOwner | None, tls: Tls | None) -> None:
        self.tls = tls
        self.scheduler = None
        self.found = found
        self.told: bytes | None = None
        """What a worker of protocol 2 is told that belongs to another node; None: it is passed on."""
        self.is_owner = True
        self.metrics = Metrics()
        self.signatures = NodeSignatures([SECRET], SystemClock())
        trust = ssl.create_default_context() if tls is None else tls.node
        self.relays = WorkerRelays(self.signatures, trust, lambda _: self.is_owner, self.metrics)
        self.port = 0

    def is_ready(self) -> bool:
        return True

    def find(self, tenant: str, lane: int) -> Scheduler | LaneOwner | None:
        return self.found

    def answer(
        self, owner: LaneOwner, tenant: str, certificate: PeerCertificate | None
    ) -> bytes | None:
        return self.told

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    def relayed(self) -> float:
        """As the gauge shows it."""
        return self.metrics.relayed_workers.value()


class Watched:
    """A scheduler, and who has connected to it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.seen: list[tuple[str, object]] = []

    def connect(self, connection: Any, certificate: object = None) -> Any:
        self.seen.append((connection.peer(), certificate))
        return self._scheduler.connect(connection, certificate)


@asynccontextmanager
async def node(found: object, tls: Tls | None = None) -> AsyncIterator[Node]:
    made = Node(cast("Scheduler | LaneOwner | None", found), tls)
    context = None if tls is None else tls.server
    loop = asyncio.get_running_loop()
    server = await loop.create_server(socket_class(made), "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.relays.close()
        await until_seen(lambda: made.relays.count == 0)


@asynccontextmanager
async def owner(
    handler: Handler, answer: bytes = SWITCH, tls: Tls | None = None
) -> AsyncIterator[LaneOwner]:
    """What listens in the place of another node; `handler` has the connection after the upgrade."""
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    context = None if tls is None else tls.server
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    scheme = "http" if tls is None else "https"
    try:
        yield LaneOwner(3, f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


@asynccontextmanager
async def worker(
    port: int, first: bytes = FIRST, tls: Tls | None = None
) -> AsyncIterator[RawSocket]:
    """A connection that has sent its first message."""
    made = await RawSocket.open(port, tls=None if tls is None else tls.worker)
    try:
        assert made.status == 101
        made.send(first)
        yield made
    finally:
        await made.close()


async def taken(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The next frame of a client, unmasked."""
    first, second = await reader.readexactly(2)
    assert second & 0x80, "a client masks its frames"
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", await reader.readexactly(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", await reader.readexactly(8))
    key = await reader.readexactly(4)
    body = int.from_bytes(await reader.readexactly(size), "big")
    stream = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return first & 0x0F, (body ^ stream).to_bytes(size, "big")


def plain(payload: bytes, opcode: int = TEXT) -> bytes:
    """One frame of a server."""
    size = len(payload)
    if size < 126:
        return bytes((0x80 | opcode, size)) + payload
    return bytes((0x80 | opcode, 127)) + struct.pack(">Q", size) + payload


def pause(writer: asyncio.StreamWriter) -> None:
    """Read nothing from now on."""
    cast("asyncio.Transport", writer.transport).pause_reading()


async def idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        opcode, payload = await taken(reader)
        writer.write(plain(payload, opcode))
        await writer.drain()


def waiting(node: Node) -> list[int]:
    """What waits to be sent, in each direction of each relay."""
    relays = [one for owned in node.relays._relays.values() for one in owned]
    ends = [end for one in relays for end in (one.worker_end, one.owner_end)]
    return [end._transport.get_write_buffer_size() for end in ends if end._transport is not None]


def ended(node: Node, most: list[int]) -> bool:
    """Whether nothing is passed on any more; until then, note what waits."""
    most.append(max(waiting(node), default=0))
    return not node.relayed()
