"""What the errors of a PostgreSQL connection mean to the writer."""

from __future__ import annotations

import asyncpg
import pytest

from astraflow.core import errors
from astraflow.store.postgres_connection import read_errors, write_errors


class Wire:
    """A connection, as far as `write_errors` is concerned with it."""

    def __init__(self) -> None:
        self.is_terminated = False

    def terminate(self) -> None:
        self.is_terminated = True


LOST = [
    asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    ConnectionResetError("reset by peer"),
    TimeoutError(),
]


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
async def test_a_connection_that_is_lost_in_a_write_leaves_its_outcome_unknown(
    lost: Exception,
) -> None:
    wire = Wire()
    with pytest.raises(errors.OutcomeUnknown) as caught:
        async with write_errors(wire):
            raise lost
    assert caught.value.code is errors.STORE_UNAVAILABLE
    assert wire.is_terminated, "what was still under way must not be written later"


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
async def test_a_connection_that_is_lost_in_a_read_is_a_store_that_does_not_answer(
    lost: Exception,
) -> None:
    with pytest.raises(errors.StoreError) as caught:
        async with read_errors():
            raise lost
    assert caught.value.code is errors.STORE_UNAVAILABLE
