"""The ready queue: fair shares, priorities, sleeping demands, replaced tickets, delays."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.flows import Entry
from astraflow.core.dispatch.queue import ReadyQueue
from astraflow.core.ids import RunId


def demand(tenant: str = "acme", **fields: Any) -> Demand:
    return Demand(tenant, fields.pop("package", "pkg"), "1.0", "t.node", **fields)


def push(queue: ReadyQueue, run: str, task: int, tenant: str = "acme", **fields: Any) -> None:
    wanted = fields.pop("demand", None) or demand(tenant)
    queue.push(RunId(run), task, wanted, **fields)
    queue.check()


def serve(queue: ReadyQueue, count: int = 1_000_000) -> list[tuple[str, int]]:
    """Place up to so many tasks, in the queue's order."""
    order: list[tuple[str, int]] = []
    while len(order) < count and (entry := queue.next()) is not None:
        order.append((entry.run_id, entry.task))
        queue.served(entry)
        queue.check()
    return order


def first(queue: ReadyQueue) -> Entry:
    entry = queue.next()
    assert entry is not None
    return entry


@pytest.fixture
def queue() -> ReadyQueue:
    return ReadyQueue()


def test_an_empty_queue_has_nothing_next(queue: ReadyQueue) -> None:
    assert queue.next() is None
    assert len(queue) == 0
    assert queue.deadline() is None


def test_tasks_of_a_run_are_served_oldest_first(queue: ReadyQueue) -> None:
    for task in (2, 0, 1):
        push(queue, "r1", task)
    assert serve(queue) == [("r1", 2), ("r1", 0), ("r1", 1)]
    assert len(queue) == 0


def test_a_higher_priority_is_served_before_an_older_task_of_its_run(queue: ReadyQueue) -> None:
    push(queue, "r1", 0)
    push(queue, "r1", 1, priority=5)
    push(queue, "r1", 2, priority=9)
    assert serve(queue) == [("r1", 2), ("r1", 1), ("r1", 0)]


def test_a_priority_gives_a_run_no_larger_share(queue: ReadyQueue) -> None:
    for task in range(3):
        push(queue, "r1", task)
        push(queue, "r2", task, priority=100)
    served = serve(queue, 4)
    assert sorted(run for run, _ in served) == ["r1", "r1", "r2", "r2"]


class TestFairShare:
    def test_a_small_run_is_not_delayed_by_a_large_one(self, queue: ReadyQueue) -> None:
        """1,000 tasks of `big` are queued first; `small` then gets every second turn."""
        for task in range(1000):
            queue.push(RunId("big"), task, demand())
        for task in range(3):
            push(queue, "small", task)
        served = serve(queue, 7)
        assert [run for run, _ in served].count("small") == 3
        assert len(queue) == 1000 + 3 - 7

    def test_a_run_that_comes_late_gets_its_share_and_no_credit_for_the_past(self) -> None:
        queue = ReadyQueue()
        for task in range(100):
            queue.push(RunId("old"), task, demand())
        serve(queue, 50)
        for task in range(100):
            queue.push(RunId("new"), task, demand())
        served = [run for run, _ in serve(queue, 20)]
        assert abs(served.count("new") - served.count("old")) <= 2

    def test_two_tenants_share_evenly_however_many_runs_each_has(self, queue: ReadyQueue) -> None:
        for number in range(10):
            for task in range(10):
                queue.push(RunId(f"a{number}"), task, demand())
        for task in range(20):
            queue.push(RunId("b"), task, demand("other"))
        served = [run for run, _ in serve(queue, 40)]
        assert served.count("b") == 20

    def test_a_tenant_with_twice_the_weight_gets_twice_the_share(self, queue: ReadyQueue) -> None:
        queue.set_weight("acme", 2.0)
        for task in range(100):
            queue.push(RunId("a"), task, demand())
            queue.push(RunId("b"), task, demand("other"))
        served = [run for run, _ in serve(queue, 30)]
        assert served.count("a") == 20

    def test_runs_share_also_across_different_demands(self, queue: ReadyQueue) -> None:
        """`r1` is served through one class; its entry in the other is then found with an old tag."""
        other = demand(package="other")
        for task in range(4):
            push(queue, "r1", task)
        push(queue, "r1", 9, demand=other)
        for task in range(3):
            push(queue, "r2", task, demand=other)
        served = [run for run, _ in serve(queue, 6)]
        assert served.count("r1") == 3
        assert served.count("r2") == 3

    def test_what_is_dropped_is_not_charged(self, queue: ReadyQueue) -> None:
        for task in range(4):
            push(queue, "r1", task)
        for task in range(2):
            push(queue, "r2", task)
        for _ in range(2):
            entry = first(queue)
            assert entry.run_id == "r1"
            queue.drop(entry)
            queue.check()
        assert sorted(serve(queue, 2)) == [("r1", 2), ("r2", 0)]


