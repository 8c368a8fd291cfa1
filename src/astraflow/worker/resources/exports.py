"""Files to the data plane: the bytes of a resource go by HTTP PUT, in pieces, never over the worker's socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx

from astraflow import errors

__all__ = ["origin_of", "put_file", "upload_address"]

PIECE_BYTES: Final = 1024 * 1024
"""Read and sent at once; an upload holds one or two of them, however large the file is."""
TRIES: Final = 3
RETRY_S: Final = 1.0
"""Before the second try; doubling."""
TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
"""For each piece, not for the whole: a large file over a slow line is no error."""
DEFAULT_MIME: Final = "application/octet-stream"


def origin_of(ws_url: str) -> str:
    """The scheduler's HTTP address, from the one of its socket."""
    parts = urlsplit(ws_url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.netloc}/"


def upload_address(origin: str, upload_url: str) -> str:
    """Where to put a file.

    Raises:
        Refused: it is no address of HTTP.
    """
    try:
        address = urljoin(origin, upload_url)
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx.URL(address)
    except (ValueError, httpx.InvalidURL):  # a port or a host that is none
        is_usable = False
    if not is_usable:
        raise errors.Refused(
            errors.RESOURCE_INVALID, "files are put to addresses of http or https, this is none"
        )
    return address


async def put_file(
    client: httpx.AsyncClient, path: Path, size_bytes: int, address: str, mime: str | None
) -> None:
    """Upload a file, trying again when the other side is not there.

    Raises:
        Unavailable: it did not take it.
    """
    headers = {"content-type": mime or DEFAULT_MIME, "content-length": str(size_bytes)}
    why = ""
    for tried in range(TRIES):
        if tried:
            await asyncio.sleep(RETRY_S * 2.0 ** (tried - 1))
        try:
            answer = await client.put(
                address, content=_pieces(path), headers=headers, timeout=TIMEOUT
            )
        except (httpx.HTTPError, OSError, ValueError) as problem:
            why = f"{type(problem).__name__}: {problem}"
            continue
        if answer.is_success:
            return
        why = f"HTTP {answer.status_code}"
        if answer.is_client_error:
            break  # the same request would get the same answer
    raise errors.Unavailable(errors.RESOURCE_BUSY, f"the file could not be uploaded: {why}")


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    # The file is opened, read and closed in threads: a slow disk must not stop the worker's loop.
    content = await asyncio.to_thread(path.open, "rb", buffering=0)
    try:
        while piece := await asyncio.to_thread(content.read, PIECE_BYTES):
            yield piece
    finally:
        content.close()
