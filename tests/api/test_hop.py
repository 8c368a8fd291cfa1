"""A request that is passed on to another node, with a socket as the other node."""

from __future__ import annotations

import asyncio
import ssl

from astraflow.api.asgi import Message, Scope
from astraflow.api.hop import ANSWERED, Hops
from astraflow.api.kept_body import KeptBody
from astraflow.api.responses import REQUEST_ID

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


async def _passed_on(*headers: tuple[bytes, bytes]) -> list[bytes]:
    """The lines of headers that the other node gets of such a request."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    bodies: asyncio.Queue[Message] = asyncio.Queue()
    bodies.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    async def send(message: Message) -> None:
        """Nobody looks at the answer."""

    async def granted(grant: bytes) -> None:
        raise AssertionError(grant)

    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/runs",
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        REQUEST_ID: b"r-1",
    }
    hops = Hops([b"a secret for tests, long enough to sign"], ssl.create_default_context())
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        receive = bodies.get
        try:
            outcome = await hops.pass_on(
                url, 0, scope, KeptBody(receive), receive, send, lambda: True, granted
            )
        finally:
            hops.close()
    assert outcome is ANSWERED
    return heads[0].lower().split(b"\r\n")


def _named(lines: list[bytes], name: bytes) -> list[bytes]:
    return [line for line in lines if line.startswith(name + b":")]


async def test_what_the_client_accepts_is_passed_on_and_nothing_else() -> None:
    plain = await _passed_on((b"host", b"one.example"))
    for name in (b"accept", b"accept-encoding", b"user-agent"):
        assert not _named(plain, name), "a client that names none may not understand gzip"
    assert _named(plain, b"host") == [b"host: one.example"]
    asked = await _passed_on((b"host", b"one.example"), (b"accept-encoding", b"gzip"))
    assert _named(asked, b"accept-encoding") == [b"accept-encoding: gzip"]
