"""The tokens that `astra login` keeps for this user of this machine, by server.

The file is in the configuration folder (`$XDG_CONFIG_HOME/astraflow`, else `~/.config/astraflow`), readable by its
owner alone; one that others can read is refused. A token goes to the server that it was made by and to no other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core import errors

CREDENTIALS_FILE: Final = "credentials.json"
_OTHERS: Final = 0o077


class KeptLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token, and when it expires."""

    token: str
    expires_at: str | None = None
    subject: str = ""


class _File(msgspec.Struct, omit_defaults=True):
    servers: dict[str, KeptLogin] = {}
    current: str = ""
    """The server that was logged in to last."""


class KeptLogins:
    """The file, as it is now."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")) / ".config")
        self.place = Path(home).expanduser() / "astraflow" / CREDENTIALS_FILE

    def find(self, url: str) -> KeptLogin | None:
        """Raises: Refused: others can read the file."""
        return self._read().servers.get(url.rstrip("/"))

    def current(self) -> str:
        """The server that was logged in to last; empty if there is none."""
        kept = self._read()
        return kept.current if kept.current in kept.servers else ""

    def put(self, url: str, login: KeptLogin) -> None:
        """Raises: Refused, OSError."""
        kept = self._read()
        kept.servers[url.rstrip("/")] = login
        kept.current = url.rstrip("/")
        self._write(kept)

    def remove(self, url: str) -> None:
        """Raises: Refused, OSError."""
        kept = self._read()
        if kept.servers.pop(url.rstrip("/"), None) is not None:
            kept.current = next(iter(kept.servers), "") if kept.current == url else kept.current
            self._write(kept)

    def _read(self) -> _File:
        try:
            with self.place.open("rb") as stream:
                mode = os.fstat(stream.fileno()).st_mode
                if mode & _OTHERS:
                    raise errors.Refused(
                        errors.CONFIG_INVALID,
                        f"others can read the tokens in {self.place}",
                        detail={"hint": f"chmod 600 {self.place}"},
                    )
                return msgspec.json.decode(stream.read(), type=_File)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return _File()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"cannot read the tokens in {self.place}: {error}",
                detail={"hint": "remove the file and log in again"},
            ) from error

    def _write(self, kept: _File) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.place.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(kept) + b"\n")
        fresh.replace(self.place)
