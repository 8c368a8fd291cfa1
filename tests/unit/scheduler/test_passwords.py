from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from astraflow.core import errors
from astraflow.scheduler.passwords import AT_ONCE, MAX_WAITING, Passwords


def cheap() -> PasswordHasher:
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


async def test_a_password_matches_its_own_hash_alone() -> None:
    passwords = Passwords(cheap())
    kept = await passwords.hash("correct horse")
    assert kept.startswith("$argon2id$")
    assert "correct horse" not in kept
    assert kept != await passwords.hash("correct horse")
    assert await passwords.matches("correct horse", kept)
    assert not await passwords.matches("wrong horse", kept)
    assert not await passwords.matches("correct horse", "no hash")


async def test_nobody_has_a_password_and_the_decoy_is_none() -> None:
    passwords = Passwords(cheap())
    assert not await passwords.matches("nobody", None)


class Counting(PasswordHasher):
    """Waits until it is let go, and knows how many were there at once."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.gate = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = 0

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.gate.wait(30)
        with self.lock:
            self.now -= 1
        return super().hash(password, salt=salt)


async def test_only_so_many_are_hashed_at_once_and_only_so_many_wait() -> None:
    hasher = Counting()
    passwords = Passwords(hasher)
    waiting = [asyncio.create_task(passwords.hash("x")) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(errors.Unavailable):
        await passwords.hash("one too many")
    hasher.gate.set()
    await asyncio.gather(*waiting)
    assert hasher.most == AT_ONCE
    assert await passwords.hash("there is room again")
