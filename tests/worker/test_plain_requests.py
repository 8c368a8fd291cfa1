"""The small HTTP client of a worker, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from astraflow.worker import plain_requests
from astraflow.worker.plain_requests import NotReached, plain_request


@asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Answers every request with this; with None never. Gives its address, and what it was asked."""
    asked: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            if answer is None:
                await ended.wait()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked
    finally:
        ended.set()
        listening.close()


async def test_status_and_body_are_returned_and_a_redirect_is_not_followed() -> None:
    raw = b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 2\r\n\r\n{}"
    async with server(raw) as (url, asked):
        found = await plain_request("POST", f"{url}/api/v1/me", {"authorization": "Bearer x"})
        assert found == (307, b"{}")
    head = asked[0].decode().lower().split("\r\n")
    assert head[0] == "post /api/v1/me http/1.1"
    assert "authorization: bearer x" in head and "content-length: 0" in head


async def test_an_answer_in_chunks_is_put_together() -> None:
    raw = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    async with server(raw) as (url, _):
        assert await plain_request("GET", url, {}) == (200, b"{}")


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", None])
async def test_who_gives_no_answer_is_not_reached(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_requests, "TIMEOUT_S", 0.3 if answer is None else 10.0)
    async with server(answer) as (url, _):
        with pytest.raises(NotReached):
            await plain_request("GET", url, {})
    with pytest.raises(NotReached):
        await plain_request("GET", url, {})


@pytest.mark.parametrize("url", ["http://", "http://127.0.0.1:x/", "http://127.0.0.1:1/a b"])
async def test_an_address_that_is_none_is_not_reached(url: str) -> None:
    with pytest.raises(NotReached):
        await plain_request("GET", url, {})
