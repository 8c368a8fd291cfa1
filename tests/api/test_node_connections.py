"""Exchanges with another node, with a socket as that node."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from astraflow.api import node_connections
from astraflow.api.node_connections import (
    AHEAD_BYTES,
    CannotConnect,
    ExchangeFailed,
    NodeConnections,
    NodeRequest,
)

pytestmark = pytest.mark.usefixtures("each_loop")
TRUST = ssl.create_default_context()
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
NOTHING = NodeRequest("GET", b"/a?b=c", [(b"host", b"one.example"), (b"content-length", b"0")])

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """What listens, and how often somebody has connected."""

    def __init__(self, url: str, connections: NodeConnections) -> None:
        self.url = url
        self.connections = connections
        self.connected = 0


@asynccontextmanager
async def peer(handler: Handler, at_once: int = 100) -> AsyncIterator[Peer]:
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connected += 1
        writers.append(writer)
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    found = Peer(url, NodeConnections(TRUST, at_once))
    try:
        yield found
    finally:
        found.connections.close()
        server.close()
        for writer in writers:
            writer.transport.abort()


def answering(*answers: bytes) -> Handler:
    """Answers each request of a connection with the next of these, then closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(x[15:]) for x in head.split(b"\r\n") if x[:15] == b"content-length:"), 0
            )
            await reader.readexactly(length)
            writer.write(answer)
            await writer.drain()

    return handler


async def whole(found: Peer, request: NodeRequest = NOTHING) -> bytes:
    exchange = await found.connections.ask(found.url, request)
    try:
        await exchange.head()
        return await exchange.read()
    finally:
        exchange.close()


async def test_a_connection_is_used_again() -> None:
    async with peer(answering(*[PLAIN] * 5)) as found:
        for _ in range(5):
            assert await whole(found) == b"{}"
        assert found.connected == 1


async def test_what_is_asked_at_once_has_connections_of_its_own_and_they_are_kept() -> None:
    async with peer(answering(*[PLAIN] * 5)) as found:
        for _ in range(3):
            assert await asyncio.gather(*(whole(found) for _ in range(20))) == [b"{}"] * 20
        assert found.connected == 20


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}never asked for",
    ],
    ids=["close", "old", "a second response", "more than its length"],
)
async def test_a_connection_that_may_not_be_used_again_is_not(answer: bytes) -> None:
    async with peer(answering(answer, answer)) as found:
        assert await whole(found) == b"{}"
        assert await whole(found) == b"{}"
        assert found.connected == 2


async def test_a_connection_that_the_other_node_has_closed_is_not_used() -> None:
    async with peer(answering(PLAIN)) as found:
        for _ in range(4):
            assert await whole(found) == b"{}"
            await asyncio.sleep(0.05)
        assert found.connected == 4


async def test_a_connection_that_was_idle_for_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with peer(answering(*[PLAIN] * 3)) as found:
        assert await whole(found) == b"{}"
        monkeypatch.setattr(node_connections, "IDLE_S", 0.0)
        assert await whole(found) == b"{}"
        assert found.connected == 2


@pytest.mark.parametrize("seed", range(20))
async def test_a_response_may_come_in_any_pieces(seed: int) -> None:
    rng = Random(seed)
    body = rng.randbytes(5_000)
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(body[at : at + 700]), body[at : at + 700])
        for at in range(0, len(body), 700)
    )
    said = [
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunks + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: b\r\ncontent-length: 5000\r\n\r\n" + body,
    ]  # fmt: skip
    answer = rng.choice(said)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            left = answer
            while left:
                size = rng.choice((1, 7, 500, 3000))
                writer.write(left[:size])
                await writer.drain()
                await asyncio.sleep(0)
                left = left[size:]

    async with peer(handler) as found:
        for _ in range(2):
            exchange = await found.connections.ask(found.url, NOTHING)
            await exchange.head()
            assert (exchange.status, exchange.headers[0]) == (200, (b"x-a", b"b"))
            assert await exchange.read() == body
            exchange.close()
        assert found.connected == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    ],
)
async def test_what_is_not_a_whole_response_is_an_error(answer: bytes) -> None:
    async with peer(answering(answer)) as found:
        with pytest.raises(ExchangeFailed):
            await whole(found)


async def test_head_has_no_body_although_it_has_a_length() -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n")) as found:
        assert await whole(found, NOTHING._replace(method="HEAD")) == b""


