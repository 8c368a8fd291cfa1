"""The id of a request: in its response, in every log line that is written while it is handled, and in the audit.

A client may choose it (`X-Request-Id`), so that its own log and ours can be joined; what is not a plain, short word is
replaced. The id travels in a context variable: the parts that a request passes through do not hand it on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from itertools import count
from typing import Final

HEADER: Final = b"x-request-id"
MAX_CHARS: Final = 128
_SAFE: Final = re.compile(rb"[A-Za-z0-9._:=+/@-]{1,%d}" % MAX_CHARS)
"""What needs no quoting in a header, a log line or a URN."""

_current: Final[ContextVar[str]] = ContextVar("request_id", default="")
_process: Final = secrets.token_hex(8)
_numbers: Final = count(1)


def new_request_id() -> str:
    """Unique: a random word for the process, and a number. Drawing random bytes for each would cost ten times more."""
    return f"{_process}-{next(_numbers):x}"


def begin_request(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id of a request whose handling begins here, from now on the current one of this context."""
    chosen = request_id_of(headers)
    _current.set(chosen)
    return chosen


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id that the client chose, or a new one."""
    given: bytes | None = None
    for name, value in headers:
        if name == HEADER:
            # A header that is there twice names nothing.
            given = value if given is None else b""
    if given is None or not _SAFE.fullmatch(given):
        return new_request_id()
    return given.decode("ascii")


def current_request_id() -> str:
    """The id of the request that is handled in this context; empty outside of one."""
    return _current.get()