class TestSleeping:
    def test_it_has_candidates_from_a_push_or_a_wake_until_next_finds_none(self) -> None:
        queue = ReadyQueue()
        seen = [queue.has_candidates]
        push(queue, "r1", 0)
        seen.append(queue.has_candidates)
        queue.sleep(first(queue), "a place")
        assert queue.next() is None
        seen.append(queue.has_candidates)
        queue.wake("a place")
        seen.append(queue.has_candidates)
        assert seen == [False, True, False, True]

    def test_a_class_without_a_place_is_passed_over_until_it_is_woken(self) -> None:
        queue = ReadyQueue()
        other = demand(package="other")
        push(queue, "r1", 0)
        push(queue, "r1", 1)
        push(queue, "r1", 2, demand=other)
        queue.sleep(first(queue), "a place")
        queue.check()
        had_sleepers = queue.has_sleepers
        assert had_sleepers
        assert serve(queue) == [("r1", 2)]
        queue.wake("something else")
        assert queue.next() is None
        queue.wake("a place")
        queue.check()
        assert not queue.has_sleepers
        assert serve(queue) == [("r1", 0), ("r1", 1)]

    def test_a_task_that_joins_a_sleeping_class_sleeps_too(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0)
        queue.sleep(first(queue), "a place")
        push(queue, "r2", 0)
        assert queue.next() is None
        assert queue.sleeping_demands() == [demand()]
        assert [entry.run_id for entry in queue.first_of_runs(demand())] == ["r1", "r2"]

    def test_one_task_of_each_run_speaks_for_a_sleeping_class(self, queue: ReadyQueue) -> None:
        for task in range(3):
            push(queue, "r1", task)
            push(queue, "r2", task, priority=task)
        queue.sleep(first(queue), "a place")
        assert [(one.run_id, one.task) for one in queue.first_of_runs(demand())] == [
            ("r1", 0),
            ("r2", 2),
        ]
        queue.forget(RunId("r1"), 0)
        assert [(one.run_id, one.task) for one in queue.first_of_runs(demand())] == [
            ("r1", 1),
            ("r2", 2),
        ]

    def test_waiting_with_a_demand_are_all_of_its_live_tasks_oldest_first(self) -> None:
        queue = ReadyQueue()
        push(queue, "r2", 0)
        push(queue, "r1", 0, priority=9)
        push(queue, "r1", 1)
        queue.forget(RunId("r1"), 1)
        waiting = queue.waiting_with(demand())
        assert [(one.run_id, one.task) for one in waiting] == [("r2", 0), ("r1", 0)]
        assert queue.waiting_with(demand(package="other")) == []


class TestTickets:
    def test_a_forgotten_task_is_not_served(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0)
        push(queue, "r1", 1)
        queue.forget(RunId("r1"), 0)
        queue.check()
        assert len(queue) == 1
        assert serve(queue) == [("r1", 1)]
        queue.forget(RunId("r1"), 7)

    def test_queueing_again_replaces_the_ticket(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0)
        push(queue, "r1", 1)
        push(queue, "r1", 0)
        assert len(queue) == 2
        assert serve(queue) == [("r1", 1), ("r1", 0)]

    def test_a_task_can_change_its_demand_by_being_queued_again(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0)
        pinned = demand(pin="w1")
        push(queue, "r1", 0, demand=pinned)
        entry = first(queue)
        assert entry.demand == pinned
        assert serve(queue) == [("r1", 0)]
        assert queue.next() is None

    def test_a_class_whose_tasks_were_all_forgotten_leaves_nothing_behind(self) -> None:
        queue = ReadyQueue()
        push(queue, "r1", 0)
        queue.sleep(first(queue), "a place")
        queue.forget(RunId("r1"), 0)
        queue.wake("a place")
        assert queue.next() is None
        queue.check()
        push(queue, "r1", 0)
        assert serve(queue) == [("r1", 0)]

    def test_an_entry_that_died_between_next_and_drop_is_dropped_all_the_same(self) -> None:
        queue = ReadyQueue()
        push(queue, "r1", 0)
        entry = first(queue)
        queue.forget(RunId("r1"), 0)
        queue.drop(entry)
        queue.check()
        assert queue.next() is None

    def test_only_what_next_gave_may_be_taken_out(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0)
        entry = first(queue)
        push(queue, "r1", 1, priority=9)
        with pytest.raises(AssertionError, match="only the entry that `next` gave"):
            queue.drop(entry)


class TestDelays:
    def test_a_delayed_task_is_in_no_class_before_its_time(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0, ready_at=10.0)
        push(queue, "r1", 1, ready_at=5.0)
        assert len(queue) == 2
        assert queue.deadline() == 5.0
        queue.advance(4.9)
        assert queue.next() is None
        queue.advance(5.0)
        queue.check()
        assert queue.deadline() == 10.0
        assert serve(queue) == [("r1", 1)]
        queue.advance(10.0)
        assert serve(queue) == [("r1", 0)]
        assert queue.deadline() is None

    def test_a_delay_that_was_replaced_or_forgotten_does_not_ring(self, queue: ReadyQueue) -> None:
        push(queue, "r1", 0, ready_at=5.0)
        push(queue, "r1", 0, ready_at=8.0)
        push(queue, "r1", 1, ready_at=6.0)
        queue.forget(RunId("r1"), 1)
        assert queue.deadline() == 8.0
        push(queue, "r1", 2, ready_at=9.0)
        queue.forget(RunId("r1"), 2)
        queue.advance(20.0)
        queue.check()
        assert serve(queue) == [("r1", 0)]


