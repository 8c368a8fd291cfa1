"""How a worker divides its slots among lanes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.agent.slots import SlotDivision
from astraflow.core.protocol.control import HOME_LANE as HOME


def told(slots: SlotDivision) -> dict[int, int]:
    """What the lanes are told now; each answers at once."""
    said: dict[int, int] = {}
    while changes := slots.take_changes():
        for lane, count in changes:
            said[lane] = count
            slots.answered(lane)
            slots.check()
    return said


def divided(max_parallel: int, lanes: int) -> SlotDivision:
    """A worker whose lanes all have registered and have no work."""
    slots = SlotDivision(max_parallel)
    for lane in range(1, lanes):
        slots.add(lane)
    for lane in range(1, lanes):
        slots.registered(lane)
        slots.opened(lane, is_resumed=False)
        told(slots)
    return slots


def counts(slots: SlotDivision, lanes: int) -> list[int]:
    return [slots.registered(lane) for lane in range(lanes)]


def test_a_worker_with_one_lane_gives_it_everything_and_says_nothing() -> None:
    slots = SlotDivision(8)
    slots.held(HOME, 8)
    slots.hungry(HOME, 5, 2)
    assert slots.take_changes() == []
    assert slots.registered(HOME) == 8


@pytest.mark.parametrize(
    ("max_parallel", "lanes", "shares"),
    [
        (8, 4, [2, 2, 2, 2]),
        (8, 3, [4, 2, 2]),
        (4, 4, [1, 1, 1, 1]),
        (2, 4, [1, 1, 0, 0]),
    ],
)
def test_idle_lanes_have_equal_shares(max_parallel: int, lanes: int, shares: list[int]) -> None:
    assert counts(divided(max_parallel, lanes), lanes) == shares


def test_a_lane_registers_with_nothing_until_the_home_has_given_slots_up() -> None:
    slots = SlotDivision(8)
    slots.add(1)
    assert slots.registered(1) == 0
    assert slots.take_changes() == [(HOME, 4)]
    slots.opened(1, is_resumed=False)
    assert slots.take_changes() == []
    slots.answered(HOME)
    assert slots.take_changes() == [(1, 4)]


def test_a_busy_home_keeps_what_runs_and_gives_what_ends() -> None:
    slots = SlotDivision(4)
    slots.held(HOME, 4)
    slots.add(1)
    slots.registered(1)
    slots.opened(1, is_resumed=False)
    assert slots.take_changes() == [], "nothing waits in the other lane"
    slots.hungry(1, 3, 1)
    assert slots.take_changes() == []
    slots.held(HOME, 3)
    assert slots.take_changes() == [(HOME, 3)]
    slots.answered(HOME)
    assert slots.take_changes() == [(1, 1)]


def test_a_change_waits_for_the_answer_to_the_one_before() -> None:
    slots = divided(8, 2)
    slots.hungry(1, 1, 1)
    assert slots.take_changes() == [(HOME, 3)]
    slots.hungry(1, 3, 1)
    assert slots.take_changes() == []
    slots.answered(HOME)
    assert slots.take_changes() == [(HOME, 1), (1, 5)]


def test_no_more_is_given_than_tasks_wait() -> None:
    slots = divided(8, 2)
    slots.held(1, 4)
    slots.hungry(1, 2, 1)
    assert told(slots) == {HOME: 2, 1: 6}
    slots.held(1, 6)
    assert told(slots) == {HOME: 1, 1: 7}, "it uses all it has, and has not said that nothing waits"
    slots.hungry(1, 0, 0)
    slots.held(1, 7)
    assert told(slots) == {}


def test_hungry_lanes_have_slots_in_proportion_to_their_runs() -> None:
    slots = divided(12, 2)
    for lane in (0, 1):
        slots.held(lane, 6)
    for lane in (0, 1):
        slots.hungry(lane, 100, 10)
    assert told(slots) == {}
    slots.hungry(1, 100, 30)
    assert told(slots) == {HOME: 3}
    slots.held(HOME, 5)
    assert told(slots) == {1: 7}
    slots.held(HOME, 3)
    assert told(slots) == {1: 9}
    slots.held(1, 9)
    for runs in (29, 31, 28, 30):
        slots.hungry(1, 100, runs)
        assert told(slots) == {}, "a small change of the runs moves nothing"


def test_a_hungry_lane_has_a_slot_however_few_runs_it_has() -> None:
    slots = divided(4, 2)
    slots.hungry(HOME, 100, 1000)
    told(slots)
    slots.held(HOME, 4)
    assert counts(slots, 2) == [4, 0]
    slots.hungry(1, 1, 1)
    assert told(slots) == {HOME: 3}
    slots.held(HOME, 3)
    assert told(slots) == {1: 1}
    slots.held(1, 1)
    slots.hungry(1, 5, 1)
    slots.hungry(HOME, 100, 2000)
    assert told(slots) == {}


def test_one_slot_goes_round_when_it_has_been_used() -> None:
    slots = divided(1, 3)
    served = []
    slots.held(HOME, 1)
    for lane in range(3):
        slots.hungry(lane, 100, 10 - lane)
    now = HOME
    for _ in range(6):
        assert now not in told(slots) or counts(slots, 3)[now] == 0
        slots.held(now, 0)
        said = told(slots)
        now = max(said, key=lambda one: said[one])
        served.append(now)
        slots.held(now, 1)
    assert served == [1, 0, 2, 1, 0, 2], "who has waited longest is next"


def test_a_lane_that_does_not_use_its_turn_loses_it() -> None:
    slots = divided(1, 2)
    slots.hungry(HOME, 5, 1)
    slots.hungry(1, 5, 1)
    slots.held(HOME, 1)
    told(slots)
    slots.held(HOME, 0)
    assert told(slots) == {1: 1}
    slots.hungry(1, 5, 1)
    assert told(slots) == {}
    slots.hungry(1, 5, 1)
    assert told(slots) == {1: 0, HOME: 1}


def test_a_lane_without_slots_gets_one_that_is_idle() -> None:
    slots = divided(4, 2)
    slots.hungry(HOME, 2, 1)
    slots.held(HOME, 4)
    told(slots)
    assert counts(slots, 2) == [4, 0]
    slots.hungry(HOME, 0, 0)
    slots.held(HOME, 3)
    assert told(slots) == {HOME: 3, 1: 1}
    slots.held(HOME, 0)
    assert told(slots) == {}, "one is enough without hunger"


def test_a_lost_lane_keeps_its_slots_while_nobody_wants_them() -> None:
    slots = divided(4, 2)
    slots.lost(1, has_session=True)
    slots.held(HOME, 2)
    assert told(slots) == {}
    assert slots.take_given_up() == []
    slots.opened(1, is_resumed=True)
    assert slots.take_changes() == [(1, 2)], "slots are told on each connection"


def test_the_session_of_a_lost_lane_is_given_up_when_its_slots_are_wanted() -> None:
    slots = divided(4, 2)
    slots.held(1, 1)
    slots.lost(1, has_session=True)
    slots.held(HOME, 2)
    slots.hungry(HOME, 9, 1)
    assert slots.take_given_up() == [1]
    assert told(slots) == {HOME: 3}, "one attempt of the lost lane still runs"
    slots.lost(1, has_session=False)
    assert slots.registered(1) == 1
    slots.opened(1, is_resumed=False)
    slots.held(1, 0)
    slots.held(HOME, 3)
    assert told(slots) == {1: 0, HOME: 4}


def test_what_was_not_answered_counts_until_the_session_is_given_up() -> None:
    slots = divided(4, 2)
    slots.held(1, 2)
    slots.hungry(1, 2, 1)
    assert slots.take_changes() == [(HOME, 0)]
    slots.lost(HOME, has_session=True)
    assert slots.take_given_up() == [HOME]
    assert told(slots) == {1: 4}
    assert slots.registered(HOME) == 0


def test_a_session_that_is_over_holds_no_slots_and_its_next_one_gets_them_back() -> None:
    slots = divided(4, 2)
    slots.lost(1, has_session=False)
    assert slots.take_given_up() == []
    assert slots.registered(1) == 2
    slots.lost(1, has_session=False)
    slots.opened(1, is_resumed=True)
    assert slots.take_changes() == [(1, 2)]


def test_a_lane_that_ends_gives_back_what_it_does_not_hold() -> None:
    slots = divided(8, 3)
    slots.held(2, 1)
    slots.end(2)
    slots.hungry(2, 5, 5)
    said = told(slots)
    assert said[2] == 1
    assert counts(slots, 2) == [4, 3]
    slots.held(2, 0)
    told(slots)
    slots.remove(2)
    told(slots)
    assert counts(slots, 2) == [4, 4]


def test_more_attempts_than_slots_take_nothing_from_others() -> None:
    """A dispatch that was decided before the answer may come after it."""
    slots = divided(2, 2)
    slots.held(HOME, 1)
    slots.held(1, 2)
    slots.hungry(HOME, 1, 1)
    assert told(slots) == {}
    slots.held(1, 0)
    assert told(slots) == {1: 0, HOME: 2}


def test_what_a_lane_holds_too_many_of_is_taken_from_idle_slots() -> None:
    """An attempt whose call was answered takes a slot again, whether or not its lane has one. An idle slot of a third
    lane could be used by nobody meanwhile, since all slots are reached."""
    slots = divided(2, 3)
    slots.held(HOME, 1)
    slots.hungry(2, 1, 1)
    assert told(slots) == {1: 0, 2: 1}
    slots.hungry(2, 0, 0)
    slots.held(1, 1)
    assert told(slots) == {2: 0, 1: 1}
    slots.hungry(2, 1, 1)
    assert told(slots) == {}, "now all slots are used"
    slots.held(1, 0)
    assert told(slots) == {1: 0, 2: 1}


# -- random worlds ---------------------------------------------------------------------------------


class Scheduler:
    """The engine of one lane, with a connection that delivers in order, late, or not at all."""

    def __init__(self, slots: int = 0) -> None:
        self.slots = slots
        self.used = 0
        self.waiting = 0
        self.is_open = False
        self.knows_session = False
        self.to_worker: list[tuple[str, int]] = []
        self.to_scheduler: list[tuple[str, int]] = []
        self.last_hunger = 0
        self.started = 0
        self.calling = 0
        """Attempts that wait for what they called: each lends its slot."""

    def act(self) -> None:
        """Dispatch what there is a slot for, and tell hunger when it is news."""
        if not self.is_open:
            return
        while self.waiting and self.used < self.slots:
            self.waiting -= 1
            self.used += 1
            self.to_worker.append(("dispatch", 1))
        hunger = self.waiting if self.used >= self.slots else 0
        if (hunger == 0) != (self.last_hunger == 0) or hunger >= 2 * self.last_hunger > 0:
            self.tell_hunger()

    def tell_hunger(self) -> None:
        self.last_hunger = self.waiting if self.used >= self.slots else 0
        self.to_worker.append(("hunger", self.last_hunger))


class World:
    """One worker and the engines of its lanes."""

    def __init__(self, max_parallel: int, lanes: int, rng: Random) -> None:
        self.rng = rng
        self.max_parallel = max_parallel
        self.slots = SlotDivision(max_parallel)
        self.lanes = [Scheduler() for _ in range(lanes)]
        self.held = [0] * lanes
        self.lent = [0] * lanes
        self.returned = [0] * lanes
        """Attempts that took a slot again: so many more may be held than there are slots."""
        home = self.lanes[HOME]
        home.slots, home.is_open, home.knows_session = max_parallel, True, True
        for lane in range(1, lanes):
            self.slots.add(lane)
        self.messages = 0

    def check(self) -> None:
        self.slots.check()
        self.returned = [*map(min, self.returned, self.held)]
        returned = sum(self.returned)
        assert sum(self.held) - returned <= self.max_parallel, "more runs than there are slots"

    def pump(self) -> None:
        for lane in self.slots.take_given_up():
            self.lanes[lane].knows_session = False
        for lane, count in self.slots.take_changes():
            self.messages += 1
            if self.lanes[lane].is_open:
                self.lanes[lane].to_scheduler.append(("slots", count))
        self.check()

    def connect(self, lane: int) -> None:
        one = self.lanes[lane]
        if one.is_open:
            return
        if one.knows_session:
            one.is_open = True
            self.slots.opened(lane, is_resumed=True)
        else:
            # A new session: what was on the way to the worker is lost, and is known to be.
            one.to_worker.clear()
            one.to_scheduler.clear()
            one.slots = self.slots.registered(lane)
            lost = one.used - self.held[lane]
            one.used, one.waiting = self.held[lane], one.waiting + max(0, lost)
            one.calling = self.lent[lane]
            one.is_open = one.knows_session = True
            self.slots.opened(lane, is_resumed=False)
        one.last_hunger = 0
        one.act()
        self.pump()

    def cut(self, lane: int, *, keeps_session: bool) -> None:
        one = self.lanes[lane]
        one.is_open = False
        one.knows_session = one.knows_session and keeps_session
        # Frames with a number are sent again on the next connection of the session; the others are lost.
        one.to_worker = [word for word in one.to_worker if word[0] in ("dispatch", "return")]
        one.to_scheduler = [word for word in one.to_scheduler if word[0] in ("result", "call")]
        self.slots.lost(lane, has_session=one.knows_session)
        self.pump()

    def deliver_to_worker(self, lane: int) -> bool:
        one = self.lanes[lane]
        if not one.is_open or not one.to_worker:
            return False
        word, count = one.to_worker.pop(0)
        if word == "dispatch":
            self.held[lane] += 1
            one.started += 1
            self.slots.held(lane, self.held[lane])
        elif word == "return":
            self.lent[lane] -= 1
            self.held[lane] += 1
            self.returned[lane] += 1
            self.slots.held(lane, self.held[lane])
        elif word == "hunger":
            self.slots.hungry(lane, count, 1 + count // 3)
        else:
            self.slots.answered(lane)
        self.pump()
        return True

    def deliver_to_scheduler(self, lane: int) -> bool:
        one = self.lanes[lane]
        if not one.is_open or not one.to_scheduler:
            return False
        word, count = one.to_scheduler.pop(0)
        if word == "slots":
            one.slots = count
            one.to_worker.append(("answer", 0))
        else:
            one.used -= 1
            one.calling += word == "call"
        one.act()
        return True

    def finish(self, lane: int) -> None:
        if self.held[lane]:
            self.held[lane] -= 1
            self.lanes[lane].to_scheduler.append(("result", 1))
            self.slots.held(lane, self.held[lane])
            self.pump()

    def call(self, lane: int) -> None:
        if self.held[lane]:
            self.held[lane] -= 1
            self.lent[lane] += 1
            self.lanes[lane].to_scheduler.append(("call", 1))
            self.slots.held(lane, self.held[lane])
            self.pump()

    def answer_call(self, lane: int) -> None:
        """The attempt goes on, whether or not there is a slot for it."""
        one = self.lanes[lane]
        if one.calling:
            one.calling -= 1
            one.used += 1
            one.to_worker.append(("return", 1))

    def step(self) -> None:
        lane = self.rng.randrange(len(self.lanes))
        one = self.lanes[lane]
        what = self.rng.random()
        if what < 0.3:
            self.deliver_to_worker(lane)
        elif what < 0.6:
            self.deliver_to_scheduler(lane)
        elif what < 0.68:
            self.finish(lane)
        elif what < 0.72:
            self.call(lane)
        elif what < 0.75:
            self.answer_call(lane)
        elif what < 0.83:
            one.waiting += self.rng.choice((1, 1, 2, 9))
            one.act()
        elif what < 0.84:  # all is cancelled
            one.waiting = 0
            one.act()
        elif what < 0.94:
            self.connect(lane)
        elif what < 0.97:
            if one.is_open:
                self.cut(lane, keeps_session=self.rng.random() < 0.7)
        elif one.is_open:
            one.tell_hunger()

    def settle(self) -> None:
        """Deliver everything; heartbeats repeat the hunger."""
        for lane in range(len(self.lanes)):
            self.connect(lane)
        for lane in range(len(self.lanes)):
            self.lanes[lane].tell_hunger()
        for _ in range(10_000):
            moved = [
                deliver(lane)
                for lane in range(len(self.lanes))
                for deliver in (self.deliver_to_worker, self.deliver_to_scheduler)
            ]
            if not any(moved):
                return
        raise AssertionError("slots move for ever although nothing changes")


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(2, 5), st.integers(0, 2**32))
def test_in_random_worlds_slots_are_conserved_and_every_hungry_lane_is_served(
    max_parallel: int, lanes: int, seed: int
) -> None:
    world = World(max_parallel, lanes, Random(seed))
    for _ in range(400):
        world.step()
    world.settle()
    world.settle()  # what was told in turns is known to all now
    before = world.messages
    world.settle()
    assert world.messages == before, "slots move although nothing has changed"
    hungry = {lane for lane, one in enumerate(world.lanes) if one.waiting}
    if hungry:
        held = sum(world.held)
        assert held >= max_parallel, "no slot is idle while something waits"
    # Attempts end one after the other; nothing new comes into the lanes, which have enough.
    for one in world.lanes:
        if one.waiting:
            one.waiting += 1000
    started = [one.started for one in world.lanes]
    for _ in range(lanes + 1):
        for lane in range(lanes):
            for _ in range(world.held[lane]):
                world.finish(lane)
        world.settle()
    for lane in hungry:
        assert world.lanes[lane].started > started[lane], (
            f"lane {lane} is hungry and starts nothing"
        )
