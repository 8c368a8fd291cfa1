"""The bytes of a world of shells: a blob store in memory, which survives, and the handle of each scheduler to it.

It keeps the rules of the real one: a blob is there whole or not at all, and it is never changed. A handle ends with its
process.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.scheduler.blobs import BlobInfo, Written

if TYPE_CHECKING:
    from tests.sim.shells.disk import Disk, Handle

__all__ = ["BlobHandle", "BlobShelf"]

PIECE_BYTES = 256


class BlobShelf:
    """What survives: the bytes by key, with the time at which they were written."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.blobs: dict[str, tuple[bytes, int]] = {}
        self.out_until = 0.0

    def has(self, text: str) -> bool:
        """Whether the copy that a row names is there."""
        return text.partition("?")[0] in self.blobs


class BlobHandle:
    """`scheduler.blobs.Blobs`, as one process of a scheduler uses it."""

    def __init__(self, shelf: BlobShelf, handle: Handle) -> None:
        self._shelf = shelf
        self._handle = handle

    async def put_stream(
        self, key: str, chunks: AsyncIterator[bytes], max_bytes: int | None = None
    ) -> Written:
        written = bytearray()
        async for chunk in chunks:
            written += chunk
        assert max_bytes is None or len(written) <= max_bytes
        await self._reach()
        at = int(self._shelf.disk.world.now * 1000)
        self._shelf.blobs[key] = (bytes(written), at)
        return Written(len(written), hashlib.sha256(written).hexdigest())

    async def put_file(self, key: str, path: Path) -> Written:
        return await self.put_stream(key, _read_file(path))

    async def read_range(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        for first in range(start, end, PIECE_BYTES):
            await self._reach()
            yield self._read(key)[first : min(first + PIECE_BYTES, end)]

    async def size(self, key: str) -> int:
        await self._reach()
        return len(self._read(key))

    async def exists(self, key: str) -> bool:
        await self._reach()
        return key in self._shelf.blobs

    async def delete(self, key: str) -> None:
        await self._reach()
        self._shelf.blobs.pop(key, None)

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        await self._reach()
        for key, (content, at) in list(self._shelf.blobs.items()):
            if key.startswith(f"{prefix}/"):
                yield BlobInfo(key, len(content), at)

    async def sweep(self, before_ms: int) -> int:
        await self._reach()
        return 0

    def _read(self, key: str) -> bytes:
        found = self._shelf.blobs.get(key)
        if found is None:
            raise errors.NotFound(errors.RESOURCE_MISSING, "the blob is not there")
        return found[0]

    async def _reach(self) -> None:
        disk = self._shelf.disk
        await disk.wait(disk.config.read_delay_s)
        if self._handle.is_dead or disk.world.now < self._shelf.out_until:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "planted: no blob store answers")


async def _read_file(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)
