"""How long a caller waits for the store, and what it is told when that was too long.

Rule 1: nobody waits for ever. While the store does not answer, what is new is refused.
Rule 2: a refusal says what is known. `outcome` is `refused` when nothing was taken in, and `unknown` when the engine
        had taken it in: it may still be written, and only its Idempotency-Key makes a repetition safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from astraflow.core import errors

__all__ = ["ANSWER_S", "STALL_S", "Undecided", "decided", "refusal", "within"]

_T = TypeVar("_T")

STALL_S: Final = 3.0
"""A commit that takes longer is not waited for by what is new."""

ANSWER_S: Final = 5.0
"""How long a caller waits until what it asked for is durable. The commit goes on."""

_REPEAT: Final = "the request may still take effect; repeat it with the same Idempotency-Key, and it takes effect once"


class Undecided(errors.Unavailable):
    """Nobody knows whether what was asked for takes effect."""

    def __init__(self, message: str) -> None:
        detail = {"outcome": "unknown"}
        super().__init__(errors.STORE_UNAVAILABLE, f"{message}: {_REPEAT}", detail=detail)


async def within(read: Awaitable[_T]) -> _T:
    """A read before anything is taken in.

    Raises:
        Unavailable: the store has not answered for too long.
    """
    try:
        async with asyncio.timeout(ANSWER_S):
            return await read
    except TimeoutError as error:
        raise refusal("the store does not answer; nothing was taken in") from error


async def decided(answer: asyncio.Future[_T]) -> _T:
    """What the engine has decided, when it is durable.

    Raises:
        Undecided: the store has not answered for too long.
    """
    try:
        async with asyncio.timeout(ANSWER_S):
            return await answer
    except TimeoutError as error:
        raise Undecided(f"the store has not answered for {ANSWER_S:.0f} s") from error


def refusal(message: str) -> errors.Unavailable:
    """Nothing was taken in."""
    return errors.Unavailable(errors.STORE_UNAVAILABLE, message, detail={"outcome": "refused"})
