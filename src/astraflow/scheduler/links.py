"""Links: what a holder may do without a credential of its own, signed by us, for a while.

A link names one action on one thing of one tenant. Every reason not to accept one gives the same answer.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final, TypeVar

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors

__all__ = ["ArchiveLink", "DownloadLink", "Link", "Links", "UploadLink"]

MAX_CHARS: Final = 4_096
_MAC_BYTES: Final = 32


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every link says. `exp` is in milliseconds of the wall clock."""

    tenant: str
    exp: int


class ArchiveLink(Link, frozen=True, tag="archive"):
    """Read the archive of a package."""

    name: str
    version: str


class DownloadLink(Link, frozen=True, tag="artifact"):
    """Read the copy of a resource."""

    resource_id: str
    worker_id: str


class UploadLink(Link, frozen=True, tag="upload"):
    """Write the copy of a resource."""

    resource_id: str
    worker_id: str
    max_bytes: int


_Kind = TypeVar("_Kind", bound=Link)


class Links:
    """Makes and reads them with a key that is derived from the scheduler's secret."""

    __slots__ = ("_clock", "_key")

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._key = hmac.digest(secret, b"astraflow links", "sha256")
        self._clock = clock

    def expiry(self, ttl_s: float) -> int:
        return self._clock.wall_ms() + int(ttl_s * 1000)

    def make(self, link: Link) -> str:
        body = msgspec.json.encode(link)
        mac = hmac.digest(self._key, body, "sha256")
        return base64.urlsafe_b64encode(mac + body).rstrip(b"=").decode()

    def read(self, text: str, kind: type[_Kind]) -> _Kind:
        """Raises: Refused, when it is not ours, of another kind, or has expired."""
        try:
            if len(text) > MAX_CHARS:
                raise ValueError("too long")
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
            if not hmac.compare_digest(mac, hmac.digest(self._key, body, "sha256")):
                raise ValueError("not ours")
            link = msgspec.json.decode(body, type=kind)
            if link.exp < self._clock.wall_ms():
                raise ValueError("expired")
        except (ValueError, binascii.Error) as error:
            raise errors.Refused(
                errors.AUTH_INVALID_TOKEN, "the link is not valid, or not any more"
            ) from error
        return link
