"""Timeouts of calls that wait for the store, and the errors that a caller gets.

Rule 1: every wait has a timeout. While the store does not answer, new requests are refused.
Rule 2: the error says what is known. `outcome` is `refused` when the engine did not accept the request, and `unknown`
        when it did: the request may still be written, and only its Idempotency-Key makes a retry safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from astraflow.core import errors

_T = TypeVar("_T")

STALL_TIMEOUT_S: Final = 3.0
"""While a commit takes longer than this, new requests are refused."""

STORE_TIMEOUT_S: Final = 5.0
"""How long a caller waits until its request is durable. After this timeout the commit goes on."""

_REPEAT: Final = "the request may still take effect; repeat it with the same Idempotency-Key, and it takes effect once"


class Undecided(errors.Unavailable):
    """The outcome of the request is unknown: it may still take effect."""

    def __init__(self, message: str) -> None:
        detail = {"outcome": "unknown"}
        super().__init__(errors.STORE_UNAVAILABLE, f"{message}: {_REPEAT}", detail=detail)


async def with_store_timeout(read: Awaitable[_T]) -> _T:
    """Read from the store before the engine accepts the request.

    Raises:
        Unavailable: the store did not answer within the timeout.
    """
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            return await read
    except TimeoutError as error:
        raise refusal("the store does not answer; the request was not accepted") from error


async def until_durable(answer: asyncio.Future[_T]) -> _T:
    """Wait until the decision of the engine is durable, and return it.

    Raises:
        Undecided: the store did not answer within the timeout.
    """
    timer = answer.get_loop().call_later(STORE_TIMEOUT_S, _give_up, answer)
    try:
        return await answer
    finally:
        timer.cancel()


def _give_up(answer: asyncio.Future[_T]) -> None:
    if not answer.done():
        message = f"the store has not answered for {STORE_TIMEOUT_S:.0f} s"
        answer.set_exception(Undecided(message))


def refusal(message: str) -> errors.Unavailable:
    """The error for a request that the engine did not accept."""
    return errors.Unavailable(errors.STORE_UNAVAILABLE, message, detail={"outcome": "refused"})
