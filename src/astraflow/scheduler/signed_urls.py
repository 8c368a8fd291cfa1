"""Signed URLs: each one lets its holder do one thing, without another credential, until it expires.

The token in the URL is a grant: one action on one thing of one tenant, with an HMAC. Every token that is not accepted
gets the same error, so that a caller learns nothing from it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.security.keys import derived_keys

MAX_CHARS: Final = 4_096
_MAC_BYTES: Final = 32


class UrlGrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of every grant. `exp` is its expiry in milliseconds of the wall clock."""

    tenant: str
    exp: int


class ArchiveGrant(UrlGrant, frozen=True, tag="archive"):
    """Read the archive of a package."""

    name: str
    version: str


class DownloadGrant(UrlGrant, frozen=True, tag="artifact"):
    """Read the copy of a resource."""

    resource_id: str
    worker_id: str


class UploadGrant(UrlGrant, frozen=True, tag="upload"):
    """Write the copy of a resource."""

    resource_id: str
    worker_id: str
    max_bytes: int


_Kind = TypeVar("_Kind", bound=UrlGrant)


class UrlSigner:
    """Signs grants with a key that is derived from the scheduler's secret, and verifies those of earlier secrets, too.

    `origin` is where workers and browsers reach this scheduler, as `https://host:port`. Without one its URLs are
    relative.
    """

    def __init__(self, secrets: Sequence[bytes], clock: Clock, origin: str = "") -> None:
        self.origin = origin.rstrip("/")
        self._keys = derived_keys(secrets, b"astraflow links")
        self._clock = clock

    def expiry(self, ttl_s: float) -> int:
        return self._clock.wall_ms() + int(ttl_s * 1000)

    def make(self, grant: UrlGrant) -> str:
        body = msgspec.json.encode(grant)
        mac = hmac.digest(self._keys[0], body, "sha256")
        return base64.urlsafe_b64encode(mac + body).rstrip(b"=").decode()

    def read(self, text: str, kind: type[_Kind]) -> _Kind:
        """Raises: Refused, when the signature is wrong, the grant is of another kind, or it has expired."""
        try:
            if len(text) > MAX_CHARS:
                raise ValueError("too long")
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
            wanted = [hmac.digest(key, body, "sha256") for key in self._keys]
            if not any(hmac.compare_digest(mac, one) for one in wanted):
                raise ValueError("not ours")
            grant = msgspec.json.decode(body, type=kind)
            if grant.exp < self._clock.wall_ms():
                raise ValueError("expired")
        except (ValueError, binascii.Error) as error:
            raise errors.Refused(
                errors.AUTH_INVALID_TOKEN, "the signed URL is not valid, or has expired"
            ) from error
        return grant
