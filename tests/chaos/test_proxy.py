"""The proxy does to a link what it is told, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxy import DOWN, UP, Proxy, Weather

WITHIN_S = 20.0
Link = tuple[Proxy, asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(4096):
        writer.write(piece)
    writer.close()


@asynccontextmanager
async def _linked() -> AsyncIterator[Link]:
    """A connection to an echo through a proxy."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1])
    await proxy.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        async with asyncio.timeout(WITHIN_S):
            yield proxy, reader, writer
    finally:
        writer.close()
        await proxy.close()
        server.close()


@pytest.mark.parametrize(
    "weather",
    [Weather(), Weather(delay_s=0.01), Weather(is_split=True), Weather(bytes_per_s=1e6)],
)
async def test_what_is_sent_arrives_whole_in_any_weather(weather: Weather) -> None:
    async with _linked() as (proxy, reader, writer):
        proxy.set(UP, weather)
        proxy.set(DOWN, weather)
        sent = bytes(range(256)) * 40
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent


async def test_what_is_sent_in_silence_arrives_when_it_is_over() -> None:
    async with _linked() as (proxy, reader, writer):
        proxy.set(DOWN, Weather(is_silent=True))
        writer.write(b"word")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(4), 0.2)
        proxy.heal()
        assert await reader.readexactly(4) == b"word"


async def test_a_cut_resets_both_ends() -> None:
    async with _linked() as (proxy, reader, writer):
        writer.write(b"word")
        await reader.readexactly(4)
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
