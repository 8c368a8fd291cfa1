"""Secrets: how they print, which files may hold them, and those that are made when none is configured."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from astraflow.config.problems import ConfigError

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""What a file with a secret must not allow to others than its owner."""
_SECRET_BYTES: Final = 32


class Secret:
    """A text that shows itself only when asked for by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def lines(self) -> tuple[str, ...]:
        """The secrets in it, one to a line: that in use, then those that were in use before it."""
        several = (line.removesuffix("\r") for line in self._text.split("\n"))
        return tuple(line for line in several if line.strip())

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and secrets.compare_digest(
            self._text.encode("utf-8", "replace"), other._text.encode("utf-8", "replace")
        )

    def __hash__(self) -> int:
        return hash(self._text)


def keep(path: Path, make: Callable[[int], str]) -> Secret:
    """The secret in this file; `make` gives one of so many bytes if the file is not there.

    Raises:
        ConfigError: others can read the file, or it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # O_EXCL: two processes that start at once must not each believe in their own.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return read_secret(path, str(path))
        with os.fdopen(descriptor, "w") as stream:
            text = make(_SECRET_BYTES)
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        return Secret(text)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be kept: {error.strerror}"]) from error


def read_secret(path: Path, source: str) -> Secret:
    """Raises: ConfigError, when the file is missing, empty, or readable by others than its owner."""
    try:
        mode = path.stat().st_mode
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{source}: cannot be read: {path}"]) from error
    if mode & OTHERS:
        raise ConfigError([f"{source}: others can read it; run: chmod 600 {path}"])
    if not text:
        raise ConfigError([f"{source}: the file is empty: {path}"])
    return Secret(text)
