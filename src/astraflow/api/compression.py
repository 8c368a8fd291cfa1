"""Compression of large responses with gzip, if the client accepts it.

Compressing takes longer than sending on a fast network, so only what is large is compressed, piece by piece and in a
thread: the loop is never busy with it, and a response of many megabytes needs no second copy in memory.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Iterable
from typing import Final

from astraflow.api.asgi import Scope

MIN_BYTES: Final = 32 * 1024
"""Below that a response is one or two round trips anyway, and is often asked for."""

LEVEL: Final = 3
"""Of zlib: half the time of the default, for a tenth more bytes."""

_GZIP: Final = 31
"""zlib's `wbits` for a gzip stream."""

_WEIGHT: Final = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.IGNORECASE)


def accepts_gzip(scope: Scope) -> bool:
    """Whether a client wants gzip (RFC 9110 §12.5.3): it names it, or everything, and does not prefer none."""
    if scope["method"] == "HEAD" or scope["http_version"] == "1.0":
        return False  # the length is not known before: HTTP/1.0 has no chunks, and a HEAD is to tell it
    return wants_gzip(scope["headers"])


def wants_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """The same for a body that is compressed already, whose length is known."""
    given = b",".join(value for name, value in headers if name == b"accept-encoding")
    weights: dict[str, float] = {}
    for item in given.decode("latin-1").lower().split(","):
        coding, _, rest = item.partition(";")
        weights[coding.strip()] = _weight(rest.strip())
    gzip = max(weights.get("gzip", -1.0), weights.get("x-gzip", -1.0))
    if gzip < 0:
        gzip = weights.get("*", 0.0)
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _weight(parameter: str) -> float:
    if not parameter:
        return 1.0
    found = _WEIGHT.fullmatch(parameter.replace(" ", ""))
    return 0.0 if found is None else float(found[1])


async def compressed(body: bytes, piece_bytes: int) -> AsyncIterator[bytes]:
    """The pieces of a gzip stream; none is empty."""
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP)
    for start in range(0, len(body), piece_bytes):
        piece = await asyncio.to_thread(stream.compress, body[start : start + piece_bytes])
        if piece:
            yield piece
    yield await asyncio.to_thread(stream.flush)
