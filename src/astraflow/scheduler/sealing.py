"""Sealing: how the shared secrets of HTTP pools are kept in the store.

AES-256-GCM under a key that is derived from the secret of the site. What is sealed is bound to its tenant and its name,
so that a row cannot be given the secret of another.
"""

from __future__ import annotations

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from astraflow.config import Secret
from astraflow.core import errors

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32


class Sealer:
    """Encrypts and decrypts."""

    def __init__(self, secret: Secret) -> None:
        derive = HKDF(SHA256(), KEY_BYTES, None, b"astraflow: secrets of HTTP pools")
        self._key = AESGCM(derive.derive(secret.reveal().encode()))

    def seal(self, text: str, *names: str) -> bytes:
        """Encrypt a text for what has these names; empty stays empty."""
        if not text:
            return b""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._key.encrypt(nonce, text.encode(), _bound(names))

    def open(self, sealed: bytes, *names: str) -> str:
        """Raises: Refused, when it was sealed with another key, or for something else."""
        if not sealed:
            return ""
        try:
            raw = self._key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(names))
        except InvalidTag as error:
            message = "the stored secret cannot be read with the secret of this site: set it again"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/secret") from error
        return raw.decode()


def _bound(names: tuple[str, ...]) -> bytes:
    return "\0".join(names).encode()
