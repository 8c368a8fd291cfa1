"""What a request says of itself, before anybody has checked whether it may: good for finding out where it belongs."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from astraflow.api.asgi import Scope

_MAC_BYTES: Final = 32


def query_value(scope: Scope, name: str) -> str | None:
    """The first value of a query parameter."""
    text = scope["query_string"].decode("latin-1")
    if f"{name}=" not in text:
        return None
    try:
        found = parse_qs(text, max_num_fields=100).get(name)
    except ValueError:
        return None
    return found[0] if found else None


def grant_body(token: str) -> bytes:
    """The grant in a signed URL; empty if it is none. Its signature is checked where it is answered."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return b""
    return raw[_MAC_BYTES:]
