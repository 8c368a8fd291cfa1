"""Signatures of webhook requests: HMAC-SHA256 of the body with a secret that both sides know."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

GITHUB_HEADER: Final = "x-hub-signature-256"
PLAIN_HEADER: Final = "x-signature"
_PREFIX: Final = "sha256="


def is_signed(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether one of the two headers has the signature of the body. The comparison takes the same time for each."""
    given = headers.get(GITHUB_HEADER) or headers.get(PLAIN_HEADER) or ""
    expected = hmac.new(secret.encode(), body, sha256).hexdigest()
    told = given.removeprefix(_PREFIX).lower()
    return hmac.compare_digest(told.encode(), expected.encode())