def test_a_task_behind_one_that_needs_no_place_any_more_is_among_the_sleepers() -> None:
    queue = ReadyQueue()
    push(queue, "run1", 0)
    push(queue, "run1", 1)
    queue.sleep(first(queue), "package")
    queue.forget(RunId("run1"), 0)
    assert [entry.task for entry in queue.first_of_runs(demand())] == [1]
    queue.check()
    queue.forget(RunId("run1"), 1)
    assert queue.first_of_runs(demand()) == []
    assert queue.first_of_runs(demand("nobody")) == []
    queue.check()


def test_tasks_that_are_queued_together_are_served_as_if_queued_one_by_one() -> None:
    together, apart = ReadyQueue(), ReadyQueue()
    for queue in (together, apart):
        push(queue, "r1", 0, priority=1)
        push(queue, "r2", 0)
    together.push_all(RunId("r1"), [3, 1, 2], demand(), priority=2)
    together.push_all(RunId("r1"), [4], demand(package="other"))
    together.check()
    for task in (3, 1, 2):
        push(apart, "r1", task, priority=2)
    push(apart, "r1", 4, demand=demand(package="other"))
    assert len(together) == len(apart) == 6
    assert serve(together) == serve(apart)


def test_tasks_in_a_row_have_entries_one_after_the_other(queue: ReadyQueue) -> None:
    queue.push_all(RunId("r1"), range(10), demand())
    push(queue, "r1", 10)
    assert len(queue) == 11
    assert sum(map(len, queue._entries.values())) == 2
    assert serve(queue, 3) == [("r1", 0), ("r1", 1), ("r1", 2)]
    push(queue, "r1", 3, priority=1)
    queue.forget(RunId("r1"), 3)
    queue.forget(RunId("r1"), 4)
    queue.forget(RunId("r1"), 6)
    queue.check()
    assert serve(queue) == [("r1", task) for task in (5, 7, 8, 9, 10)]
    assert len(queue) == 0


def test_a_task_in_a_row_is_found_and_can_be_queued_again(queue: ReadyQueue) -> None:
    queue.push_all(RunId("r1"), range(20), demand())
    entry = queue.find(RunId("r1"), 7)
    assert entry is not None
    assert (entry.task, entry.demand, entry.lock, entry.ready_at) == (7, demand(), None, None)
    assert queue.find(RunId("r1"), 20) is None
    assert queue.find(RunId("r2"), 7) is None
    push(queue, "r1", 7)
    queue.set_demand(RunId("r1"), 8, sticky="w1")
    queue.check()
    assert [one.task for one in queue.waiting_with(demand(sticky="w1"))] == [8]
    assert [one.task for one in queue.waiting_with(demand())] == [*range(7), *range(9, 20), 7]
    for task in range(20):
        queue.forget(RunId("r1"), task)
        queue.check()
    assert queue.next() is None


def test_rows_that_were_forgotten_in_part_can_be_queued_together_again(queue: ReadyQueue) -> None:
    queue.push_all(RunId("r1"), [*range(100, 110), 50, *range(10)], demand())
    queue.check()
    for task in range(2, 9):
        queue.forget(RunId("r1"), task)
    queue.push_all(RunId("r1"), range(2, 9), demand())
    queue.push_all(RunId("r1"), range(20, 40), demand())
    queue.check()
    expected = [*range(100, 110), 50, 0, 1, 9, *range(2, 9), *range(20, 40)]
    assert serve(queue) == [("r1", task) for task in expected]


def test_a_row_behind_a_task_that_needs_no_place_is_among_the_sleepers(queue: ReadyQueue) -> None:
    queue.push_all(RunId("r1"), range(10), demand())
    queue.sleep(first(queue), "room")
    queue.forget(RunId("r1"), 0)
    assert [one.task for one in queue.first_of_runs(demand())] == [1]
    queue.forget_run(RunId("r1"))
    queue.check()
    assert len(queue) == 0
    assert queue.first_of_runs(demand()) == []


def test_tasks_that_are_queued_together_sleep_and_wake_together(queue: ReadyQueue) -> None:
    queue.push_all(RunId("r1"), [0, 1, 2], demand())
    queue.sleep(first(queue), "room")
    assert queue.next() is None
    queue.wake("room")
    queue.forget(RunId("r1"), 1)
    queue.check()
    assert serve(queue) == [("r1", 0), ("r1", 2)]
