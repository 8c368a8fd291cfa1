"""A TCP proxy in front of one worker's link that misbehaves as it is told, each direction on its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass

from tests.processes.waiting import until_seen

__all__ = ["DOWN", "UP", "Proxy", "Weather"]

UP, DOWN = "up", "down"
"""From the worker to the scheduler, and back."""

READ_BYTES = 64 * 1024
CLOSE_S = 10.0
SPLIT_BYTES = 3
"""So small are the pieces of a split stream: no frame and hardly a header arrives whole."""
_LINGER_RST = struct.pack("ii", 1, 0)


@dataclass
class Weather:
    """How one direction is."""

    delay_s: float = 0.0
    is_silent: bool = False
    """Nothing passes, and nobody is told: what was sent meanwhile arrives when it is over."""
    is_split: bool = False
    bytes_per_s: float | None = None


class Proxy:
    """Listens on a port of its own; `target` may be changed at any time, for the connections to come."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.weather = {UP: Weather(), DOWN: Weather()}
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        self.cut()
        await until_seen(lambda: not self._pairs, CLOSE_S)

    def heal(self) -> None:
        self.weather = {UP: Weather(), DOWN: Weather()}
        self._stir()

    def set(self, direction: str, weather: Weather) -> None:
        self.weather[direction] = weather
        self._stir()

    def cut(self) -> None:
        """Reset every connection, as a router does that has forgotten them."""
        for pair in list(self._pairs):
            for writer in pair:
                sock = writer.get_extra_info("socket")
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RST)
                writer.transport.abort()
        self._stir()

    def _stir(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, far_writer)
        self._pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer, UP))
                group.create_task(self._pump(far_reader, writer, DOWN))
        except* OSError:
            pass  # one end is gone: so is the other
        finally:
            self._pairs.discard(pair)
            for one in pair:
                one.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str
    ) -> None:
        while piece := await reader.read(READ_BYTES):
            while self.weather[direction].is_silent:
                await self._changed.wait()
            weather = self.weather[direction]
            if weather.delay_s:
                await asyncio.sleep(weather.delay_s)
            if weather.bytes_per_s:
                await asyncio.sleep(len(piece) / weather.bytes_per_s)
            await _write(writer, piece, SPLIT_BYTES if weather.is_split else len(piece))
        raise ConnectionResetError("the other end has closed")


async def _write(writer: asyncio.StreamWriter, piece: bytes, size: int) -> None:
    for at in range(0, len(piece), size):
        writer.write(piece[at : at + size])
        await writer.drain()
        if size < len(piece):
            await asyncio.sleep(0)  # a turn of the loop, so that the kernel sends each by itself
