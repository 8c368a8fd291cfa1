"""Passwords: hashed with Argon2 in threads, only so many at once.

A hash takes a tenth of a second and 64 MiB on purpose. Two at once are the most that this process spends on it; when
too many wait, the next is refused, so that a flood of logins costs neither memory nor the time of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from astraflow.core import errors

AT_ONCE: Final = 2
MAX_WAITING: Final = 32
NO_PASSWORD: Final = "!"  # noqa: S105 - no hash looks like this
"""In the place of the hash of a user who logs in elsewhere: no password is right."""


class Passwords:
    """Hashes and checks passwords. Use from one loop."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        """Raises: Unavailable, when too many wait."""
        async with self._turn():
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Whether it is the password. Without a hash it is checked against a decoy, at the same cost.

        Raises: Unavailable, when too many wait.
        """
        if password_hash == NO_PASSWORD:
            password_hash = None
        async with self._turn():
            if self._decoy is None:
                self._decoy = await asyncio.to_thread(self._hasher.hash, "nobody")
            expected = self._decoy if password_hash is None else password_hash
            is_right = await asyncio.to_thread(self._verify, expected, password)
        return is_right and password_hash is not None

    def is_outdated(self, password_hash: str) -> bool:
        """Whether it was made with other parameters than hashes are made with now."""
        return self._hasher.check_needs_rehash(password_hash)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= MAX_WAITING:
            raise errors.Unavailable(errors.OVERLOADED, "too many passwords are being checked")
        self._waiting += 1
        try:
            async with self._turns:
                yield
        finally:
            self._waiting -= 1

    def _verify(self, expected: str, password: str) -> bool:
        try:
            return self._hasher.verify(expected, password)
        except (VerifyMismatchError, VerificationError, InvalidHashError):
            return False
