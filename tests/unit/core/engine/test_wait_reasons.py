"""Why a task waits, as it is derived when somebody looks, and until when."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.engine.wait_reasons import Reason, Reasons
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.runs.facts import TaskWaiting
from astraflow.core.runs.states import Lost
from astraflow.core.workflow.plan import AffinityHint, ResourceRefValue
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.core.engine.test_calls import call
from tests.unit.plans import make_plan, retrying, wrapped

KEYED: dict[str, Any] = {"concurrency_key": "printer"}


def reason(rig: Rig, task: int = 0, run_id: str = "run1") -> Reason | None:
    return Reasons(rig.engine.view).of(rig.run_of(run_id), task)


def test_a_task_that_does_not_wait_has_no_reason(rig: Rig) -> None:
    rig.worker()
    rig.submit(make_plan(2, [(0, 1)]))
    assert [reason(rig, task) for task in (0, 1)] == [None, None]


def test_a_task_that_no_table_knows_has_no_reason(rig: Rig) -> None:
    rig.submit(make_plan(1))
    rig.engine.view.queue.forget(RunId("run1"), 0)
    assert reason(rig) is None


def test_a_task_without_a_slot_says_who_is_busy_and_stores_nothing(rig: Rig) -> None:
    rig.worker(slots=1)
    rig.submit(make_plan(3))
    rig.wait(3.0)
    assert [reason(rig, task) for task in (1, 2)] == [Reason("slot", "worker w1 is busy")] * 2
    assert not any(isinstance(fact, TaskWaiting) for fact in rig.facts())


def test_a_task_that_has_a_place_and_was_not_placed_yet_waits_for_its_turn(rig: Rig) -> None:
    rig.worker(slots=1)
    rig.submit(make_plan(1))
    rig.submit(make_plan(1), "run2")
    worker = rig.engine.view.workers.find("acme", "w1")
    assert worker is not None
    rig.engine.view.workers.free_slot(worker, "t.node")
    assert reason(rig, run_id="run2") == Reason("slot", "its turn")
    rig.engine.view.workers.take_slot(worker, "t.node")


class TestKeys:
    def test_a_taken_key_is_told_with_the_node_that_has_it(self, rig: Rig) -> None:
        rig.worker(slots=4)
        nodes = {0: KEYED, 1: KEYED}
        rig.submit(make_plan(2, nodes=nodes))
        rig.submit(make_plan(1, nodes={0: KEYED}), "run2")
        said = "node n0 of this run has the concurrency key printer"
        assert reason(rig, 1) == Reason("key", said, held_by=("run1", "n0"))
        said = "node n0 of run run1 has the concurrency key printer"
        assert reason(rig, 0, "run2") == Reason("key", said, held_by=("run1", "n0"))

    def test_a_holder_that_is_not_known_is_not_named(self, rig: Rig) -> None:
        rig.submit(make_plan(1, nodes={0: KEYED}))
        rig.engine.view.keys.take("acme", "printer", TaskId("another.0"))
        assert reason(rig) == Reason("key", "the concurrency key printer is in use")

    def test_a_free_key_is_no_reason(self, rig: Rig) -> None:
        rig.submit(make_plan(1, nodes={0: KEYED}))
        assert reason(rig) == Reason("worker", "no worker is online")


class TestNextTry:
    def test_a_retry_says_when(self, rig: Rig, worker: Worker) -> None:
        rig.submit(make_plan(1, nodes={0: retrying(3)}))
        worker.fail()
        assert reason(rig) == Reason("retry", "attempt 1 failed; failure 1 of 3", rig.now + 1.0)
        rig.wait(1.1)
        assert reason(rig) is None

    def test_a_refused_dispatch_says_when_it_is_tried_again(self, rig: Rig, raw: RawWorker) -> None:
        rig.submit(make_plan(1))
        raw.refuse("run1.0")
        found = reason(rig)
        assert found is not None
        assert (found.kind, found.detail) == ("dispatch", "no worker took it; try 1 of 5")
        assert found.until is not None
        assert rig.now < found.until <= rig.now + 0.2

    def test_a_refusal_that_does_not_count_is_told_without_a_number(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        raw.refuse("run1.0", code="E.CMD.CONCURRENCY_VIOLATION")
        found = reason(rig)
        assert found is not None
        assert (found.kind, found.detail) == ("dispatch", "no worker took it")

    def test_a_lost_attempt_says_when_the_next_one_is_made(self, rig: Rig, worker: Worker) -> None:
        rig.submit(make_plan(1))
        worker.crash()
        worker.boot()
        while not isinstance(rig.task().state, Lost):
            rig.wait(0.01)
        found = reason(rig)
        assert found is not None
        assert (found.kind, found.detail) == ("dispatch", "its worker was lost; loss 1 of 5")
        assert found.until is not None
        assert found.until > rig.now

    def test_after_its_delay_a_task_waits_for_what_all_wait_for(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(1, nodes={0: retrying(3)}))
        rig.submit(make_plan(1), "run2")
        worker.fail()
        rig.wait(2.0)
        assert reason(rig) == Reason("slot", "worker w1 is busy")


class TestAway:
    def test_a_resource_of_a_lost_worker_says_until_when_it_is_waited_for(self, rig: Rig) -> None:
        worker = rig.worker("w1", slots=1)
        rig.worker("w2")
        rig.submit(make_plan(1), "run0")
        node = {"resource_refs": (ResourceRefValue("r", "w1", "file"),)}
        rig.submit(make_plan(1, nodes={0: node}))
        heard = rig.now
        worker.crash()
        rig.wait(20.0)
        found = reason(rig)
        assert found is not None
        assert (found.kind, found.detail, found.held_by) == ("resource", "worker w1 is away", None)
        assert found.until is not None
        assert heard + 30.0 <= found.until <= rig.now + 30.0

    def test_a_sticky_key_of_a_lost_worker_says_until_when_it_binds(self, rig: Rig) -> None:
        worker = rig.worker("w1", slots=1)
        rig.worker("w2")
        node = {"affinity": AffinityHint("model", "sticky")}
        rig.submit(make_plan(2, nodes={0: node, 1: node}))
        worker.crash()
        rig.wait(20.0)
        found = reason(rig, 1)
        assert found is not None
        assert (found.kind, found.detail) == ("affinity", "worker w1 is away")
        assert found.until is not None
        assert rig.now < found.until <= rig.now + 30.0

    def test_a_worker_that_drains_is_no_matter_of_time(self, rig: Rig) -> None:
        worker = rig.worker("w1", slots=1)
        node = {"affinity": AffinityHint("model", "sticky")}
        rig.submit(make_plan(2, nodes={0: node, 1: node}))
        worker.live.drain(rig.now, 60.0)
        rig.wait(6.0)
        assert reason(rig, 1) == Reason("affinity", "worker w1 is draining")

    def test_a_label_that_nobody_has_is_named(self, rig: Rig) -> None:
        rig.worker("w1")
        rig.submit(make_plan(1, nodes={0: {"worker_labels": (("zone", "eu"),)}}))
        assert reason(rig) == Reason("worker", "no worker with pkg 1.0 has the label zone=eu")


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_whose_calls_are_being_ended_says_so(count: int, rig: Rig) -> None:
    worker = rig.worker(slots=4)
    rig.submit(wrapped(1, n1=retrying(3)))
    for number in range(count):
        call(worker, 0, f"call-{number}")
    error = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "boom")
    worker.finish(0, "FAILED", error=error)
    calls = "a call" if count == 1 else "2 calls"
    assert reason(rig) == Reason("calls", f"{calls} of its last attempt must have ended first")
