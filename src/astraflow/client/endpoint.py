"""Where the scheduler is, and the token for it.

1. `ASTRA_SERVER` and `ASTRA_TOKEN`.
2. The file that `astra up` keeps in its data folder while it runs: `var/endpoint.json`, or in the folder that
   `ASTRA_SCHEDULER_DATA_DIR` names.
3. What `astra login` keeps: the token of the server that is named, else the server that was logged in to last.
4. `http://127.0.0.1:8080`.

A token from a file goes to its own server only: whoever names another server must name its token, or log in to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from astraflow.client.credentials import KeptLogins
from astraflow.core import errors

DEFAULT_URL: Final = "http://127.0.0.1:8080"
ENDPOINT_FILE: Final = "endpoint.json"
_DEFAULT_DATA_DIR: Final = "var"
"""As `config.DEFAULT_DATA_DIR`, which takes a third of a second to import."""

_EXAMPLE: Final = "set ASTRA_SERVER, for example to http://127.0.0.1:8080"


class Endpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scheduler, the token for it, and who said so."""

    url: str
    token: str = ""
    pid: int = 0
    source: str = "default"

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r}, token={'***' if self.token else ''!r})"


def place_of(data_dir: str | Path) -> Path:
    return Path(data_dir) / ENDPOINT_FILE


def find_endpoint(
    url: str | None = None, token: str | None = None, environ: Mapping[str, str] | None = None
) -> Endpoint:
    """What is given wins, then the environment, then the file.

    Raises:
        Refused: the address is none, or the token cannot be one.
    """
    found = _find(url, token, os.environ if environ is None else environ)
    return msgspec.structs.replace(found, url=_checked(found.url), token=_sendable(found.token))


def _find(url: str | None, token: str | None, environ: Mapping[str, str]) -> Endpoint:
    source = "argument" if url else "ASTRA_SERVER"
    url = url or environ.get("ASTRA_SERVER")
    token = token or environ.get("ASTRA_TOKEN")
    if url and token:
        return Endpoint(url, token, source=source)
    place = place_of(environ.get("ASTRA_SCHEDULER_DATA_DIR") or _DEFAULT_DATA_DIR)
    kept = read_endpoint(place)
    logins = KeptLogins(environ)
    if url:
        if kept is not None and kept.url == url.rstrip("/"):
            return Endpoint(url, kept.token, source=source)
        return Endpoint(url, _token_of(logins, url), source=source)
    if kept is not None:
        return Endpoint(kept.url, token or kept.token, kept.pid, str(place))
    if token:
        return Endpoint(DEFAULT_URL, token)
    current = logins.current()
    if current:
        return Endpoint(current, _token_of(logins, current), source=str(logins.place))
    return Endpoint(DEFAULT_URL)


def _token_of(logins: KeptLogins, url: str) -> str:
    known = logins.find(url)
    return "" if known is None else known.token


def read_endpoint(place: Path) -> Endpoint | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=Endpoint)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # a hint that cannot be read is no hint


def keep_endpoint(place: Path, endpoint: Endpoint) -> None:
    """Write it for its owner only; whole or not at all."""
    fresh = place.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(msgspec.json.encode(endpoint) + b"\n")
    fresh.replace(place)


def _checked(url: str) -> str:
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise _bad(f"the server's address must begin with http:// or https://: {url}")
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good or not url.isascii() or not url.isprintable() or " " in url:
        raise _bad(f"not the address of a server: {url!r}")
    return url


def _bad(message: str) -> errors.Refused:
    return errors.Refused(errors.CONFIG_INVALID, message, detail={"hint": _EXAMPLE})


def _sendable(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise errors.Refused(
            errors.AUTH_INVALID_TOKEN, "the token holds characters that no token has"
        )
    return token
