"""The cookie of a browser session, and the CSRF token that is bound to it.

The cookie holds an opaque text that scripts cannot read. The CSRF token is computed from that text, so that only who
has the session can know it; a page of another site can send the cookie, but not this token.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

NAME: Final = "astra_session"
CSRF_HEADER: Final = b"x-csrf-token"
_CSRF_OF: Final = b"astraflow csrf"


def session_text(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The text in the cookie; None if there is none, or if there are several: nobody can say which counts."""
    return cookie_text(headers, NAME)


def cookie_text(headers: Iterable[tuple[bytes, bytes]], wanted: str) -> str | None:
    """The text of one cookie, as `session_text`."""
    found = [
        value.strip()
        for name, header in headers
        if name == b"cookie"
        for key, _, value in (one.partition("=") for one in header.decode("latin-1").split(";"))
        if key.strip() == wanted
    ]
    return found[0] if len(found) == 1 and found[0] else None


def set_cookie(
    text: str, max_age_s: int, *, is_secure: bool, name: str = NAME, path: str = "/"
) -> tuple[bytes, bytes]:
    """The header that gives a browser its session; with an age of 0 the one that takes it away."""
    secure = "; Secure" if is_secure else ""
    value = f"{name}={text}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", value.encode("latin-1")


def csrf_of(text: str) -> str:
    """The CSRF token of a session."""
    mac = hmac.digest(text.encode("utf-8", "replace"), _CSRF_OF, "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


def is_same_origin(headers: Iterable[tuple[bytes, bytes]], public_url: str | None) -> bool:
    """Whether a request comes from a page of ours, as far as its headers say. A program sends no `Origin`."""
    given = dict(headers)
    origin = given.get(b"origin")
    if origin is None:
        return given.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none")
    try:
        netloc = urlsplit(origin.decode("latin-1")).netloc.lower()
    except ValueError:
        return False
    ours = {given.get(b"host", b"").decode("latin-1").lower(), urlsplit(public_url or "").netloc}
    return bool(netloc) and netloc in ours
