"""Bearer tokens of people, programs and workers: opaque text, known to us only by its digest.

1. The text is random and is kept by its owner. We keep its SHA-256, which says nothing about it and
   needs no salt, because the text has too many values to be tried.
2. Unknown, expired and revoked give the same answer at the same cost.
3. "No tokens configured means nobody gets in" (PROTOCOL §6): there is no record that matches
   everything, and a blank token is refused when the record is made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.security.policy import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_RANDOM_BYTES: Final = 16
MAX_BEARER_CHARS: Final = 1_024


class TokenRecord(msgspec.Struct, frozen=True):
    """What is stored of a bearer token. `expires_at` is wall time; None is for ever."""

    digest: bytes
    tenant: str
    subject: str
    role: Role
    expires_at: float | None = None
    is_revoked: bool = False


_NOBODY: Final = TokenRecord(bytes(32), "", "", Role.VIEWER, expires_at=0.0, is_revoked=True)


class ApiTokens:
    """The bearer tokens that are known now."""

    __slots__ = ("_by_digest",)

    def __init__(self, records: Iterable[TokenRecord] = ()) -> None:
        self._by_digest = {record.digest: record for record in records}

    def put(self, record: TokenRecord) -> None:
        """Add a token, or replace what is known of it: revoking it is putting it back revoked."""
        self._by_digest[record.digest] = record

    def verify(self, token: str, wall: float) -> TokenRecord | errors.Code:
        """Return the record of a good token, or the one refusal."""
        digest = hashlib.sha256(token[:MAX_BEARER_CHARS].encode("utf-8", "replace")).digest()
        record = self._by_digest.get(digest, _NOBODY)
        is_known = hmac.compare_digest(record.digest, digest)
        is_over = record.expires_at is not None and wall >= record.expires_at
        if not is_known or is_over or record.is_revoked or len(token) > MAX_BEARER_CHARS:
            return errors.AUTH_INVALID_TOKEN
        return record


def token_text(random_bytes: bytes) -> str:
    """Return the text of a new token. The caller draws the bytes from the system's source.

    Raises: Refused, when there are too few of them.
    """
    if len(random_bytes) < MIN_RANDOM_BYTES:
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG, f"a token needs at least {MIN_RANDOM_BYTES} random bytes"
        )
    return "astra_" + base64.urlsafe_b64encode(random_bytes).rstrip(b"=").decode("ascii")


def digest_of(token: str) -> bytes:
    """Return what is stored of a token.

    Raises: Refused, when it is blank or too long to be one.
    """
    if not token.strip() or len(token) > MAX_BEARER_CHARS:
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG, f"a token must have 1 to {MAX_BEARER_CHARS} characters"
        )
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
