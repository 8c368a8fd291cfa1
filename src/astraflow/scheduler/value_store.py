"""Values that the scheduler itself stores or reads: what a map has collected, when it is too large for a result, and
the list of a map that came by reference.

Rule: the copy comes first. The bytes are in the blob store before the engine is told, so that a committed result refers
to nothing that is not there. A scheduler that dies in between leaves a blob that nobody refers to, which is swept, and
the next one stores the value again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import NoteList, NoteValue, OperatorCommand
from astraflow.core.protocol.scan import problem_in
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.scope_opening import MAX_LIST_BYTES
from astraflow.core.runs.scopes import read_items
from astraflow.scheduler.copies import Copy

if TYPE_CHECKING:
    from astraflow.core.engine.effects import ReadList, StoreValue
    from astraflow.scheduler.copies import Copies
    from astraflow.scheduler.current import Current

TRIES: Final = 5
"""How often a store that is away is asked."""
FIRST_DELAY_S: Final = 0.5
PIECE_BYTES: Final = 256 * 1024
READS_AT_ONCE: Final = 2
"""Lists that are in memory twice, while they are read and checked: many maps may begin together."""
_LEVELS_AROUND: Final = 8
"""How deep in a frame an item stands at most, with what its node puts around it."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_decode: Final = msgspec.json.Decoder().decode


class ValueStore:
    """Stores and reads each value in a task of its own. Without copies there is no place for them."""

    def __init__(self, copies: Copies | None, current: Current) -> None:
        self._copies = copies
        self._current = current
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Semaphore(READS_AT_ONCE)

    def store(self, effect: StoreValue) -> None:
        self._begin(self._store(effect))

    def read(self, effect: ReadList) -> None:
        self._begin(self._read(effect))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, effect: StoreValue) -> None:
        blob, problem = None, "this scheduler stores no large values"
        copies = self._copies
        if copies is not None:
            value = effect.value
            try:
                copy = await _tried(lambda: copies.keep(_pieces(value), len(value)))
            except errors.AstraflowError as error:
                problem = error.message
            else:
                blob = copy.text()
        command = NoteValue(
            tenant=effect.tenant,
            run_id=effect.run_id,
            task=effect.task,
            size_bytes=len(effect.value),
            blob=blob,
            problem=problem,
        )
        self._tell(command)

    async def _read(self, effect: ReadList) -> None:
        async with self._reading:
            found = await self._list_of(effect)
        items, failure = (b"", found) if isinstance(found, TaskFailure) else (found, None)
        command = NoteList(
            tenant=effect.tenant,
            run_id=effect.run_id,
            task=effect.task,
            resource_id=effect.resource_id,
            items=items,
            failure=failure,
        )
        self._tell(command)

    async def _list_of(self, effect: ReadList) -> bytes | TaskFailure:
        copies = self._copies
        if copies is None or effect.copy is None:
            return _lost("the list of the map is stored nowhere any more")
        copy = Copy.parse(effect.copy)
        try:
            return await _tried(lambda: _read_copy(copies, copy))
        except errors.NotFound as error:
            return _lost(error.message)
        except errors.AstraflowError as error:
            message = f"map/over: the stored list cannot be read: {error.message}"
            return TaskFailure(error.code.code, "INFRASTRUCTURE", message)

    def _tell(self, command: OperatorCommand) -> None:
        try:
            self._current.execute(command)
        except errors.AstraflowError as error:
            # Another scheduler serves the store, or the run has ended: whoever has the run does it again.
            _log.info("a stored value is not needed: %s", error.message)


async def _tried(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Ask a store that is away a few times. Raises: what it said at last."""
    for number in range(TRIES - 1):
        try:
            return await attempt()
        except errors.Unavailable:
            await asyncio.sleep(FIRST_DELAY_S * 2**number)
    return await attempt()


async def _pieces(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), PIECE_BYTES):
        yield value[start : start + PIECE_BYTES]


async def _read_copy(copies: Copies, copy: Copy) -> bytes | TaskFailure:
    """Raises: NotFound, Unavailable."""
    size = await copies.size(copy)
    if size > MAX_LIST_BYTES:
        message = f"map/over: the list has {size} bytes, and a map takes {MAX_LIST_BYTES}"
        return TaskFailure(errors.TASK_TOO_MANY.code, "CONFIGURATION", message, retryable=False)
    value = b"".join([piece async for piece in copies.read(copy, 0, size)])
    return await asyncio.to_thread(_checked, value, copy)


def _checked(value: bytes, copy: Copy) -> bytes | TaskFailure:
    """The value, if the engine can go over it: nothing in it may fail to be read later."""
    if hashlib.sha256(value).hexdigest() != copy.sha256:
        return _lost("the stored list of the map has other bytes than were written")
    problem = problem_in(value, _LEVELS_AROUND)
    try:
        for item in _parts(value) if problem is None else ():
            _decode(item)
    except msgspec.DecodeError as error:
        problem = str(error)
    if problem is None:
        return value
    message = f"map/over: the stored list is not JSON that can be handed on: {problem}"
    return TaskFailure(errors.TASK_INPUT_INVALID.code, "CONFIGURATION", message, retryable=False)


def _parts(value: bytes) -> Sequence[bytes | msgspec.Raw]:
    """The items of a list one by one, as all of them decoded take many times the room; else the value itself."""
    try:
        return read_items(value)
    except msgspec.ValidationError:
        return [value]  # the engine says what it is


def _lost(why: str) -> TaskFailure:
    return TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", why, retryable=False)
