"""The web app as it is served: the built files by their paths, and the page of the app for the app's own paths.

1. All files are read when the scheduler starts. A path is looked up among them and never leads to the disk, so that
   nothing else can be read, however the path is spelled.
2. The name of an asset has the hash of its content: a browser keeps it for a year. The page is asked for each time.
3. Only the paths of the app get the page. A missing asset is a 404, and so is whatever is below `/api`.
4. Each response of the page has a nonce of its own: Mantine makes style elements, and no other inline style is
   allowed. So the page has no ETag: with a 304 a browser would keep the old nonce under the new policy.
5. An asset is compressed once, when somebody first asks for it, in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from astraflow.api.asgi import Scope
from astraflow.api.compression import wants_gzip
from astraflow.api.responses import Headers, Response

SECTIONS: Final = ("workflows", "runs", "approvals", "triggers", "workers", "packages", "settings")
"""The first segments of the app's own paths, as the router of the app (`web/src/app/router.tsx`) has them."""

PAGE: Final = "index.html"
NONCE_MARK: Final = b"__CSP_NONCE__"
"""What the build has in the places of the nonce."""
NONCE_BYTES: Final = 16

FOREVER: Final = b"public, max-age=31536000, immutable"
ASK_FIRST: Final = b"no-cache"
MIN_GZIP_BYTES: Final = 1_024
"""A smaller file fits one packet anyway."""

_OWN: Final = re.compile(rf"/(?:{'|'.join(SECTIONS)})(?:/(?!\.\.?(?:/|$))[^/]+){{0,6}}/?")
_HTML: Final = b"text/html; charset=utf-8"
_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".html": _HTML,
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".wasm": b"application/wasm",
    ".woff2": b"font/woff2",
}
_COMPRESSED_ALREADY: Final = frozenset({".png", ".woff2"})
_ASSET_POLICY: Final = b"default-src 'none'; script-src 'self'; connect-src 'self'"
"""A worker has the policy of its own script; for all else nothing is needed."""
_GZIP: Final = 31
"""zlib's `wbits` for a gzip stream; its header has no time, so that the bytes are the same each time."""


def page_policy(nonce: str) -> bytes:
    """What the page may load: what is ours, and style elements with the nonce."""
    return (
        "default-src 'none'; script-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; "
        "connect-src 'self'; font-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "worker-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ).encode()


@dataclass(frozen=True, slots=True)
class WebFile:
    """One built file."""

    body: bytes
    media_type: bytes
    digest: str
    is_compressible: bool


class WebApp:
    """Finds what a path of the app gets."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            f"/{path.relative_to(folder).as_posix()}": _read(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        page = self._files.pop(f"/{PAGE}", None)
        self._page = None if page is None else page.body
        self._gzipped: dict[str, bytes] = {}

    def has(self, path: str) -> bool:
        """Whether the path is one of the app."""
        return path in self._files or (self._page is not None and _is_own(path))

    async def respond(self, scope: Scope) -> Response:
        """The file or the page at a path that the app has."""
        path: str = scope["path"]
        found = self._files.get(path)
        return self._page_response() if found is None else await self._asset(scope, path, found)

    def _page_response(self) -> Response:
        assert self._page is not None
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        headers = [
            (b"content-security-policy", page_policy(nonce)),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]
        body = self._page.replace(NONCE_MARK, nonce.encode())
        return Response(body, 200, _HTML, headers, ASK_FIRST)

    async def _asset(self, scope: Scope, path: str, file: WebFile) -> Response:
        is_gzip = file.is_compressible and wants_gzip(scope["headers"])
        etag = f'"{file.digest}{"-gzip" if is_gzip else ""}"'.encode()
        headers = [(b"etag", etag), (b"content-security-policy", _ASSET_POLICY)]
        if file.is_compressible:
            headers.append((b"vary", b"accept-encoding"))
        if _is_known(scope["headers"], etag):
            return Response(b"", 304, file.media_type, headers, FOREVER)
        body = file.body
        if is_gzip:
            headers.append((b"content-encoding", b"gzip"))
            body = await self._compressed(path, file)
        return Response(body, 200, file.media_type, headers, FOREVER)

    async def _compressed(self, path: str, file: WebFile) -> bytes:
        known = self._gzipped.get(path)
        if known is None:
            known = await asyncio.to_thread(_compress, file.body)
            self._gzipped[path] = known
        return known


def _is_own(path: str) -> bool:
    return path == "/" or _OWN.fullmatch(path) is not None


def _read(path: Path) -> WebFile:
    body = path.read_bytes()
    return WebFile(
        body,
        _TYPES.get(path.suffix, b"application/octet-stream"),
        hashlib.sha256(body).hexdigest()[:32],
        len(body) >= MIN_GZIP_BYTES and path.suffix not in _COMPRESSED_ALREADY,
    )


def _compress(body: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    return stream.compress(body) + stream.flush()


def _is_known(headers: Headers, etag: bytes) -> bool:
    """Whether the client has this very content (RFC 9110 §13.1.2)."""
    given = b",".join(value for name, value in headers if name == b"if-none-match")
    tags = {tag.strip().removeprefix(b"W/") for tag in given.split(b",")}
    return etag in tags or b"*" in tags
