"""Files between a client and the scheduler: sent from the disk, and fetched onto it, piece by piece."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Final

from astraflow.core import errors

PIECE_BYTES: Final = 256 * 1024
MAX_CUTS: Final = 5
"""How often a download goes on in a row without having got anything."""


def read_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


async def aread_pieces(path: Path) -> AsyncIterator[bytes]:
    """As `read_pieces`, for an event loop."""
    import asyncio  # a third of the start of a command that has no loop

    pieces = read_pieces(path)
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


class Fetching:
    """One download. An interrupted download is continued; an incomplete file never gets its final name."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._part = into.with_name(f"{into.name}.part")
        self._digest = hashlib.sha256()
        self._etag = ""
        self._cuts = 0
        self._size = 0
        self._file = self._part.open("wb")

    def close(self) -> None:
        """Leave nothing half behind."""
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def headers(self) -> dict[str, str]:
        """The headers of the next request."""
        if not self._size:
            return {}
        return {"range": f"bytes={self._size}-", "if-range": self._etag}

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """A successful response begins."""
        if status == 200:  # from the beginning, perhaps of another content
            self._file.seek(0)
            self._file.truncate()
            self._digest = hashlib.sha256()
            self._size = 0
        self._etag = headers.get("etag", "")

    def take(self, piece: bytes) -> None:
        self._file.write(piece)
        self._digest.update(piece)
        self._size += len(piece)
        self._cuts = 0

    def cut(self, error: errors.AstraflowError) -> None:
        """The line broke. Raises: the error, when there is no end of it."""
        self._cuts += 1
        if self._cuts > MAX_CUTS:
            raise error

    def finish(self) -> int:
        """Everything came: give it its name. The size.

        Raises: Unavailable, when it is not what the server says it is.
        """
        digest = self._digest.hexdigest()
        if self._etag.strip('"') not in ("", digest):
            raise errors.Unavailable(
                errors.STORE_UNAVAILABLE, "the file came damaged; fetch it again"
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._into)
        return self._size
