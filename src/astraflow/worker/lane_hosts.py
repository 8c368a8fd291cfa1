"""The hosts of a worker, shared by its lanes.

Rule 1: an attempt belongs to the lane that started it. No other lane cancels or kills it, or hears of it.
Rule 2: with several lanes, no more than `max_parallel` attempts run at once. One that waits for what it called lends
        its slot. What is too many waits for its start, in the order in which it came.
Rule 3: what waits is ended like what runs: a cancel ends it as cancelled, a kill as gone; its fence is moved with the
        others. Who is told of an end is never told from inside a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.control import HOME_LANE

if TYPE_CHECKING:
    from astraflow.core.agent.held_attempts import HeldAttempt
    from astraflow.worker.hosts import HostEvents

AttemptKey = tuple[str, int]


class PoolOfHosts(Protocol):
    """Where the attempts of all lanes run."""

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None: ...
    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None: ...
    def kill(self, task_id: TaskId, attempt: int) -> None: ...
    def answer(self, response: business.NextResponse) -> None: ...
    def refence(self, fences: Mapping[AttemptKey, float]) -> None: ...


class _WaitingStart(msgspec.Struct):
    """An attempt that is held and not started, for want of room."""

    dispatch: business.Dispatch
    fence_at: float
    lane: int


class SharedHosts:
    """The attempts of all lanes: which is whose, which run, and which wait for room."""

    def __init__(self, hosts: PoolOfHosts, max_parallel: int) -> None:
        self._hosts = hosts
        self._max_parallel = max_parallel
        self._is_limited = False
        self._lanes: dict[AttemptKey, int] = {}
        self._calls: dict[AttemptKey, set[str]] = {}  # of all that run: what each waits for
        self._waiting: dict[AttemptKey, _WaitingStart] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def limit(self, home: Iterable[HeldAttempt]) -> None:
        """From now on there are several lanes. `home`: what runs in the only lane until now."""
        if self._is_limited:
            return
        self._is_limited = True
        for held in home:
            key = (held.task_id, held.attempt)
            self._lanes[key] = HOME_LANE
            self._calls[key] = set(held.calls)

    def lane_of(self, key: AttemptKey) -> int:
        return self._lanes.get(key, HOME_LANE)

    # -- what lanes ask ---------------------------------------------------------------------

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int) -> bool:
        """Run an attempt when there is room. False: another lane has an attempt of this name."""
        if not self._is_limited:
            self._hosts.start(dispatch, fence_at, lane)
            return True
        key = (dispatch.task_id, dispatch.attempt)
        if key in self._lanes:
            return False
        self._lanes[key] = lane
        self._waiting[key] = _WaitingStart(dispatch, fence_at, lane)
        self._start_waiting()
        return True

    def cancel(self, key: AttemptKey, grace_s: float, reason: str) -> business.Dispatch | None:
        """Ask an attempt to end; the dispatch of one that was not started, and will not be."""
        waiting = self._take_back(key)
        if waiting is None:
            self._hosts.cancel(TaskId(key[0]), key[1], grace_s, reason)
        return waiting

    def kill(self, key: AttemptKey) -> business.Dispatch | None:
        """As `cancel`."""
        waiting = self._take_back(key)
        if waiting is None:
            self._hosts.kill(TaskId(key[0]), key[1])
        return waiting

    def answer(self, response: business.NextResponse) -> None:
        calls = self._calls.get((response.task_id, response.attempt))
        if calls is not None:
            calls.discard(response.request_id)
        self._hosts.answer(response)

    def refence(self, fences: Mapping[AttemptKey, float]) -> None:
        for key in self._waiting.keys() & fences.keys():
            self._waiting[key].fence_at = fences[key]
        self._hosts.refence(fences)

    # -- what hosts tell --------------------------------------------------------------------

    def called(self, request: business.NextRequest) -> None:
        """An attempt calls the rest of its chain, and lends its slot until it is answered."""
        calls = self._calls.get((request.task_id, request.attempt))
        if calls is not None:
            calls.add(request.request_id)
            self._room_made()

    def ended(self, key: AttemptKey) -> None:
        """An attempt has ended, or will never be started."""
        if self._lanes.pop(key, None) is not None:
            self._calls.pop(key, None)
            self._room_made()

    # -- inside -----------------------------------------------------------------------------

    def _take_back(self, key: AttemptKey) -> business.Dispatch | None:
        waiting = self._waiting.pop(key, None)
        return None if waiting is None else waiting.dispatch

    def _room_made(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._start_waiting)

    def _start_waiting(self) -> None:
        running = sum(not calls for calls in self._calls.values())
        while self._waiting and running < self._max_parallel:
            key = next(iter(self._waiting))
            waiting = self._waiting.pop(key)
            self._calls[key] = set()
            running += 1
            self._hosts.start(waiting.dispatch, waiting.fence_at, waiting.lane)


class LaneHosts:
    """The hosts as one lane sees them."""

    def __init__(self, shared: SharedHosts, lane: int, events: HostEvents) -> None:
        """`events` are told of what is not in the hosts."""
        self._shared = shared
        self._lane = lane
        self._events = events
        self.answer = shared.answer
        self.refence = shared.refence

    def start(self, dispatch: business.Dispatch, fence_at: float) -> None:
        if not self._shared.start(dispatch, fence_at, self._lane):
            code = errors.DISPATCH_STALE
            error = business.AttemptError(code.code, "INFRASTRUCTURE", "another lane runs it")
            self._finished(dispatch, "FAILED", error)

    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None:
        key = (task_id, attempt)
        if self._shared.lane_of(key) != self._lane:
            return  # it was not started, which is told
        dispatch = self._shared.cancel(key, grace_s, reason)
        if dispatch is not None:
            self._shared.ended(key)
            self._finished(dispatch, "CANCELLED", None)

    def kill(self, task_id: TaskId, attempt: int) -> None:
        key = (task_id, attempt)
        if self._shared.lane_of(key) != self._lane:
            self._gone(key)
        elif self._shared.kill(key) is not None:
            self._shared.ended(key)
            self._gone(key)

    def _gone(self, key: AttemptKey) -> None:
        asyncio.get_running_loop().call_soon(self._events.gone, TaskId(key[0]), key[1])

    def _finished(
        self,
        dispatch: business.Dispatch,
        status: Literal["FAILED", "CANCELLED"],
        error: business.AttemptError | None,
    ) -> None:
        result = business.Result(
            dispatch.run_id, dispatch.task_id, dispatch.attempt, status, error=error
        )
        asyncio.get_running_loop().call_soon(self._events.finished, result)
