"""Slots: how a worker divides what it may run at once among the lanes of its tenant (PROTOCOL §11).

Rule 1: a lane *reaches* as many slots as its scheduler may count with, or as attempts are held for it if they are more.
        All lanes together never reach more than `max_parallel`. What one lane is to give up is lowered at once, and
        counts for it until the scheduler has answered and the attempts have ended; only then another lane is raised.
Rule 2: of each lane one change at a time is under way. What is wanted meanwhile (`goal`) is told after its answer.
Rule 3: at first each lane gets an equal share, whole slots, of what others leave idle: at least one while there are
        enough. Later a lane without slots gets one from a lane that has another one to spare.
Rule 4: idle slots of lanes without hunger go to hungry lanes, first to the one with the fewest slots for its runs, at
        most as many as tasks wait there. A hungry lane that uses all it has wants one more, whatever it said before.
Rule 5: between two hungry lanes a slot moves only if the giver has more for its runs afterwards, too. So nothing moves
        back. Each hungry lane has at least one slot while there are enough; the last slot of a lane is not taken so.
Rule 6: with fewer slots than hungry lanes the slots go round: the lane that has waited longest gets the slot of one
        that has used it. A lane that says twice that it is hungry and starts nothing has had its turn.
Rule 7: a lane without a connection keeps its slots until a hungry lane wants them. Its scheduler can send nothing
        meanwhile, but counts with the old slots if the session goes on: so that session is given up (`take_given_up`),
        and a new one begins with the slots that are left.
Rule 8: a lane that holds more than its goal, because a dispatch crossed a change, takes the idle slots of others. They
        could not be used: all lanes together reach as many slots as there are.
"""

from __future__ import annotations

from typing import NamedTuple

from astraflow.core.protocol.control import HOME_LANE


class SlotsChange(NamedTuple):
    """Tell the lane that so many slots are for it; call `answered` when its scheduler counts so."""

    lane: int
    slots: int


class _Lane:
    """What is known of one lane."""

    __slots__ = (
        "counted",
        "first_share",
        "goal",
        "has_session",
        "has_used",
        "held",
        "is_awaited",
        "is_ending",
        "is_open",
        "known",
        "number",
        "runs",
        "tasks",
        "told",
        "unused_words",
        "waits_since",
    )

    def __init__(self, number: int, first_share: int) -> None:
        self.number = number
        self.first_share = first_share  # what it gets of idle slots without hunger
        self.goal = 0
        self.told = 0
        self.known = 0  # what its scheduler last said that it counts with
        self.counted = 0  # the most that it may count with
        self.held = 0
        self.tasks: int | None = None  # that wait and were not given a slot; None: no hunger
        self.runs = 1
        self.is_open = False  # frames flow, or will after the register that was just made
        self.has_session = False  # that a new connection could go on with
        self.is_awaited = False  # a change, or a register, was not answered
        self.is_ending = False
        self.has_used = True  # the last slot that it got when it had none
        self.unused_words = 0
        self.waits_since = 0

    @property
    def reach(self) -> int:
        return max(self.counted, self.held)

    @property
    def is_hungry(self) -> bool:
        return self.tasks is not None

    @property
    def wants(self) -> bool:
        return self.tasks is not None and (self.tasks > 0 or self.held >= self.goal)

    @property
    def idle(self) -> int:
        """Slots that nothing runs in and nothing waits for."""
        return 0 if self.is_hungry else self.goal - self.held


