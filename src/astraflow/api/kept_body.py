"""The body of a request that is passed on: kept until it is answered, for another lane or node to be asked."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from astraflow.api.asgi import Message, Receive

KEPT_BYTES: Final = 1024**2
LARGE_BYTES: Final = 16 * 1024**2
MAX_LARGE: Final = 4
"""Bodies above `KEPT_BYTES` that are kept at once."""


class ClientLeft(Exception):
    """The client closed the connection before its request was complete."""


class KeptBody:
    """The body of a request, which may have to be sent twice."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept = bytearray()
        self._limit = KEPT_BYTES
        self._is_whole = False
        self._was_read = False
        self.is_kept = True
        """Whether it can be sent again."""

    async def start(self, limit: int) -> bytes:
        """The body up to this length; what is beyond stays to be read. Raises: ClientLeft."""
        while not self._is_whole and len(self._kept) <= limit:
            await self._read()
        return bytes(self._kept)

    async def fits(self, limit: int = 0) -> bool:
        """Keep it, up to a larger length perhaps. Whether it can be sent again, whoever has read it.

        Raises:
            ClientLeft: the client has closed the connection.
        """
        self._limit = max(limit, self._limit)
        self.is_kept = len(self._kept) <= self._limit
        await self.start(self._limit)
        return self.is_kept

    def again(self) -> KeptBody:
        """The same body for one more reader; what it reads is kept here, if it can be."""
        if not (self._is_whole and self.is_kept):
            return self
        copy = KeptBody(self._receive)
        copy._kept, copy._is_whole, copy._was_read = bytearray(self._kept), True, True
        return copy

    async def _read(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientLeft
        self._was_read = True
        piece: bytes = message.get("body", b"")
        self._is_whole = not message.get("more_body", False)
        if self.is_kept:
            self._kept += piece
            self.is_kept = len(self._kept) <= self._limit
        return piece

    @property
    def is_whole(self) -> bool:
        """Whether all of it was read."""
        return self._is_whole

    async def rest(self) -> AsyncIterator[bytes]:
        """What was not read yet. Raises: ClientLeft."""
        while not self._is_whole:
            yield await self._read()

    async def replay(self) -> Message:
        """As the server's `receive`, with what was read already."""
        if self._was_read:
            self._was_read = False
            body, self._kept = bytes(self._kept), bytearray()
            return {"type": "http.request", "body": body, "more_body": not self._is_whole}
        return await self._receive()


class LargeBodies:
    """Keeps some bodies beyond `KEPT_BYTES`: those of new runs, which may be sent to a lane that is the wrong one."""

    def __init__(self) -> None:
        self._count = 0

    @asynccontextmanager
    async def kept(self, body: KeptBody) -> AsyncIterator[bool]:
        """Whether the body can be sent again, while this lasts. Raises: ClientLeft."""
        if await body.fits() or self._count >= MAX_LARGE:
            yield body.is_kept
            return
        self._count += 1
        try:
            yield await body.fits(LARGE_BYTES)
        finally:
            self._count -= 1
