"""An asyncio loop in virtual time: it never sleeps, it moves its clock to the next timer.

So the true shells run thousands of times faster than in life, and the same way every time. Where nothing is ready and
no timer is set, a real loop would wait for ever; this one says so, with the stack of every task.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

__all__ = ["Hang", "LoopClock", "VirtualLoop", "run_virtual"]

Answer = TypeVar("Answer")

WALL_START_MS = 1_700_000_000_000
LONGEST_S = 5_000.0
"""No world takes longer: one that does has lost its end."""
CANCELS = 20
"""Some code takes more than one cancel to end, as after a failure in the middle of another."""
SPIN_TURNS = 20_000
"""Turns of the loop at one moment: far more than any world needs, and soon over."""


class Hang(AssertionError):
    """Every task waits and no timer is set."""


class _Selector:
    """Stands where the loop asks the operating system to sleep."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._turns = 0

    def restart(self) -> None:
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Hang(f"every task waits and no timer is set\n{self._loop.stacks()}")
        self._turns += 1
        if self._turns > SPIN_TURNS:
            raise Hang(f"something spins: time does not pass\n{self._loop.stacks()}")
        if self._loop.is_idle():
            self._turns = 0
            self._loop.pass_time()
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """One thread, no sockets, no signals: only tasks, callbacks and timers.

    What is given to a thread runs on this one, when `thread_s` has passed.

    `on_idle` is called whenever nothing is left to do before time passes: what still waits then, waits rightly or has
    been forgotten.
    """

    # What asyncio's loop has, and typeshed does not list.
    _ready: Collection[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _thread_id: int

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector(self)
        self._clock_resolution = 0.0
        self._virtual_now = 0.0
        self.failures: list[dict[str, Any]] = []
        self.on_idle: Callable[[], None] | None = None
        self.thread_s: Callable[[], float] = lambda: 0.0
        self.set_exception_handler(_keep_failure)

    def time(self) -> float:
        return self._virtual_now

    def pass_time(self) -> None:
        """Move the clock to the next timer, which may be past already after a stall."""
        if self.on_idle is not None:
            self.on_idle()
        if self._virtual_now > LONGEST_S:
            raise Hang(f"the world does not end\n{self.stacks()}")
        # Just past it, so that what was due then is due: a clock never stops exactly at a deadline.
        self._virtual_now = max(self._virtual_now, math.nextafter(self._next(), math.inf))

    def is_idle(self) -> bool:
        """Whether nothing is left to do at this moment."""
        return not self._ready and not self._stopping and bool(self._scheduled)

    def _next(self) -> float:
        return self._scheduled[0].when()

    def start_again(self) -> None:
        """Let there be time to clean up in."""
        self._selector.restart()
        self._virtual_now = 0.0

    def stall(self, seconds: float) -> None:
        """The whole machine stands still for so long, then finds everything late."""
        self._virtual_now += seconds

    def timers(self) -> list[asyncio.TimerHandle]:
        """What is still set."""
        return [handle for handle in self._scheduled if not handle.cancelled()]

    def stacks(self) -> str:
        """Where every task stands."""
        lines = []
        for task in asyncio.all_tasks(self):
            places = [
                f"{frame.f_code.co_qualname}:{frame.f_lineno}" for frame in _frames(task.get_coro())
            ]
            lines.append(f"  {task.get_name()}: {' > '.join(places)}")
        return "\n".join(sorted(lines))

    # What the base class asks of a loop.

    def run_in_executor(  # type: ignore[override]
        self, executor: object, work: Callable[..., Answer], *args: Any
    ) -> asyncio.Future[Answer]:
        ended: asyncio.Future[Answer] = self.create_future()
        self.call_later(self.thread_s(), _work, ended, work, args)
        return ended

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        # asyncio itself ends generators that nobody closed as if another thread asked for it.
        assert threading.get_ident() == self._thread_id, "another thread calls into a virtual loop"


def _work(ended: asyncio.Future[Any], work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """A thread cannot be interrupted: it works to its end, also when nobody waits for that any more."""
    try:
        answer = work(*args)
    except Exception as problem:
        if not ended.done():
            ended.set_exception(problem)
    else:
        if not ended.done():
            ended.set_result(answer)


def _frames(coroutine: Any) -> list[Any]:
    """The frames of a suspended coroutine, outermost first."""
    frames = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return frames


def _keep_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    loop.failures.append(context)


class LoopClock:
    """The loop's time as the shells ask for it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._wall_offset_ms = 0
        self.now = loop.time

    def wall_ms(self) -> int:
        return WALL_START_MS + int(self._loop.time() * 1000) + self._wall_offset_ms

    def set_wall(self, seconds: float) -> None:
        """Somebody sets the clock on the wall forward, or back."""
        self._wall_offset_ms += int(seconds * 1000)


def run_virtual(main: Callable[[VirtualLoop], Coroutine[Any, Any, Answer]]) -> Answer:
    """Run one coroutine to its end in a loop of its own; whatever it leaves behind is ended with it."""
    loop = VirtualLoop()
    try:
        answer = loop.run_until_complete(main(loop))
        assert not loop.failures, loop.failures
        return answer
    finally:
        loop.on_idle = None
        _end_tasks(loop)
        loop.close()


def _end_tasks(loop: VirtualLoop) -> None:
    """After a failure: let every task end, so that nothing speaks from beyond it."""
    for _ in range(CANCELS):
        left = asyncio.all_tasks(loop)
        if not left:
            break
        for task in left:
            task.cancel()
        loop.start_again()
        ended, _ = loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        for task in ended:
            if not task.cancelled():
                task.exception()  # seen: what failed first is what is told
    loop.run_until_complete(loop.shutdown_asyncgens())
