"""Objects that this host keeps between attempts, by the token of their registration.

Several runs may register one object: it is counted once, and closed with its last registration.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from astraflow_sdk.host.threads import Threads

ERROR_CHARS = 4096


class Objects:
    """Attempts add objects; the worker requests their close."""

    def __init__(
        self, may_keep: bool, threads: Threads, on_closed: Callable[[str, str | None], None]
    ) -> None:
        """`on_closed` is called on the loop or in a thread."""
        self.may_keep = may_keep
        self._threads = threads
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._kept: dict[str, tuple[Any, Callable[[], Any] | None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, token: str, value: Any, close: Callable[[], Any] | None) -> str | None:
        """Returns the token of an earlier registration of the same object, if there is one."""
        shares = self._other(value)
        self._kept[token] = (value, close)
        return shares

    def _other(self, value: Any) -> str | None:
        return next((one for one, (kept, _) in list(self._kept.items()) if kept is value), None)

    def find(self, token: str) -> Any:
        return self._kept.get(token, (None, None))[0]

    def drop(self, token: str) -> None:
        self._kept.pop(token, None)

    def close(self, token: str) -> None:
        """Have an object closed, on the loop or in a thread, as its `close` wants it. The worker bounds the time."""
        value, close = self._kept.pop(token, (None, None))
        if close is None or self._other(value) is not None:
            self._on_closed(token, None)
        elif inspect.iscoroutinefunction(close):
            self._close_async(token, close)
        else:
            self._threads.run(lambda: self._close_in_thread(token, close))

    def _close_async(self, token: str, close: Callable[[], Any]) -> None:
        task = self._loop.create_task(self._await_close(token, close))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _await_close(self, token: str, close: Callable[[], Any]) -> None:
        try:
            await close()
        except BaseException as problem:  # whatever a package raises, the host goes on
            self._on_closed(token, _says(problem))
        else:
            self._on_closed(token, None)

    def _close_in_thread(self, token: str, close: Callable[[], Any]) -> None:
        try:
            found = close()
        except BaseException as problem:  # whatever a package raises, the thread goes on
            self._on_closed(token, _says(problem))
            return
        if inspect.isawaitable(found):
            # A plain function that returns a coroutine, such as a lambda round an `async` method.
            self._loop.call_soon_threadsafe(self._close_async, token, lambda: found)
        else:
            self._on_closed(token, None)


def _says(problem: BaseException) -> str:
    try:
        text = f"{type(problem).__name__}: {problem}"
    except BaseException:
        text = type(problem).__name__
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()[:ERROR_CHARS]
