"""Blobs: large bytes under a key, in a folder or in an S3 bucket. Archives of packages, and exported artifacts.

Rule 1: a blob is there whole or not at all: nothing is under its key until the last byte is written.
Rule 2: bytes pass through in pieces; none of these functions holds a blob in memory.
Rule 3: a blob is never changed. What is new gets a new key.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from astraflow.core import errors

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore

PIECE_BYTES: Final = 256 * 1024
"""What is handed on at once."""

READ_BYTES: Final = 2 * 1024**2
"""What is asked for at once. A reader may take its time between two questions; none of them waits for it."""

PART_BYTES: Final = 8 * 1024**2
"""What is written at once: S3 takes ten thousand parts of one blob, so 80 GiB."""

PARTS_AT_ONCE: Final = 2
"""Parts on their way: with the one that is being filled, 24 MiB for each upload."""

CLIENT: Final[ClientConfig] = {"connect_timeout": "10s", "timeout": "60s"}
"""How long a bucket may take: for a connection, and for one part of a blob."""

_UNFINISHED: Final = re.compile(r"#\d+$")
"""How obstore names a file that is not whole yet."""


class Written(msgspec.Struct, frozen=True):
    """What was written."""

    size_bytes: int
    sha256: str


class BlobInfo(msgspec.Struct, frozen=True):
    """A blob that is there."""

    key: str
    size_bytes: int
    written_at: int


class Blobs:
    """The blobs of one location. `folder` is None for a bucket."""

    def __init__(self, store: ObjectStore, folder: Path | None = None) -> None:
        self._store = store
        self._folder = folder

    async def put_stream(
        self, key: str, chunks: AsyncIterator[bytes], max_bytes: int | None = None
    ) -> Written:
        """Write a blob; when this returns it is durable. One that is there already is replaced.

        What `chunks` raises is raised, and then nothing is written.

        Raises:
            Refused: there are more than `max_bytes`.
            Unavailable: it could not be written.
        """
        counted = _Counted(chunks, max_bytes)
        with _speaking("written"):
            await obstore.put_async(
                self._store,
                key,
                counted.pieces(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )
            if self._folder is not None:
                await asyncio.to_thread(_flush, self._folder / key)
        return Written(counted.size, counted.digest.hexdigest())

    async def put_file(self, key: str, path: Path) -> Written:
        """As `put_stream`, of a file."""
        return await self.put_stream(key, _read_file(path))

    async def read_range(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from `start` up to and without `end`.

        Raises:
            NotFound: there is no such blob.
            Unavailable: it could not be read.
        """
        if end <= start:
            return
        for first in range(start, end, READ_BYTES):
            with _speaking("read"):
                last = min(first + READ_BYTES, end)
                read = await obstore.get_range_async(self._store, key, start=first, end=last)
            part = memoryview(read)
            for place in range(0, len(part), PIECE_BYTES):
                yield bytes(part[place : place + PIECE_BYTES])

    async def size(self, key: str) -> int:
        """Raises: NotFound, Unavailable."""
        with _speaking("read"):
            found: int = (await obstore.head_async(self._store, key))["size"]
        return found

    async def exists(self, key: str) -> bool:
        """Raises: Unavailable."""
        with suppress(errors.NotFound):
            await self.size(key)
            return True
        return False

    async def delete(self, key: str) -> None:
        """Fine if it is not there. Raises: Unavailable."""
        with suppress(errors.NotFound), _speaking("removed"):
            await obstore.delete_async(self._store, key)

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Blobs whose keys begin with this folder. Raises: Unavailable."""
        with _speaking("listed"):
            async for some in obstore.list(self._store, prefix):
                for one in some:
                    at = int(one["last_modified"].timestamp() * 1000)
                    yield BlobInfo(one["path"], one["size"], at)

    async def sweep(self, before_ms: int) -> int:
        """Remove uploads that were begun before then and never finished; how many there were.

        In a bucket they are the bucket's own to remove: a lifecycle rule ("abort incomplete multipart uploads").
        """
        if self._folder is None:
            return 0
        with _speaking("swept"):
            return await asyncio.to_thread(_sweep, self._folder, before_ms)


def blobs_name(url: str | None, data_dir: Path) -> str:
    """What messages call the location that a setting names."""
    return url or str(data_dir / "blobs")


def open_blobs(url: str | None, data_dir: Path) -> Blobs:
    """The blobs that a setting names: a folder, or `s3://bucket/prefix`; `<data>/blobs` if it names nothing.

    Credentials and the endpoint of a bucket come from the AWS_* environment.

    Raises:
        Refused: the location cannot be used.
    """
    if url is not None and url.startswith("s3://"):
        # A server on this machine, as tests and small sites have, speaks no TLS.
        endpoint = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", ""))
        options: ClientConfig = {**CLIENT, "allow_http": endpoint.startswith("http://")}
        with _configured(url):
            return Blobs(S3Store.from_url(url, client_options=options))
    if url is not None and "://" in url and not url.startswith("file://"):
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"use a folder or s3://bucket/prefix for blobs, not: {url.partition('://')[0]}",
            pointer="/blobs_url",
        )
    folder = data_dir / "blobs" if url is None else Path(url.removeprefix("file://"))
    with _configured(str(folder)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Blobs(LocalStore(folder), folder)


@contextmanager
def _configured(place: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"blobs cannot be kept there: {place}: {error}",
            pointer="/blobs_url",
        ) from error


@contextmanager
def _speaking(done: str) -> Iterator[None]:
    """Translate the errors of the blob library."""
    try:
        yield
    except FileNotFoundError as error:
        raise errors.NotFound(errors.RESOURCE_MISSING, "the blob is not there") from error
    except (BaseError, OSError) as error:
        raise errors.Unavailable(
            errors.STORE_UNAVAILABLE, f"a blob cannot be {done} now: {str(error)[:200]}"
        ) from error


class _Counted:
    """Pieces as they come, gathered to a size that is worth a call, counted and hashed."""

    def __init__(self, chunks: AsyncIterator[bytes], max_bytes: int | None) -> None:
        self._chunks = chunks
        self._max_bytes = max_bytes
        self.size = 0
        self.digest = hashlib.sha256()

    async def pieces(self) -> AsyncIterator[bytes]:
        gathered = bytearray()
        async for chunk in self._chunks:
            self.size += len(chunk)
            if self._max_bytes is not None and self.size > self._max_bytes:
                raise errors.Refused(
                    errors.REQUEST_TOO_LARGE,
                    f"the body is larger than allowed, in bytes: {self._max_bytes}",
                )
            self.digest.update(chunk)
            gathered += chunk
            if len(gathered) >= PIECE_BYTES:
                yield bytes(gathered)
                gathered.clear()
        if gathered:
            yield bytes(gathered)


async def _read_file(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece


def _flush(path: Path) -> None:
    """What is referred to must survive the loss of power: the file, and its name in the folder."""
    for place, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(place, flags | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(folder: Path, before_ms: int) -> int:
    removed = 0
    for path in folder.rglob("*#*"):
        with suppress(FileNotFoundError):
            if _UNFINISHED.search(path.name) and path.stat().st_mtime * 1000 < before_ms:
                path.unlink()
                removed += 1
    return removed
