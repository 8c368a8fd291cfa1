"""Signing keys, and the only form of signed token there is: a compact JWS with HMAC-SHA256.

1. The algorithm is ours and is never read from a token. The header of a token is not even parsed:
   it must be, byte for byte, the header that one of our keys writes. `alg: none`, another
   algorithm or a header with more in it is therefore an unknown key.
2. A token with an unknown key costs the same as one with a wrong signature: it is checked against a
   decoy, so that the time of an answer does not tell which keys exist.
3. Keys rotate without a stop: new tokens are signed with the active key, tokens of every key in the
   ring are accepted. A key leaves the ring when its last token has expired.
4. A weak key is refused when the ring is made: "refusing to start beats a weak configuration"
   (PROTOCOL §9).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIN_SECRET_BYTES: Final = 16
"""A shorter secret can be guessed off line from one token."""

MAX_TOKEN_BYTES: Final = 4_096
"""Our longest token is a fifth of this; a longer one is refused before any work is done on it."""

MAX_SECRETS: Final = 8
"""In use at once. An earlier one is needed for as long as its last token lives, which is a day."""

FIRST_KEY_ID: Final = "k1"
"""The id of every secret before ids were derived from secrets."""

MAX_KID_CHARS: Final = 64
"""The key id travels in every token."""

_DECOY: Final = hashlib.sha256(b"astraflow: no such key").digest()


class KeyRing:
    """The secrets by key id, one of them active."""

    __slots__ = ("_active_head", "_active_secret", "_secret_of_head")

    def __init__(self, keys: Mapping[str, bytes], active: str) -> None:
        """Raises: Refused, when a key is blank or short, or when the active one is not there."""
        for kid, secret in keys.items():
            _refuse_weak(kid, secret)
        if active not in keys:
            raise errors.Refused(
                errors.AUTH_WEAK_CONFIG, f"the active key is not in the ring: {active!r}"
            )
        self._secret_of_head = {_head(kid): secret for kid, secret in keys.items()}
        self._active_head = _head(active)
        self._active_secret = keys[active]

    @classmethod
    def of_secrets(cls, secrets: Sequence[bytes]) -> KeyRing:
        """A ring of several secrets: the first signs, all are accepted, and a secret has the same id everywhere.

        A token with the id `k1` is accepted if the first has signed it: so it was before an upgrade.

        Raises: Refused, when there is none, or one is short.
        """
        if not secrets:
            raise errors.Refused(errors.AUTH_WEAK_CONFIG, "there is no secret")
        keys = {key_id(secret): secret for secret in secrets}
        return cls({FIRST_KEY_ID: secrets[0], **keys}, key_id(secrets[0]))

    def sign(self, claims: bytes) -> str:
        """Return the token that carries these claims, signed with the active key."""
        signed = self._active_head + b"." + _encode(claims)
        return (signed + b"." + _signature(self._active_secret, signed)).decode("ascii")

    def verify(self, token: str) -> bytes | None:
        """Return the claims if one of our keys signed them. Their expiry is not looked at."""
        raw = token.encode("utf-8", "replace")
        if len(raw) > MAX_TOKEN_BYTES:
            return None
        signed, _, signature = raw.rpartition(b".")
        head, _, body = signed.partition(b".")
        secret = self._secret_of_head.get(head)
        wanted = _signature(_DECOY if secret is None else secret, signed)
        # The text is compared, not the bytes it decodes to: base64 has several spellings of the
        # same bytes, and a token shall have one.
        is_ours = hmac.compare_digest(wanted, signature)
        if secret is None or not is_ours:
            return None
        return _decode(body)


def key_id(secret: bytes) -> str:
    """The id of a secret. It is public, and of no use to find the secret."""
    return hmac.digest(secret, b"astraflow key id", "sha256")[:4].hex()


def derived_keys(secrets: Sequence[bytes], purpose: bytes) -> tuple[bytes, ...]:
    """A key of each secret for one purpose: what is signed for one purpose proves nothing for another."""
    return tuple(hmac.digest(secret, purpose, "sha256") for secret in secrets)


def _refuse_weak(kid: str, secret: bytes) -> None:
    if not kid or len(kid) > MAX_KID_CHARS or not kid.isascii() or not kid.isprintable():
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG, f"a key id must be 1 to {MAX_KID_CHARS} printable characters"
        )
    if len(secret.strip()) < MIN_SECRET_BYTES:
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG,
            f"a secret must have at least {MIN_SECRET_BYTES} bytes, key: {kid}",
        )


def _head(kid: str) -> bytes:
    return _encode(msgspec.json.encode({"alg": "HS256", "kid": kid, "typ": "JWT"}))


def _signature(secret: bytes, signed: bytes) -> bytes:
    return _encode(hmac.digest(secret, signed, "sha256"))


def _encode(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _decode(text: bytes) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None
