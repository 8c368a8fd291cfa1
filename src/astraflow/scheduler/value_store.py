"""Values that the scheduler itself stores by reference: what a map has collected, when it is too large for a result.

Rule: the copy comes first. The bytes are in the blob store before the engine is told, so that a committed result refers
to nothing that is not there. A scheduler that dies in between leaves a blob that nobody refers to, which is swept, and
the next one stores the value again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.engine.commands import NoteValue

if TYPE_CHECKING:
    from astraflow.core.engine.effects import StoreValue
    from astraflow.scheduler.copies import Copies
    from astraflow.scheduler.current import Current

TRIES: Final = 5
"""How often a store that is away is asked."""
FIRST_DELAY_S: Final = 0.5
PIECE_BYTES: Final = 256 * 1024

_log = logging.getLogger(__name__)


class ValueStore:
    """Stores each value in a task of its own. Without copies there is no place for them."""

    def __init__(self, copies: Copies | None, current: Current) -> None:
        self._copies = copies
        self._current = current
        self._tasks: set[asyncio.Task[None]] = set()

    def store(self, effect: StoreValue) -> None:
        task = asyncio.get_running_loop().create_task(self._store(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, effect: StoreValue) -> None:
        blob, problem = None, "this scheduler stores no large values"
        for number in range(TRIES if self._copies is not None else 0):
            assert self._copies is not None
            try:
                copy = await self._copies.keep(_pieces(effect.value), len(effect.value))
            except errors.AstraflowError as error:
                problem = error.message
                await asyncio.sleep(FIRST_DELAY_S * 2**number)
            else:
                blob = copy.text()
                break
        command = NoteValue(
            tenant=effect.tenant,
            run_id=effect.run_id,
            task=effect.task,
            size_bytes=len(effect.value),
            blob=blob,
            problem=problem,
        )
        try:
            self._current.execute(command)
        except errors.AstraflowError as error:
            # Another scheduler serves the store, or the run has ended: whoever has the run stores it again.
            _log.info("a stored value is not needed: %s", error.message)


async def _pieces(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), PIECE_BYTES):
        yield value[start : start + PIECE_BYTES]
