"""A scheduler that starts from its store restores every task in its state."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core.agent.actions import InterruptAttempt
from astraflow.core.ids import TaskId
from astraflow.core.protocol.wire import AttemptRef
from astraflow.core.runs.facts import (
    AttemptLost,
    AttemptStarted,
    CancelRequested,
    RunFinished,
    StopRequested,
    TaskCancelled,
    TaskFailed,
    TaskSucceeded,
)
from astraflow.core.workflow.plan import AffinityHint
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.plans import make_plan, retrying


def test_a_ready_task_is_placed_after_the_restart(rig: Rig) -> None:
    rig.submit(make_plan(2, [(0, 1)]))
    rig.restart()
    worker = rig.worker()
    assert worker.tasks() == [("run1.0", 1)]
    worker.finish()
    worker.finish()
    assert rig.facts()[-1] == RunFinished(rig.at, "succeeded")


def test_tasks_wait_in_the_same_order_after_the_restart(rig: Rig) -> None:
    plan = make_plan(9)
    changes: dict[int, dict[str, object]] = {
        2: {"priority": 1},
        3: {"priority": 1},
        4: {"concurrency_key": "one at a time"},
        5: {"type": "core.other"},
        7: {"affinity": AffinityHint("place", "sticky")},
    }
    nodes = [
        msgspec.structs.replace(node, **changes.get(place, {}))
        for place, node in enumerate(plan.nodes)
    ]
    rig.submit(msgspec.structs.replace(plan, nodes=tuple(nodes)))

    def waiting() -> list[tuple[int, int, object, object, object]]:
        queue = rig.engine.view.queue
        entries = [entry for demand in queue.demands() for entry in queue.waiting_with(demand)]
        entries.sort(key=lambda entry: entry.ticket)
        return [(one.task, one.rank, one.demand, one.lock, one.affinity) for one in entries]

    before = waiting()
    assert len(before) == 9
    rig.restart()
    assert waiting() == before
    rig.engine.view.queue.check()


def test_a_running_attempt_goes_on_and_its_report_counts(rig: Rig, worker: Worker) -> None:
    """
    worker                            scheduler
    runs run1.0 #1                    dies, starts again with an empty memory
    resume                  ─────▶    unknown session
    register (inflight #1)  ─────▶    rebound
    result                  ─────▶    succeeded, by attempt 1
    """
    rig.submit(make_plan(2, [(0, 1)], reads=True))
    rig.wait(0.1)
    rig.restart()
    rig.wait(3.0)
    assert len(rig.engine.view.leases) == 1
    worker.finish(value="x")
    assert worker.tasks() == [("run1.0", 1), ("run1.1", 1)]
    assert msgspec.json.decode(worker.started[1].parameters) == {"from0": "x"}
    worker.finish()
    assert rig.facts()[-1] == RunFinished(rig.at, "succeeded")


def test_a_leased_attempt_is_not_withdrawn_by_an_owner_that_did_not_send_it(rig: Rig) -> None:
    RawWorker(rig)
    rig.submit(make_plan(1))
    rig.new_facts()
    rig.restart()
    rig.wait(6.0)
    assert rig.new_facts() == []
    RawWorker(rig, inflight=(AttemptRef(TaskId("run1.0"), 1),))
    assert rig.new_facts() == [AttemptStarted(0, 0, 1)]


def test_a_restored_lease_counts_as_taken(rig: Rig) -> None:
    """Nobody is waited for to acknowledge it: it is not shown as such, and its worker's loss does not give it away."""
    RawWorker(rig)
    rig.submit(make_plan(1))
    rig.restart()
    [lease] = rig.engine.view.leases
    assert lease.is_taken
    raw = RawWorker(rig, "w2")
    rig.engine.closed(raw.conn, rig.now, rig.at)
    rig.wait(6.0)
    assert list(rig.engine.view.leases) == [lease]


def test_every_stored_lease_runs_for_its_full_length_from_the_restart_on(rig: Rig) -> None:
    worker = rig.worker()
    rig.submit(make_plan(1))
    rig.wait(25.0)
    worker.crash()
    rig.restart()
    rig.new_facts()
    restarted_at = rig.now
    rig.wait(29.9)
    assert rig.new_facts() == []
    rig.wait(0.2)
    [lost] = rig.new_facts()
    assert isinstance(lost, AttemptLost)
    assert rig.now >= restarted_at + 30.0


def test_a_lost_attempt_waits_for_its_delay_again(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1))
    rig.wait(0.1)
    worker.crash()
    rig.wait(29.95)
    assert isinstance(rig.facts()[-1], AttemptLost)
    rig.restart()
    other = rig.worker("w2")
    assert other.tasks() == []
    delay = next(fact.delay_s for fact in rig.facts() if isinstance(fact, AttemptLost))
    rig.wait(delay + 0.01)
    assert other.tasks() == [("run1.0", 2)]


