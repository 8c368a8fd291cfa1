"""A thread that owns a connection: calls wait in a queue, and results go back to the loop that asked.

One queue entry in and one `call_soon_threadsafe` out: a thread pool of the standard library costs twice as much.
"""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from astraflow.core import errors
from astraflow.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

Owned = TypeVar("Owned")
Answer = TypeVar("Answer")


class CallQueue(Generic[Owned]):
    """Where calls wait for a thread that is free. Several threads may take from one queue."""

    def __init__(self) -> None:
        self._is_ended = False
        self._calls: SimpleQueue[
            tuple[Callable[[Owned], Any], asyncio.Future[Any] | None] | None
        ] = SimpleQueue()

    def call(self, function: Callable[[Owned], Answer]) -> asyncio.Future[Answer]:
        """Call `function` with what a thread owns, in that thread, and await the answer.

        Raises:
            StoreError: the queue has ended; a call in it would wait for ever.
        """
        if self._is_ended:
            raise StoreError(errors.STORE_UNAVAILABLE, "the store is closed")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._calls.put((function, future))
        return future

    def post(self, function: Callable[[Owned], None]) -> None:
        """Call `function` in its turn, from any thread, for nobody who waits: it must not raise."""
        self._calls.put((function, None))

    def end(self) -> None:
        """End one thread, after all calls that wait already. No more are taken."""
        self._is_ended = True
        self._calls.put(None)

    def serve(self, owned: Owned) -> None:
        """Answer calls until the end. After a posted call has raised, that is every answer."""
        failed: BaseException | None = None
        while (entry := self._calls.get()) is not None:
            function, future = entry
            try:
                if failed is not None:
                    raise failed
                answer, error = function(owned), None
            # Whatever a call raised belongs to the one who waits for it, not to this thread.
            except BaseException as raised:
                answer, error = None, raised
            if future is not None:
                _deliver(future, answer, error)
            else:
                failed = failed or error
            del entry, function, future, answer, error


class CallThread(Generic[Owned]):
    """One thread that serves a queue with a connection of its own."""

    def __init__(
        self,
        name: str,
        calls: CallQueue[Owned],
        enter: Callable[[], Owned],
        leave: Callable[[Owned], None],
    ) -> None:
        self._calls = calls
        self._enter = enter
        self._leave = leave
        self._opened: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        """Start the thread and wait until it owns its connection, or raise what kept it from that."""
        loop = asyncio.get_running_loop()
        self._opened, self._closed = loop.create_future(), loop.create_future()
        self._thread.start()
        await asyncio.wait([self._opened])
        if self._opened.exception() is not None:
            self._thread.join()
        await self._opened

    async def ended(self) -> None:
        """Wait until the thread has left its connection; the end of its queue must be on its way."""
        assert self._closed is not None
        await asyncio.wait([self._closed])
        self._thread.join()
        await self._closed

    def _run(self) -> None:
        assert self._opened is not None
        assert self._closed is not None
        try:
            owned = self._enter()
        except BaseException as raised:
            _deliver(self._closed, None, None)
            _deliver(self._opened, None, raised)
            return
        _deliver(self._opened, None, None)
        self._calls.serve(owned)
        try:
            self._leave(owned)
        except BaseException as raised:
            _deliver(self._closed, None, raised)
        else:
            _deliver(self._closed, None, None)


def _deliver(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_resolve, future, answer, error)
    except RuntimeError:
        return  # the loop is closed: nobody waits any more


def _resolve(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the one who waited was cancelled
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
