"""Services that hang, trickle, never end or lie about their length, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from astraflow.scheduler import bounded_requests
from astraflow.scheduler.bounded_requests import MAX_ANSWER_BYTES, NoAnswer, bounded_request

OK = b"HTTP/1.1 200 OK\r\n"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def service(answer: Answer) -> AsyncIterator[str]:
    """A service that answers every request with this. Gives its address."""

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await reader.readuntil(b"\r\n\r\n")
                await answer(writer)
                await writer.drain()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving)


def says(raw: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return answer


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def hangs_in_the_body(writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"content-length: 10\r\n\r\n{")
    await asyncio.Event().wait()


async def trickles(writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"content-length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def never_ends(writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"content-length: 100000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" " * 65_536)
        await writer.drain()


@pytest.mark.parametrize("answer", [hangs, hangs_in_the_body, trickles])
async def test_the_whole_answer_has_one_deadline(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_requests, "DEADLINE_S", 0.3)
    async with service(answer) as url:
        with pytest.raises(NoAnswer, match="does not answer"):
            await bounded_request("GET", url)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (never_ends, "too long"),
        (
            says(OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(bytes(MAX_ANSWER_BYTES))),
            "compressed",
        ),
        (says(b"nonsense\r\n\r\n"), "RemoteProtocolError"),
        (says(b""), "RemoteProtocolError"),
    ],
)
async def test_what_cannot_be_used_is_refused(answer: Answer, why: str) -> None:
    async with service(answer) as url:
        with pytest.raises(NoAnswer, match=why):
            await bounded_request("POST", url, json={"plaintext": "canary"})


async def test_nothing_is_sent_to_where_a_redirect_points() -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with service(says(moved)) as url:
        assert await bounded_request("GET", url) == (302, b"")


async def test_an_answer_is_returned_as_it_is() -> None:
    async with service(says(OK + b"content-length: 2\r\n\r\n{}")) as url:
        assert await bounded_request("GET", url) == (200, b"{}")
    with pytest.raises(NoAnswer):
        await bounded_request("GET", url)
