"""The lanes of a worker's tenant: a session with each, the slots divided among them, and one end for all.

Rule 1: the session with lane 0, the home, says which other lanes there are. One that is not listed any more takes
        nothing new and ends when it is empty; if it is listed again by then, it is opened anew.
Rule 2: packages and credentials are the worker's, and every lane is told of them; orders about packages and a drain are
        taken from the home alone. What is told of a resource goes to the lane in which it was made.
Rule 3: a drain is of the whole worker, which ends when all its lanes have. When one lane finds that another process has
        this worker's identity, all end at once.
Rule 4: with one lane, the home has the whole worker, and nothing here says or limits anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from astraflow.core.agent.actions import Exit
from astraflow.core.agent.slots import SlotDivision
from astraflow.core.protocol.control import HOME_LANE
from astraflow.core.protocol.worker_events import (
    Connect,
    DrainAsked,
    HungerTold,
    LanesTold,
    SessionReady,
    SlotsAnswered,
)
from astraflow.worker.addresses import Schedulers
from astraflow.worker.lane_hosts import AttemptKey, LaneHosts, PoolOfHosts, SharedHosts

if TYPE_CHECKING:
    from astraflow.core.agent.actions import LaneWord
    from astraflow.core.ids import TaskId
    from astraflow.core.protocol import business
    from astraflow.core.protocol.wire import Envelope, Wire
    from astraflow.worker.agent_runner import AgentRunner

_log: Final = logging.getLogger(__name__)

Receive = Callable[["Envelope", int], None]
"""Takes a frame for packages or resources, and the lane that it came from."""


class OpenLane(Protocol):
    """Makes what keeps the session with a lane. `slots`: how many to say in its next register; None: all."""

    def __call__(
        self, lane: int, schedulers: Schedulers, slots: Callable[[], int | None]
    ) -> AgentRunner: ...


class _KeptLane:
    """One lane that the worker has, or is about to leave."""

    def __init__(self, owner: WorkerLanes, number: int, schedulers: Schedulers) -> None:
        self._owner = owner
        self.number = number
        self.schedulers = schedulers
        self.is_ending = False
        self.runner = owner.open_lane(number, schedulers, partial(owner.slots_of, number))
        self.runner.watcher = self

    def told(self, word: LaneWord) -> None:
        self._owner.on_word(self, word)

    def flushed(self) -> None:
        self._owner.on_flushed(self)


class WorkerLanes:
    """All lanes of a worker. `run` it; until then it has the home alone."""

    def __init__(self, schedulers: Schedulers, max_parallel: int, open_lane: OpenLane) -> None:
        self.open_lane = open_lane
        self._schedulers = schedulers
        self._max_parallel = max_parallel
        self._slots: SlotDivision | None = None
        self._shared: SharedHosts | None = None
        self._receive: Receive | None = None
        self._group: asyncio.TaskGroup | None = None
        self._wanted: dict[int, str | None] = {}  # the other lanes, and where they are
        self._untold: dict[int, dict[str, tuple[str, Wire, str | None]]] = {}
        self._is_draining = False
        self._exit: Exit | None = None
        self._home = _KeptLane(self, HOME_LANE, schedulers)
        self._lanes: dict[int, _KeptLane] = {HOME_LANE: self._home}

    @property
    def numbers(self) -> list[int]:
        """The lanes that there are now."""
        return sorted(self._lanes)

    @property
    def working(self) -> int:
        """Attempts that run, are being stopped, or wait for room, in all lanes."""
        return sum(len(one.runner.agent.attempts.working()) for one in self._lanes.values())

    @property
    def waiting(self) -> int:
        """Attempts that are held and not started, for want of room."""
        return 0 if self._shared is None else self._shared.waiting

    @property
    def is_draining(self) -> bool:
        return self._home.runner.agent.attempts.is_draining

    async def run(self, hosts: PoolOfHosts, receive: Receive) -> Exit:
        """Keep the sessions until the worker is over."""
        self._shared = SharedHosts(hosts, self._max_parallel)
        self._receive = receive
        async with asyncio.TaskGroup() as group:
            self._group = group
            ended = await self._run_lane(self._home)
            if ended.code:
                self.end(ended.code, ended.reason)
        return self._exit or ended

    # -- the whole worker ---------------------------------------------------------------------

    def drain(self, deadline_s: float | None) -> None:
        """Take nothing new, finish what runs, then end."""
        self._home.runner.drain(deadline_s)
        self._drain_others(deadline_s)

    def end(self, code: int, reason: str) -> None:
        """End now, whatever is held."""
        self._is_draining = True
        self._exit = self._exit or Exit(code, reason)
        for one in self._lanes.values():
            one.runner.end(code, reason)

    def present(self, token: str) -> None:
        """Use another token from now on."""
        for one in self._lanes.values():
            one.runner.present(token)

    def offer_changed(self) -> None:
        """What the worker offers is other than it registered: packages came or went."""
        for one in self._lanes.values():
            one.runner.offer_changed()

    def tell(
        self,
        key: str,
        frame_type: str,
        payload: Wire,
        corr: str | None = None,
        lane: int = HOME_LANE,
    ) -> None:
        """The newest word per key reaches the lane; one that is not there hears it when it is."""
        kept = self._lanes.get(lane)
        if kept is None:
            self._untold.setdefault(lane, {})[key] = (frame_type, payload, corr)
        else:
            kept.runner.tell(key, frame_type, payload, corr)

    # -- what the hosts tell ------------------------------------------------------------------

    def finished(self, result: business.Result) -> None:
        kept = self._ended((result.task_id, result.attempt))
        if kept is not None:
            kept.runner.finished(result)

    def gone(self, task_id: TaskId, attempt: int) -> None:
        kept = self._ended((task_id, attempt))
        if kept is not None:
            kept.runner.gone(task_id, attempt)

    def feedback(self, feedback: business.Feedback) -> None:
        kept = self._find((feedback.task_id, feedback.attempt))
        if kept is not None:
            kept.runner.feedback(feedback)

    def call(self, request: business.NextRequest) -> None:
        kept = self._find((request.task_id, request.attempt))
        if kept is not None and self._shared is not None:
            self._shared.called(request)
            kept.runner.call(request)

    def _find(self, key: AttemptKey) -> _KeptLane | None:
        lane = HOME_LANE if self._shared is None else self._shared.lane_of(key)
        return self._lanes.get(lane)

    def _ended(self, key: AttemptKey) -> _KeptLane | None:
        kept = self._find(key)
        if self._shared is not None:
            self._shared.ended(key)
        return kept

    # -- what the sessions say ----------------------------------------------------------------

    def slots_of(self, lane: int) -> int | None:
        """What the next register of a lane says of slots."""
        return None if self._slots is None else self._slots.registered(lane)

    def on_word(self, kept: _KeptLane, word: LaneWord) -> None:
        """A session says something that concerns the other lanes."""
        if kept is self._home:
            if isinstance(word, LanesTold):
                self._on_lanes({one.lane: one.location for one in word.lanes})
            elif isinstance(word, DrainAsked):
                self._drain_others(word.deadline_s)
        slots, lane = self._slots, kept.number
        if slots is None:
            return
        match word:
            case Connect():
                slots.lost(lane, has_session=kept.runner.agent.session.is_open)
            case SessionReady(resumed):
                slots.opened(lane, resumed)
            case HungerTold(tasks, runs):
                slots.hungry(lane, tasks, runs)
            case SlotsAnswered():
                slots.answered(lane)
            case _:
                pass
        self._tell_slots(slots)

    def on_flushed(self, kept: _KeptLane) -> None:
        """The attempts of a lane may be others."""
        if self._slots is not None:
            self._slots.held(kept.number, kept.runner.agent.attempts.slots_taken)
            self._tell_slots(self._slots)

    def _tell_slots(self, slots: SlotDivision) -> None:
        for lane in slots.take_given_up():
            self._lanes[lane].runner.give_up_session()
        for change in slots.take_changes():
            self._lanes[change.lane].runner.give_slots(change.slots)

    # -- which lanes there are ----------------------------------------------------------------

    def _on_lanes(self, wanted: dict[int, str | None]) -> None:
        wanted.pop(HOME_LANE, None)
        if wanted == self._wanted or self._is_draining:
            return
        self._wanted = wanted
        if wanted and self._slots is None:
            self._slots = SlotDivision(self._max_parallel)
            self.on_flushed(self._home)
        for lane, location in wanted.items():
            kept = self._lanes.get(lane)
            if kept is None:
                self._open(lane)
            else:
                kept.schedulers.replace(_places(location))
        for kept in list(self._lanes.values()):
            if kept.number not in (HOME_LANE, *wanted) and not kept.is_ending:
                self._leave(kept)

    def _open(self, lane: int) -> None:
        assert self._slots is not None
        assert self._shared is not None
        assert self._group is not None
        _log.info("opening lane %d", lane)
        self._shared.limit(self._home.runner.agent.attempts.working())
        self._slots.add(lane)
        places = Schedulers(_places(self._wanted[lane]), self._schedulers.known)
        kept = self._lanes[lane] = _KeptLane(self, lane, places)
        for key, told in self._untold.pop(lane, {}).items():
            kept.runner.tell(key, *told)
        self._group.create_task(self._serve(kept))

    def _drain_others(self, deadline_s: float | None) -> None:
        self._is_draining = True
        for one in self._lanes.values():
            if one is not self._home:
                one.runner.drain(deadline_s)

    def _leave(self, kept: _KeptLane) -> None:
        assert self._slots is not None
        _log.info("leaving lane %d", kept.number)
        kept.is_ending = True
        self._slots.end(kept.number)
        kept.runner.drain(None)
        self._tell_slots(self._slots)

    async def _serve(self, kept: _KeptLane) -> None:
        """One of the other lanes, until it has ended."""
        ended = await self._run_lane(kept)
        assert self._slots is not None
        del self._lanes[kept.number]
        self._slots.remove(kept.number)
        if ended.code:
            self.end(ended.code, ended.reason)
        elif kept.number in self._wanted and not self._is_draining:
            self._open(kept.number)
        self._tell_slots(self._slots)

    async def _run_lane(self, kept: _KeptLane) -> Exit:
        shared, receive, lane = self._shared, self._receive, kept.number
        assert shared is not None
        assert receive is not None
        hosts = LaneHosts(shared, lane, kept.runner)
        return await kept.runner.run(hosts, lambda envelope: receive(envelope, lane))


def _places(location: str | None) -> tuple[str, ...]:
    return () if location is None else (location,)
