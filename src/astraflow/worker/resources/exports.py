"""Uploads and downloads of files: the bytes of resources travel by HTTP in chunks, never over the worker's session."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from astraflow.core import errors

if TYPE_CHECKING:
    import httpx

PIECE_BYTES: Final = 1024 * 1024
"""Read and sent at once; an upload holds one or two of them, however large the file is."""
TRIES: Final = 3
RETRY_S: Final = 1.0
"""Before the second try; doubling."""
PIECE_S: Final = 60.0
"""For each piece, not for the whole: a large file over a slow line is no error."""
CONNECT_S: Final = 10.0
DEFAULT_MIME: Final = "application/octet-stream"
_OK: Final = 200


async def put_file(
    path: Path,
    size_bytes: int,
    address: str,
    mime: str | None,
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Upload a file, trying again when the other side is not there. `transport`: what is used in place of connections.

    Raises:
        Unavailable: it did not take it.
    """
    headers = {"content-type": mime or DEFAULT_MIME, "content-length": str(size_bytes)}
    async with _client(tls, transport) as client:
        why = await _put(client, path, address, headers)
    if why is not None:
        raise errors.Unavailable(errors.RESOURCE_BUSY, f"Upload failed: {why}")


async def _put(
    client: httpx.AsyncClient, path: Path, address: str, headers: dict[str, str]
) -> str | None:
    """Why it was not taken, if it was not."""
    from astraflow.lean_httpx import httpx

    why = ""
    for tried in range(TRIES):
        if tried:
            await asyncio.sleep(RETRY_S * 2.0 ** (tried - 1))
        try:
            answer = await client.put(address, content=_pieces(path), headers=headers)
        except (httpx.HTTPError, OSError, ValueError) as problem:
            why = f"{type(problem).__name__}: {problem}"
            continue
        if answer.is_success:
            return None
        why = f"HTTP {answer.status_code}"
        if answer.is_client_error:
            break  # the same request would get the same answer
    return why


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    # The file is opened, read and closed in threads: a slow disk must not stop the worker's loop.
    content = await asyncio.to_thread(path.open, "rb", buffering=0)
    try:
        while piece := await asyncio.to_thread(content.read, PIECE_BYTES):
            yield piece
    finally:
        content.close()


async def get_file(
    address: str,
    path: Path,
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Download a file, in pieces, whatever its size.

    Raises:
        Unavailable: it is not to be had.
    """
    from astraflow.lean_httpx import httpx

    try:
        async with (
            _client(tls, transport) as client,
            client.stream("GET", address) as answer,
        ):
            if answer.status_code != _OK:
                raise _no_copy(f"HTTP status {answer.status_code}")
            content = await asyncio.to_thread(path.open, "wb")
            try:
                async for piece in answer.aiter_bytes(PIECE_BYTES):
                    await asyncio.to_thread(content.write, piece)
            finally:
                await asyncio.to_thread(content.close)
    except httpx.HTTPError as problem:
        raise _no_copy(f"{type(problem).__name__}: {problem}") from problem


def _client(
    tls: ssl.SSLContext | None, transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    from astraflow.lean_httpx import (
        httpx,  # five megabytes that a worker without such files does not need
    )

    timeout = httpx.Timeout(PIECE_S, connect=CONNECT_S)
    verify = True if tls is None else tls
    return httpx.AsyncClient(
        follow_redirects=False, verify=verify, timeout=timeout, transport=transport
    )


def _no_copy(why: str) -> errors.Unavailable:
    return errors.Unavailable(errors.RESOURCE_BUSY, f"Download of the copy failed: {why}")
