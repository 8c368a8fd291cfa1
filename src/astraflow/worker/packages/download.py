"""Downloads of archives and files: over HTTP, with a size limit and a digest. A file with a wrong digest is deleted.

No credentials are sent: a URL that needs them contains them. Redirects are not followed, because they could lead the
worker to any address in its network. Downloads are not resumed: packages are small.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.worker.addresses import shown_url

if TYPE_CHECKING:
    import httpx

STALL_TIMEOUT_S: Final = 30.0
"""Without a byte; the whole is bounded by the time for the install."""
CONNECT_TIMEOUT_S: Final = 10.0
CHUNK_BYTES: Final = 256 * 1024
_OK: Final = 200


async def download(
    url: str,
    into: Path,
    *,
    sha256: str,
    max_bytes: int,
    tls: ssl.SSLContext | None,
    progress: Callable[[float | None], None],
) -> None:
    """Write what is at the URL to a new file. `progress` is told the part that is there, None if the whole is unknown.

    Raises:
        Refused: it is too large, or other bytes than were promised.
        Unavailable: it could not be fetched; trying again may help.
        OSError: the file cannot be written.
    """
    from astraflow.lean_httpx import (
        httpx,  # five megabytes that a worker without downloads does not need
    )

    # It would log every URL, with the query that may be what lets one read it.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    timeout = httpx.Timeout(STALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    verify = True if tls is None else tls
    try:
        async with (
            httpx.AsyncClient(follow_redirects=False, timeout=timeout, verify=verify) as client,
            client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
        ):
            if response.status_code != _OK:
                raise _failed(url, f"answered with {response.status_code}")
            found = await _write(response, into, max_bytes, progress)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as problem:
        # A name that is no IDNA name is a UnicodeError, which httpx lets through.
        raise _failed(url, str(problem) or type(problem).__name__) from problem
    if found != sha256:
        raise errors.Refused(
            errors.PKG_INVALID,
            f"Wrong sha256 of {shown_url(url)}: expected {sha256[:80]}, found {found}",
        )


async def _write(
    response: httpx.Response,
    into: Path,
    max_bytes: int,
    progress: Callable[[float | None], None],
) -> str:
    told = response.headers.get("content-length", "")
    expected = int(told) if told.isascii() and told.isdecimal() else None
    digest = hashlib.sha256()
    read_bytes = 0
    with into.open("xb") as file:
        async for piece in response.aiter_raw(CHUNK_BYTES):
            read_bytes += len(piece)
            if read_bytes > max_bytes or (expected or 0) > max_bytes:
                raise errors.Refused(
                    errors.PKG_INVALID,
                    f"Larger than {max_bytes} bytes: {shown_url(str(response.url))}",
                )
            digest.update(piece)
            file.write(piece)
            progress(min(1.0, read_bytes / expected) if expected else None)
    return digest.hexdigest()


def _failed(url: str, why: str) -> errors.Unavailable:
    return errors.Unavailable(
        errors.PKG_INSTALL_FAILED, f"Download of {shown_url(url)} failed: {why[:500]}"
    )