def test_a_failed_attempt_waits_for_its_back_off_again(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1, nodes={0: retrying()}))
    worker.fail()
    rig.restart()
    rig.wait(0.9)
    assert worker.tasks() == [("run1.0", 1)]
    rig.wait(3.0)
    assert worker.tasks() == [("run1.0", 1), ("run1.0", 2)]
    assert worker.started[1].failures == 1


def test_a_stop_is_asked_for_again_and_is_overdue_at_its_time() -> None:
    rig = Rig(stop_overdue_s=5.0)
    worker = rig.worker()
    rig.submit(make_plan(1))
    rig.wait(0.1)
    worker.hears = False
    rig.cancel(grace_ms=4000)
    worker.hears = True
    rig.restart()
    rig.new_facts()
    rig.wait(3.0)
    assert worker.of(InterruptAttempt) == [InterruptAttempt(TaskId("run1.0"), 1, 4.0, "cancel")]
    rig.wait(5.9)
    assert rig.new_facts() == []
    rig.wait(0.2)
    failed, finished = rig.new_facts()
    assert isinstance(failed, TaskFailed)
    assert not failed.confirmed
    assert finished == RunFinished(0, "cancelled")


@pytest.mark.parametrize(
    ("passed_s", "left_s"), [(15.0, 5.0), (60.0, 0.0), (-3600.0, 20.0)], ids=str
)
def test_a_run_has_what_is_left_of_its_time_after_a_restart(
    rig: Rig, passed_s: float, left_s: float
) -> None:
    RawWorker(rig)
    rig.submit(make_plan(2), deadline_s=20.0)
    rig.at += int(passed_s * 1000)  # of the wall clock, while nobody was there
    rig.restart()
    rig.new_facts()
    assert rig.engine.view.timers.deadline() is not None
    if left_s:
        rig.wait(left_s - 0.1)
        assert CancelRequested not in rig.new_kinds()
    rig.wait(0.2)
    assert rig.new_kinds()[0] is CancelRequested


def test_a_run_whose_time_is_over_is_cancelled_before_anything_is_placed(rig: Rig) -> None:
    """The first thing that a new owner does is to place what can be placed: time is let pass after that."""
    rig.submit(make_plan(2), deadline_s=20.0)
    rig.at += 60_000
    rig.restart()
    batch = rig.engine.take_batch(rig.now, rig.at)
    assert batch is not None
    kinds = [type(one.fact) for one in batch.facts]
    assert kinds == [CancelRequested, TaskCancelled, TaskCancelled, RunFinished]


def test_timeouts_and_deadlines_count_from_the_restart_on(rig: Rig) -> None:
    RawWorker(rig)
    rig.submit(make_plan(1, nodes={0: {"timeout_s": 8.0}}), deadline_s=20.0)
    rig.restart()
    raw = RawWorker(rig, inflight=(AttemptRef(TaskId("run1.0"), 1),))
    rig.new_facts()
    for _ in range(4):
        rig.wait(3.3)
        raw.heartbeat(("run1.0", 1))
    assert rig.new_facts() == [StopRequested(0, 0, 1, "timeout", 30_000)]
    rig.wait(4.0)
    raw.heartbeat(("run1.0", 1))
    rig.wait(3.0)
    kinds = rig.new_kinds()
    assert kinds[0] is CancelRequested


def test_keys_and_affinities_of_held_attempts_are_held_again(rig: Rig) -> None:
    rig.worker("w1")
    node = {"concurrency_key": "k", "affinity": AffinityHint("a", "sticky")}
    rig.submit(make_plan(2, nodes={0: node, 1: node}))
    rig.restart()
    view = rig.engine.view
    assert not view.keys.is_free("acme", "k")
    record = view.affinity.lookup("acme", "a")
    assert record is not None
    assert record.worker_id == "w1"
    other = rig.worker("w2")
    rig.wait(3.0)
    assert other.tasks() == []
    rig.workers["acme/w1"].finish()
    assert rig.workers["acme/w1"].tasks() == [("run1.0", 1), ("run1.1", 1)]


def test_a_batch_that_was_not_committed_never_happened(rig: Rig, worker: Worker) -> None:
    """
    result → decided, and the commit fails: nobody was told, the worker still holds its report
    restart from the store → the report comes again and is committed once
    """
    rig.submit(make_plan(1))
    rig.wait(0.1)
    rig.commits = False
    worker.finish()
    rig.wait(1.0)
    assert worker.live.attempts.reports() != []
    rig.commits = True
    rig.restart()
    rig.wait(3.0)
    succeeded = [fact for fact in rig.facts() if isinstance(fact, TaskSucceeded)]
    assert len(succeeded) == 1
    assert worker.live.attempts.is_empty


def test_numbers_of_events_go_on_after_the_restart(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1))
    rig.wait(0.1)
    rig.restart()
    rig.wait(3.0)
    worker.finish()
    firsts = [one.first for one in rig.store]
    assert firsts == [1, 2, 3, 4, 5, 7]


def test_only_active_runs_are_restored(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1))
    worker.finish()
    with pytest.raises(AssertionError, match="only active runs"):
        rig.engine.restore(rig.plans["run1"], rig.facts(), rig.now, rig.at)
