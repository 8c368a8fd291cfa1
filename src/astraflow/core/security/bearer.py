"""Bearer tokens of people, programs and workers: opaque text, known to us only by its digest.

1. The text is random and is kept by its owner. We keep its SHA-256, which says nothing about it and
   needs no salt, because the text has too many values to be tried.
2. Unknown, expired, revoked, unused for too long, and of a suspended tenant: the same answer at the same cost.
3. "No tokens configured means nobody gets in" (PROTOCOL §6): there is no record that matches
   everything, and a blank token is refused when the record is made.
"""

from __future__ import annotations

import base64
import enum
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


class CredentialKind(enum.StrEnum):
    """What a bearer text is used as. One kind is never taken for another."""

    API = "api"
    """In the header `Authorization`, or in the handshake of a worker."""
    SESSION = "session"
    """In the cookie of a browser."""
    LINK = "link"
    """In a login link, once."""


class TokenRecord(msgspec.Struct, frozen=True):
    """What is known of a bearer token. Times are wall time; `expires_at` None is for ever."""

    digest: bytes
    tenant: str
    subject: str
    role: Role
    expires_at: float | None = None
    is_revoked: bool = False
    token_id: str = ""
    """Empty: it comes from the settings, and is not stored."""
    kind: CredentialKind = CredentialKind.API
    user: str | None = None
    """The user whom it stands for, and whose end is its end, too."""
    family: str = ""
    """The token that it was renewed from, or its own id."""
    created_at: float = 0.0
    used_at: float = 0.0
    idle_s: float | None = None
    """How long it may be unused."""


_NOBODY: Final = TokenRecord(bytes(32), "", "", Role.VIEWER, expires_at=0.0, is_revoked=True)


class ApiTokens:
    """The bearer tokens that are known now, and the tenants whose tokens do not count now."""

    __slots__ = ("_by_digest", "_by_id", "_suspended", "_used")

    def __init__(self, records: Iterable[TokenRecord] = ()) -> None:
        self._by_digest: dict[bytes, TokenRecord] = {}
        self._by_id: dict[str, TokenRecord] = {}
        self._used: dict[str, float] = {}
        self._suspended: set[str] = set()
        for record in records:
            self.put(record)

    def put(self, record: TokenRecord) -> None:
        """Add a token, or replace what is known of it: revoking it is putting it back revoked."""
        self._by_digest[record.digest] = record
        if record.token_id:
            self._by_id[record.token_id] = record

    def remove(self, token_id: str) -> None:
        """A stored token is not good any more, and never will be."""
        record = self._by_id.pop(token_id, None)
        if record is not None:
            del self._by_digest[record.digest]
            self._used.pop(token_id, None)

    def replace_stored(self, records: Iterable[TokenRecord]) -> None:
        """These are all that are stored; those of the settings stay."""
        for token_id in list(self._by_id):
            self.remove(token_id)
        for record in records:
            self.put(record)

    def merge_stored(self, records: Iterable[TokenRecord], later: set[str]) -> None:
        """These are all that were stored at some time; the tokens `later` were put here since then."""
        stored = {record.token_id: record for record in records}
        for token_id in list(self._by_id):
            if token_id not in stored and token_id not in later:
                self.remove(token_id)
        for token_id, record in stored.items():
            if token_id not in self._by_id:
                self.put(record)

    def knows(self, digest: bytes) -> bool:
        return digest in self._by_digest

    def family(self, tenant: str, family: str) -> list[TokenRecord]:
        """The stored token of this id, and those that were renewed from it."""
        stored = self._by_id.values()
        return [one for one in stored if one.tenant == tenant and one.family == family]

    def of_user(self, tenant: str, user: str) -> list[TokenRecord]:
        """What a user can get in with."""
        stored = self._by_id.values()
        return [one for one in stored if one.tenant == tenant and one.user == user]

    def suspend(self, tenant: str) -> None:
        """No token of the tenant is good until `resume`."""
        self._suspended.add(tenant)

    def resume(self, tenant: str) -> None:
        self._suspended.discard(tenant)

    def is_suspended(self, tenant: str) -> bool:
        return tenant in self._suspended

    def verify(
        self, token: str, wall: float, kind: CredentialKind = CredentialKind.API
    ) -> TokenRecord | errors.Code:
        """Return the record of a good token, or the one refusal."""
        digest = hashlib.sha256(token[:MAX_BEARER_CHARS].encode("utf-8", "replace")).digest()
        record = self._by_digest.get(digest, _NOBODY)
        is_known = hmac.compare_digest(record.digest, digest) and record.kind is kind
        if not is_known or len(token) > MAX_BEARER_CHARS or self._is_over(record, wall):
            return errors.AUTH_INVALID_TOKEN
        if record.token_id:
            self._used[record.token_id] = wall
        return record

    def is_good(self, record: TokenRecord, wall: float) -> bool:
        """Whether a token that was good still is."""
        known = self._by_digest.get(record.digest)
        return known is not None and not self._is_over(known, wall)

    def is_good_id(self, token_id: str, wall: float) -> bool:
        """Whether the stored token of this id is good."""
        known = self._by_id.get(token_id)
        return known is not None and not self._is_over(known, wall)

    def _is_over(self, record: TokenRecord, wall: float) -> bool:
        if record.is_revoked or (record.expires_at is not None and wall >= record.expires_at):
            return True
        if record.idle_s is not None:
            used_at = max(record.created_at, record.used_at, self._used.get(record.token_id, 0.0))
            if wall >= used_at + record.idle_s:
                return True
        return record.tenant in self._suspended

    def touch(self, record: TokenRecord, wall: float) -> None:
        """It is in use without being presented again: a stream is open."""
        if record.token_id in self._by_id:
            self._used[record.token_id] = wall

    def take_used(self) -> dict[str, float]:
        """When the stored tokens were used last, of those that were used since this was asked before."""
        used, self._used = self._used, {}
        for token_id, wall in used.items():
            record = self._by_id[token_id]
            self.put(msgspec.structs.replace(record, used_at=wall))
        return used

    def expired(self, wall: float) -> list[TokenRecord]:
        """The stored tokens whose time is over."""
        stored = self._by_id.values()
        return [one for one in stored if one.expires_at is not None and wall >= one.expires_at]


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
