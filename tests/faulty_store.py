"""A store that fails when told to: before a commit, after it without saying so, or late."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, assert_never

from astraflow.core import errors
from astraflow.core.errors import OutcomeUnknown, StoreError

if TYPE_CHECKING:
    from astraflow.store.rows import Changes
    from astraflow.store.store import Claim, Store

__all__ = ["Fault", "FaultyStore"]


class Fault(Enum):
    """What becomes of one commit."""

    NONE = "written, and said so"
    UNAVAILABLE = "not written, and said so"
    FULL = "no room, and said so"
    BROKEN = "not written, and nothing can be written any more"
    UNKNOWN_WRITTEN = "written, but nobody knows"
    UNKNOWN_LOST = "not written, but nobody knows"
    SLOW = "written when `let_go` is called"


class FaultyStore:
    """Wraps a store. Each commit takes the next fault from `faults`; when there is none left, nothing fails.

    Everything else goes through to the wrapped store. `is_committed` fails `silent` times before it answers.
    """

    def __init__(self, store: Store, faults: Iterable[Fault] = (), *, silent: int = 0) -> None:
        self._store = store
        self.faults = deque(faults)
        self.silent = silent
        self.commits: list[tuple[int, Fault]] = []
        """The number of each commit that was tried, and what became of it."""
        self._gate = asyncio.Event()
        self._is_broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def let_go(self) -> None:
        """Let all slow commits through, those to come too."""
        self._gate.set()

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        fault = self.faults.popleft() if self.faults else Fault.NONE
        if self._is_broken:
            fault = Fault.BROKEN
        self.commits.append((number, fault))
        await self._behave(fault, lambda: self._store.commit(claim, number, changes))

    async def _behave(self, fault: Fault, write: Callable[[], Awaitable[None]]) -> None:
        match fault:
            case Fault.NONE:
                await write()
            case Fault.SLOW:
                await self._gate.wait()
                await write()
            case Fault.UNAVAILABLE:
                raise StoreError(errors.STORE_UNAVAILABLE, "planted: the store does not answer")
            case Fault.FULL:
                raise StoreError(errors.STORE_FULL, "planted: the disk is full")
            case Fault.BROKEN:
                self._is_broken = True
                raise StoreError(errors.STORE_BROKEN, "planted: the disk is broken")
            case Fault.UNKNOWN_WRITTEN:
                await write()
                raise OutcomeUnknown(errors.STORE_UNAVAILABLE, "planted: no answer")
            case Fault.UNKNOWN_LOST:
                raise OutcomeUnknown(errors.STORE_UNAVAILABLE, "planted: no answer")
            case other:
                assert_never(other)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        if self.silent > 0:
            self.silent -= 1
            raise StoreError(errors.STORE_UNAVAILABLE, "planted: the store does not answer")
        if self._is_broken:
            raise StoreError(errors.STORE_BROKEN, "planted: the disk is broken")
        return await self._store.is_committed(claim, number)