class SlotDivision:
    """The slots of a worker with several lanes. Begins with the home lane, which has all of them."""

    def __init__(self, max_parallel: int) -> None:
        self.max_parallel = max_parallel
        home = _Lane(HOME_LANE, max_parallel)
        home.goal = home.told = home.known = home.counted = max_parallel
        home.is_open = home.has_session = True
        self._lanes: dict[int, _Lane] = {HOME_LANE: home}
        self._changes: list[SlotsChange] = []
        self._given_up: list[int] = []
        self._turns = 0  # counts those who begin to wait

    # -- inputs -----------------------------------------------------------------------------

    def add(self, lane: int) -> None:
        """There is another lane. It has nothing until it registers."""
        self._lanes[lane] = _Lane(lane, 0)
        share = max(1, self.max_parallel // len(self._lanes))
        self._lanes[lane].first_share = share
        for one in self._lanes.values():
            one.first_share = min(one.first_share, share)

    def end(self, lane: int) -> None:
        """The lane takes nothing new, and is removed when what it holds has ended."""
        ending = self._lanes[lane]
        ending.is_ending, ending.tasks, ending.first_share = True, None, 0
        self._divide()

    def remove(self, lane: int) -> None:
        """The lane has ended, and holds nothing."""
        del self._lanes[lane]
        self._divide()

    def registered(self, lane: int) -> int:
        """A register of the lane is made: the slots to say in it."""
        entry = self._lanes[lane]
        if not entry.is_open:  # a new session: its scheduler will know of no other slots
            entry.is_open = entry.is_awaited = True
            entry.told = entry.counted = 0
            self._divide()
            entry.told = max(0, min(entry.goal, entry.reach + self._spare()))
            entry.counted = entry.known = entry.told
        return entry.told

    def opened(self, lane: int, is_resumed: bool) -> None:
        """The session of the lane is open, after a register or after a resume."""
        entry = self._lanes[lane]
        entry.is_open = entry.has_session = True
        if is_resumed:
            # It counts as before, and is told again on each connection.
            self._change(entry, self._possible(entry))
        else:
            entry.is_awaited = False
        self._divide()

    def lost(self, lane: int, *, has_session: bool) -> None:
        """The lane has no connection; `has_session`: the next one may go on with its session."""
        entry = self._lanes[lane]
        entry.is_open = entry.is_awaited = False
        entry.tasks = None
        entry.has_session = has_session
        if not has_session:
            entry.told = entry.counted = 0
        self._divide()

    def hungry(self, lane: int, tasks: int, runs: int) -> None:
        """So many tasks wait for a slot in the lane, of so many runs."""
        entry = self._lanes[lane]
        if entry.is_ending:
            return
        if tasks and entry.tasks is None and not entry.goal:
            self._begin_to_wait(entry)
        on_the_way = max(0, entry.goal - entry.known)
        entry.tasks = max(0, tasks - on_the_way) if tasks else None
        entry.runs = max(1, runs)
        if tasks and entry.told and not entry.held:
            entry.unused_words += 1
            entry.has_used = entry.has_used or entry.unused_words > 1
        self._divide()

    def held(self, lane: int, count: int) -> None:
        """So many attempts are held for the lane that take a slot."""
        entry = self._lanes[lane]
        if entry.held != count:
            entry.has_used = entry.has_used or count > entry.held
            entry.held = count
            self._divide()

    def answered(self, lane: int) -> None:
        """The scheduler of the lane counts with what it was told."""
        entry = self._lanes[lane]
        entry.is_awaited = False
        entry.counted = entry.known = entry.told
        self._divide()

    # -- outputs ----------------------------------------------------------------------------

    def take_changes(self) -> list[SlotsChange]:
        changes, self._changes = self._changes, []
        return changes

    def take_given_up(self) -> list[int]:
        """Lanes whose session must not go on: the next connection begins a new one."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def check(self) -> None:
        """Assert what must hold between two inputs."""
        lanes = self._lanes.values()
        assert sum(one.goal for one in lanes) <= self.max_parallel
        assert sum(one.counted for one in lanes) <= self.max_parallel
        assert all(0 <= one.told <= one.counted for one in lanes)
        assert all(one.told == one.counted or one.is_awaited or not one.is_open for one in lanes)

    # -- who is to have what ----------------------------------------------------------------

    def _divide(self) -> None:
        for one in self._lanes.values():
            if one.is_ending:
                one.goal = min(one.goal, one.held)
        while (
            self._give_unassigned()
            or self._cover_held()
            or self._feed_hungry()
            or self._go_round()
            or self._share()
        ):
            pass
        self._tell()

    def _takers(self) -> list[_Lane]:
        return [one for one in self._lanes.values() if one.is_open and not one.is_ending]

    def _hungriest(self) -> list[_Lane]:
        """Those that want more, first the one with the fewest slots for its runs."""
        found = [one for one in self._takers() if one.wants]
        return sorted(found, key=lambda one: ((one.goal + 1) / one.runs, one.number))

    def _give_unassigned(self) -> bool:
        if sum(one.goal for one in self._lanes.values()) >= self.max_parallel:
            return False
        takers = self._hungriest() or sorted(self._takers(), key=lambda one: one.goal)
        if takers:
            self._move(None, takers[0])
        return bool(takers)

    def _cover_held(self) -> bool:
        """Rule 8."""
        over = max(self._lanes.values(), key=lambda one: one.held - one.goal)
        giver = max(self._lanes.values(), key=lambda one: one.idle)
        if over.held <= over.goal or giver.idle <= 0:
            return False
        self._move(giver, over)
        return True

    def _feed_hungry(self) -> bool:
        """Rules 4 and 5."""
        for taker in self._hungriest():
            giver = max(self._lanes.values(), key=lambda one: one.idle)
            if giver.idle <= 0:
                fuller = [one for one in self._takers() if _is_fuller(one, taker)]
                if not fuller:
                    continue
                giver = max(fuller, key=lambda one: one.goal / one.runs)
            self._move(giver, taker)
            return True
        return False

    def _go_round(self) -> bool:
        """Rule 6."""
        waiting = [one for one in self._takers() if one.wants and not one.goal]
        givers = [one for one in self._takers() if one.is_hungry and one.goal == 1 and one.has_used]
        if not waiting or not givers:
            return False
        taker = min(waiting, key=lambda one: one.waits_since)
        giver = min(givers, key=lambda one: one.waits_since)
        self._move(giver, taker)
        return True

    def _share(self) -> bool:
        """Rule 3."""
        for taker in self._takers():
            if taker.goal >= taker.first_share:
                taker.first_share = min(taker.first_share, 1)
                continue
            givers = [
                one for one in self._lanes.values() if one.idle > 0 and one.goal > taker.first_share
            ]
            if givers:
                self._move(max(givers, key=lambda one: one.idle), taker)
                return True
        return False

    def _move(self, giver: _Lane | None, taker: _Lane) -> None:
        if giver is not None:
            giver.goal -= 1
            if not giver.goal and giver.is_hungry:
                self._begin_to_wait(giver)
        if not taker.goal:
            taker.has_used, taker.unused_words = False, 0
        taker.goal += 1
        if taker.tasks:
            taker.tasks -= 1

    def _begin_to_wait(self, lane: _Lane) -> None:
        self._turns += 1
        lane.waits_since = self._turns

    # -- what is told of it -----------------------------------------------------------------

    def _spare(self) -> int:
        return self.max_parallel - sum(one.reach for one in self._lanes.values())

    def _possible(self, lane: _Lane) -> int:
        """The goal, as far as Rule 1 allows it now."""
        return min(lane.goal, max(lane.told, lane.reach + self._spare()))

    def _tell(self) -> None:
        for one in self._lanes.values():
            self._give_up(one)
        for one in self._lanes.values():
            if one.is_open and not one.is_awaited and (slots := self._possible(one)) != one.told:
                self._change(one, slots)

    def _give_up(self, lane: _Lane) -> None:
        """Rule 7."""
        if not lane.is_open and lane.has_session and lane.goal < lane.counted:
            lane.has_session = False
            lane.told = lane.counted = 0
            self._given_up.append(lane.number)

    def _change(self, lane: _Lane, slots: int) -> None:
        lane.told = slots
        lane.counted = max(lane.counted, slots)
        lane.is_awaited = True
        self._changes.append(SlotsChange(lane.number, slots))


def _is_fuller(giver: _Lane, taker: _Lane) -> bool:
    """Whether the giver still has more for its runs when it has given one (Rule 5)."""
    if not giver.is_hungry or giver.goal <= 1:
        return False
    return not taker.goal or giver.goal * taker.runs > (taker.goal + 1) * giver.runs
