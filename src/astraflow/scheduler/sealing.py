"""Sealing: how the shared secrets of HTTP pools are kept in the store.

AES-256-GCM under a key that is derived from the secret of the site. What was sealed with an earlier secret is opened
while that one is still configured, and sealed anew when its pool changes. What is sealed is bound to its
tenant and its name, so that a row cannot be given the secret of another.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from astraflow.core import errors

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32


class Sealer:
    """Encrypts and decrypts."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._keys = [_key_of(secret) for secret in secrets]

    def seal(self, text: str, *names: str) -> bytes:
        """Encrypt a text for what has these names; empty stays empty."""
        if not text:
            return b""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._keys[0].encrypt(nonce, text.encode(), _bound(names))

    def open(self, sealed: bytes, *names: str) -> str:
        """Raises: Refused, when it was sealed with another key, or for something else."""
        if not sealed:
            return ""
        text = self._try(sealed, names)
        if text is None:
            message = "the stored secret cannot be read with the secret of this site: set it again"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/secret")
        return text

    def reseal(self, sealed: bytes, *names: str) -> bytes:
        """The same under the newest key; what cannot be opened stays as it is."""
        text = self._try(sealed, names)
        return sealed if text is None else self.seal(text, *names)

    def _try(self, sealed: bytes, names: tuple[str, ...]) -> str | None:
        for key in self._keys:
            with contextlib.suppress(InvalidTag):
                raw = key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(names))
                return raw.decode()
        return None


def _key_of(secret: bytes) -> AESGCM:
    derive = HKDF(SHA256(), KEY_BYTES, None, b"astraflow: secrets of HTTP pools")
    return AESGCM(derive.derive(secret))


def _bound(names: tuple[str, ...]) -> bytes:
    return "\0".join(names).encode()