async def test_nobody_listens() -> None:
    async with peer(answering()) as found:
        pass
    for url in (found.url, "http://127.0.0.1:99999", "http://nowhere.invalid"):
        with pytest.raises(CannotConnect):
            await found.connections.ask(url, NOTHING)


async def test_more_than_so_many_at_once_wait_and_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_connections, "CONNECT_TIMEOUT_S", 0.1)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent, at_once=2) as found:
        asked = [await found.connections.ask(found.url, NOTHING) for _ in range(2)]
        with pytest.raises(CannotConnect, match="too many"):
            await found.connections.ask(found.url, NOTHING)
        asked[0].close()
        asked[0].close()
        last = await found.connections.ask(found.url, NOTHING)
        with pytest.raises(CannotConnect, match="too many"):
            await found.connections.ask(found.url, NOTHING)
        for exchange in (*asked, last):
            exchange.close()


async def test_a_response_that_nobody_takes_is_not_read() -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        while True:
            writer.write(bytes(65536))
            await writer.drain()
            sent += 65536

    async with peer(endless) as found:
        exchange = await found.connections.ask(found.url, NOTHING)
        await exchange.head()
        last = -1
        while sent != last:
            last = sent
            await asyncio.sleep(0.3)
        assert exchange._ahead < AHEAD_BYTES + 1024**2
        taken = 0
        async for piece in exchange.pieces():
            taken += len(piece)
            if taken > last + 1024**2:
                break
        assert sent > last, "it goes on when it is taken"
        exchange.close()


async def _body(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ([(b"content-length", b"9")], b"content-length: 9\r\n\r\nonetwosix"),
        ([], b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n3\r\nsix\r\n0\r\n\r\n"),
    ],
)
async def test_a_body_is_sent_as_it_comes(headers: list[tuple[bytes, bytes]], sent: bytes) -> None:
    heard = b""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        for _ in range(2):
            heard = await reader.readuntil(sent[-7:])
            writer.write(PLAIN)

    async with peer(handler) as found:
        for _ in range(2):
            request = NodeRequest("POST", b"/", headers, b"one", _body(b"two", b"", b"six"))
            assert await whole(found, request) == b"{}"
            assert heard == b"POST / HTTP/1.1\r\n" + sent
        assert found.connected == 1


@pytest.mark.parametrize("rest", [(), (b"tw",), (b"two", b"sixseven")])
async def test_a_body_of_another_length_than_its_head_says_is_no_request(
    rest: tuple[bytes, ...],
) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.put_nowait(await reader.read())

    async with peer(handler) as found:
        request = NodeRequest("POST", b"/", [(b"content-length", b"9")], b"one", _body(*rest))
        with pytest.raises(ExchangeFailed, match="not as long"):
            await whole(found, request)
        assert len((await heard.get()).partition(b"\r\n\r\n")[2]) < 9


async def test_an_error_of_the_body_is_the_error_of_the_exchange() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"two"
        raise KeyError("the client left")

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent) as found:
        with pytest.raises(KeyError):
            await whole(found, NodeRequest("POST", b"/", [], b"one", broken()))


async def test_an_answer_before_the_body_was_sent_ends_the_connection() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1000)
            await asyncio.sleep(0.01)

    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PLAIN)
        await reader.read()

    async with peer(refusing) as found:
        assert await whole(found, NodeRequest("POST", b"/", [], b"", endless())) == b"{}"
        assert await whole(found, NodeRequest("POST", b"/", [], b"", endless())) == b"{}"
        assert found.connected == 2


async def test_a_node_that_does_not_read_a_body_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_connections, "WRITE_TIMEOUT_S", 0.2)
    made = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal made
        while True:
            made += 65536
            yield bytes(65536)

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async with peer(deaf) as found:
        with pytest.raises(ExchangeFailed, match="does not read"):
            await whole(found, NodeRequest("POST", b"/", [], b"", endless()))
        assert made < 64 * 1024**2


async def test_who_waits_is_told_when_an_exchange_is_abandoned() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent) as found:
        exchange = await found.connections.ask(found.url, NOTHING)
        waiting = asyncio.create_task(exchange.head())
        await asyncio.sleep(0)
        exchange.abandon(LookupError("moved"))
        with pytest.raises(LookupError, match="moved"):
            await waiting
        exchange.abandon(KeyError("too late"))
        with pytest.raises(LookupError, match="moved"):
            await exchange.read()
        exchange.close()
