"""Giving tasks to workers: what is leased, to whom, in which order, and what is said otherwise."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.engine import placing
from astraflow.core.engine.commands import SubmitRun
from astraflow.core.ids import RunId
from astraflow.core.protocol import business
from astraflow.core.runs.facts import (
    RunFinished,
    RunStarted,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
)
from astraflow.core.workflow.plan import AffinityHint, ResourceRefValue
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.plans import make_plan

STICKY = {"affinity": AffinityHint("model", "sticky")}


def pinned(*workers: str) -> dict[str, Any]:
    refs = [ResourceRefValue(f"r-{name}", name, "file") for name in workers]
    return {"resource_refs": tuple(refs)}


def waits(rig: Rig) -> list[WaitReason]:
    return [fact.waiting_for for fact in rig.new_facts() if isinstance(fact, TaskWaiting)]


class TestLease:
    def test_a_placed_task_is_leased_to_the_incarnation_of_its_worker(self, rig: Rig) -> None:
        rig.worker()
        rig.submit(make_plan(1))
        assert rig.new_facts()[1:] == [RunStarted(0), TaskLeased(0, 0, 1, "w1", 1, 30_000)]

    def test_the_dispatch_carries_all_that_the_worker_needs(self, rig: Rig, worker: Worker) -> None:
        node = {
            "timeout_s": 7.5,
            "concurrency_key": "printer",
            "affinity": AffinityHint("model", "preferred"),
            "resource_refs": (ResourceRefValue("r1", "w1", "file", "run"),),
        }
        rig.submit(make_plan(2, [(0, 1)], nodes={1: node}, reads=True))
        worker.finish(value=["x"])
        dispatch = worker.started[-1]
        assert (dispatch.run_id, dispatch.task_id, dispatch.attempt) == ("run1", "run1.1", 1)
        assert (dispatch.node_id, dispatch.node_type) == ("n1", "t.node")
        assert dispatch.package == business.PackageId("pkg", "1.0")
        assert msgspec.json.decode(dispatch.parameters) == {"from0": ["x"]}
        assert dispatch.constraints == business.Constraints(7500)
        assert dispatch.concurrency_key == "printer"
        assert dispatch.affinity == business.DispatchAffinity("model", "preferred")
        assert dispatch.resource_refs == (business.RequiredResource("r1", "w1", "file", "run"),)

    def test_a_task_that_became_ready_is_leased_in_the_same_batch_as_the_result(self) -> None:
        rig = Rig()
        worker = rig.worker()
        rig.submit(make_plan(2, [(0, 1)]))
        rig.wait(0.1)
        rig.new_facts()
        rig.commits = False
        worker.finish()
        assert rig.pending is not None
        kinds = [type(one.fact) for one in rig.pending.facts]
        assert kinds == [TaskSucceeded, TaskLeased]

    def test_a_run_stays_with_the_worker_it_used_for_the_package(self, rig: Rig) -> None:
        first, second = rig.worker("w1"), rig.worker("w2")
        rig.submit(make_plan(3, [(0, 1), (1, 2)]))
        for worker in (first, first, first):
            worker.finish()
        assert (len(first.started), len(second.started)) == (3, 0)

    def test_tasks_are_placed_by_priority_when_slots_are_few(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(4, nodes={2: {"priority": 5}, 3: {"priority": 9}}))
        for _ in range(3):
            worker.finish()
        assert [task for task, _ in worker.tasks()] == ["run1.3", "run1.2", "run1.0", "run1.1"]


class TestFairShare:
    def test_a_small_run_is_done_long_before_the_large_one_that_came_first(self, rig: Rig) -> None:
        worker = rig.worker(slots=2)
        rig.submit(make_plan(1000), "big")
        rig.submit(make_plan(3), "small")
        done = 0
        while "small" in rig.active():
            worker.finish(done)
            done += 1
        assert done <= 2 + 2 * 3 + 2
        assert "big" in rig.active()


class TestBudget:
    def test_a_turn_places_so_much_and_the_engine_asks_for_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(placing, "PLACE_BUDGET", 10 * (1 + placing.LEASE_COSTS))
        rig = Rig()
        rig.worker(slots=25)
        engine = rig.engine
        engine.submit(SubmitRun(None, "acme", RunId("run1"), make_plan(25)), rig.now, rig.at)
        leased = []
        while (batch := engine.take_batch(rig.now, rig.at)) is not None:
            leased.append(sum(isinstance(one.fact, TaskLeased) for one in batch.facts))
            if engine.view.placing.has_more:
                assert engine.deadline() == rig.now, "it asks for its next turn at once"
            engine.committed(batch, rig.now, rig.at)
        assert leased[:3] == [10, 10, 5]
        assert not engine.view.placing.has_more

    def test_what_is_only_looked_at_is_budgeted_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tasks of a hundred different labels, which nobody has: each is looked at, none is leased."""
        monkeypatch.setattr(placing, "PLACE_BUDGET", 10)
        rig = Rig()
        rig.worker()
        nodes = {index: {"worker_labels": (("host", f"h{index}"),)} for index in range(100)}
        rig.submit(make_plan(100, nodes=nodes))
        assert not rig.engine.view.placing.has_more
        assert len(rig.engine.view.queue.sleeping_demands()) == 100

    def test_a_scheduler_that_may_not_speak_asks_for_no_turn(self, rig: Rig) -> None:
        rig.engine.view.placing.has_more = True
        rig.engine.ownership.ttl_s = 1.0
        rig.now += 100.0
        rig.engine.take_batch(rig.now, rig.at)
        assert not rig.engine.view.placing.has_more


class TestWhatIsLookedAt:
    def test_labels_that_nobody_has_are_not_looked_at_when_a_slot_is_free(self, rig: Rig) -> None:
        worker = rig.worker("w1", slots=1)
        nodes = {1: {"worker_labels": (("zone", "eu"),)}}
        rig.submit(make_plan(2, nodes=nodes))
        rig.submit(make_plan(20), "run2")
        before = rig.engine.view.queue.looks
        for _ in range(10):
            worker.finish()
        spent = rig.engine.view.queue.looks - before
        assert spent <= 40 * 10
        rig.worker("w2", labels={"zone": "eu"})
        assert rig.task(1).attempt == 1

    def test_a_task_whose_affinity_key_found_a_worker_since_it_was_queued_goes_there(self) -> None:
        rig = Rig()
        first = rig.worker("w1", slots=1)
        rig.submit(make_plan(2, nodes={0: STICKY, 1: STICKY}))
        assert first.tasks() == [("run1.0", 1)]
        second = rig.worker("w2", slots=1)
        first.finish()
        assert (first.tasks(), second.tasks()) == ([("run1.0", 1), ("run1.1", 1)], [])


class TestKeys:
    def test_a_key_is_held_by_one_attempt_across_all_workers(self, rig: Rig) -> None:
        workers = [rig.worker("w1", slots=1), rig.worker("w2", slots=1)]
        node = {"concurrency_key": "printer"}
        rig.submit(make_plan(1, nodes={0: node}), "run1")
        rig.submit(make_plan(1, nodes={0: node}), "run2")
        assert [worker.tasks() for worker in workers] == [[("run1.0", 1)], []]
        rig.wait(3.0)
        assert not any(isinstance(fact, TaskWaiting) for fact in rig.facts("run2"))
        workers[0].finish()
        started = [task for worker in workers for task in worker.tasks()]
        assert sorted(started) == [("run1.0", 1), ("run2.0", 1)]

    def test_a_key_is_free_again_when_its_attempt_was_refused(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        node = {"concurrency_key": "printer"}
        rig.submit(make_plan(2, nodes={0: node, 1: node}))
        raw.refuse("run1.0")
        assert [one.task_id for one in raw.of(business.Dispatch)] == ["run1.0", "run1.1"]


class TestAffinity:
    def test_sticky_work_follows_its_key_and_waits_for_its_worker(self, rig: Rig) -> None:
        first, second = rig.worker("w1", slots=1), rig.worker("w2", slots=1)
        rig.submit(make_plan(1, nodes={0: STICKY}), "run1")
        rig.submit(make_plan(1, nodes={0: STICKY}), "run2")
        assert (first.tasks(), second.tasks()) == ([("run1.0", 1)], [])
        first.finish()
        assert first.tasks() == [("run1.0", 1), ("run2.0", 1)]
        assert second.tasks() == []

    def test_the_keys_of_a_lost_worker_bind_until_the_grace_is_over(self) -> None:
        rig = Rig(affinity_grace_s=25.0)
        first, second = rig.worker("w1"), rig.worker("w2")
        rig.submit(make_plan(1, nodes={0: STICKY}), "run1")
        first.finish()
        first.crash()
        rig.wait(15.1)
        rig.new_facts()
        rig.submit(make_plan(1, nodes={0: STICKY}), "run2")
        rig.wait(2.0)
        assert waits(rig) == [WaitReason("affinity", "worker w1 is away")]
        assert second.tasks() == []
        rig.wait(10.0)
        assert rig.counted("affinity expired") == 1
        assert second.tasks() == [("run2.0", 1)]

    def test_a_worker_that_dies_with_sticky_work_delays_it_by_the_grace(self, rig: Rig) -> None:
        first, second = rig.worker("w1", slots=1), rig.worker("w2", slots=1)
        rig.submit(make_plan(1, nodes={0: STICKY}), "run1")
        first.crash()
        rig.submit(make_plan(1, nodes={0: STICKY}), "run2")
        rig.wait(29.0)
        assert second.tasks() == []
        rig.wait(8.0)  # the lease, the backoff of a loss
        second.finish()
        assert sorted(second.tasks()) == [("run1.0", 2), ("run2.0", 1)]
        assert len(rig.engine.view.affinity) == 1

    def test_sticky_work_that_says_so_fails_with_its_worker(self, rig: Rig) -> None:
        first, second = rig.worker("w1", slots=1), rig.worker("w2", slots=1)
        node = {**STICKY, "on_resource_lost": "fail"}
        rig.submit(make_plan(1, nodes={0: node}), "run1")
        rig.submit(make_plan(1, nodes={0: node}), "run2")
        first.crash()
        rig.wait(40.0)
        assert second.tasks() == []
        for run_id in ("run1", "run2"):
            *_, failed, finished = rig.facts(run_id)
            assert isinstance(failed, TaskFailed)
            assert failed.error.code == "E.RESOURCE.LOST"
            assert isinstance(finished, RunFinished)

    @pytest.mark.parametrize("policy", ["fail", "rebuild", None])
    def test_a_worker_that_starts_anew_has_its_keys_without_what_was_behind_them(
        self, policy: str | None, rig: Rig
    ) -> None:
        worker = rig.worker("w1", slots=1)
        node = {**STICKY, "on_resource_lost": policy}
        rig.submit(make_plan(1, nodes={0: node}), "run1")
        rig.submit(make_plan(1, nodes={0: node}), "run2")
        worker.crash()
        worker.boot()
        rig.wait(5.0)
        if policy == "fail":
            assert rig.active() == []
            assert worker.tasks() == [("run1.0", 1)]
        else:
            worker.finish()
            assert sorted(worker.tasks()[1:]) == [("run1.0", 2), ("run2.0", 1)]

    def test_a_link_that_breaks_for_a_moment_loses_no_key(self, rig: Rig) -> None:
        worker = rig.worker("w1", slots=1)
        node = {**STICKY, "on_resource_lost": "fail"}
        rig.submit(make_plan(1, nodes={0: node}), "run1")
        rig.submit(make_plan(1, nodes={0: node}), "run2")
        worker.cut()
        rig.wait(5.0)
        worker.finish()
        assert worker.tasks() == [("run1.0", 1), ("run2.0", 1)]

    def test_a_restarted_scheduler_gives_a_dead_workers_key_the_grace_and_no_more(self) -> None:
        rig = Rig()
        first = rig.worker("w1", slots=1)
        rig.submit(make_plan(1, nodes={0: STICKY}), "run1")
        first.crash()
        rig.restart()
        second = rig.worker("w2", slots=1)
        rig.wait(40.0)
        assert second.tasks() == [("run1.0", 2)]

    def test_a_worker_that_comes_back_in_time_gets_its_sticky_work(self) -> None:
        rig = Rig(affinity_grace_s=25.0)
        first, second = rig.worker("w1"), rig.worker("w2")
        rig.submit(make_plan(1, nodes={0: STICKY}), "run1")
        first.finish()
        first.crash()
        rig.wait(15.1)
        rig.submit(make_plan(1, nodes={0: STICKY}), "run2")
        rig.wait(5.0)
        first.boot()
        rig.wait(1.0)
        assert first.tasks() == [("run1.0", 1), ("run2.0", 1)]
        assert second.tasks() == []


class TestPins:
    def test_a_task_goes_to_the_worker_that_holds_its_resource(self, rig: Rig) -> None:
        rig.worker("w1")
        second = rig.worker("w2")
        rig.submit(make_plan(1, nodes={0: pinned("w2")}))
        assert second.tasks() == [("run1.0", 1)]

    def test_a_reference_that_came_with_a_result_pins_what_is_downstream(self, rig: Rig) -> None:
        first, second = rig.worker("w1", slots=1), rig.worker("w2", slots=1)
        rig.submit(make_plan(2, [(0, 1)], reads=True))
        first.finish(value={"resourceRef": {"resourceId": "r1", "workerId": "w2"}})
        assert second.tasks() == [("run1.1", 1)]
        [ref] = second.started[0].resource_refs
        assert ref == business.RequiredResource("r1", "w2", "resource")

    def test_resources_of_two_workers_that_came_with_results_fail_the_task(self, rig: Rig) -> None:
        first = rig.worker("w1")
        rig.submit(make_plan(2, [(0, 1)], reads=True))
        first.finish(value=[_ref("w1"), _ref("w2")])
        message = "the task refers to resources of several workers: w1, w2"
        error = TaskFailure("E.RESOURCE.CONFLICT", "CONFIGURATION", message)
        assert rig.new_facts()[-2:] == [TaskFailed(0, 1, 0, error), RunFinished(0, "failed", error)]

    def test_a_task_whose_worker_does_not_come_back_fails_after_the_grace(self) -> None:
        rig = _waiting_for("gone", resource_grace_s=10.0)
        rig.wait(9.9)
        rig.new_facts()
        rig.wait(0.2)
        message = "the worker that holds it did not come back: gone: r-gone"
        error = TaskFailure("E.RESOURCE.LOST", "INFRASTRUCTURE", message, False)
        assert rig.new_facts() == [TaskFailed(0, 1, 0, error), RunFinished(0, "failed", error)]
        assert rig.counted("pinned worker lost") == 1

    def test_the_grace_counts_from_the_last_word_of_the_worker(self) -> None:
        """Three missed heartbeats take 15 s, which are a part of the grace and not before it."""
        rig = Rig(resource_grace_s=30.0)
        holder = rig.worker("w1")
        rig.submit(make_plan(2, [(0, 1)], nodes={1: {"type": "t.pinned"}}, reads=True))
        holder.finish(value=_ref("w1"))
        rig.wait(1.0)
        holder.crash()
        rig.wait(35.0)
        assert rig.active() == []

    def test_a_worker_that_comes_back_in_time_runs_it(self) -> None:
        rig = _waiting_for("w1", resource_grace_s=10.0)
        rig.wait(8.0)
        worker = rig.worker("w1")
        assert worker.tasks() == [("run1.1", 1)]
        rig.wait(5.0)
        assert rig.active() == ["run1"]
        worker.finish()
        assert rig.active() == []

    def test_a_worker_that_is_back_and_busy_does_not_fail_it(self) -> None:
        rig = _waiting_for("w1", resource_grace_s=10.0)
        rig.wait(5.0)
        rig.worker("w1", slots=1, per_node_limits={"t.pinned": 0})
        rig.wait(10.0)
        assert rig.active() == ["run1"]

    def test_a_worker_that_came_back_busy_and_is_lost_again_is_missed_again(self) -> None:
        """
        0 s: w1 is gone, the watch runs to 10 s
        5 s: w1 comes back and has no room, so nothing is watched at 10 s
        12 s and after: w1 dies for good, and the grace counts from its last word
        """
        rig = _waiting_for("w1", resource_grace_s=10.0)
        rig.wait(5.0)
        worker = rig.worker("w1", slots=1, per_node_limits={"t.pinned": 0})
        rig.wait(7.0)
        assert rig.active() == ["run1"]
        worker.crash()
        rig.wait(40.0)
        assert rig.active() == []
        assert rig.counted("pinned worker lost") == 1

    def test_each_loss_of_the_worker_gives_it_the_whole_grace(self) -> None:
        rig = _waiting_for("w1", resource_grace_s=30.0)
        rig.wait(10.0)
        worker = rig.worker("w1", per_node_limits={"t.pinned": 0})
        rig.wait(1.0)
        worker.crash()
        rig.wait(20.0)
        assert rig.active() == ["run1"], (
            "the watch of the first loss is over, not that of the second"
        )
        rig.wait(20.0)
        assert rig.active() == []

    def test_a_run_that_was_cancelled_is_not_failed_for_its_resource(self) -> None:
        rig = _waiting_for("gone", resource_grace_s=10.0)
        rig.wait(1.0)
        rig.cancel()
        rig.new_facts()
        rig.wait(15.0)
        assert rig.new_facts() == []


def _ref(worker_id: str) -> dict[str, Any]:
    return {"resourceRef": {"resourceId": f"r-{worker_id}", "workerId": worker_id, "type": "file"}}


def _waiting_for(holder: str, **settings: Any) -> Rig:
    """A run whose second node needs what `holder` has, which is away."""
    rig = Rig(**settings)
    maker = rig.worker("maker")
    rig.submit(make_plan(2, [(0, 1)], nodes={1: {"type": "t.pinned"}}, reads=True))
    maker.finish(value=_ref(holder))
    return rig


class TestWaking:
    def test_a_worker_with_the_package_wakes_what_waited_for_it(self, rig: Rig) -> None:
        rig.worker("w1", packages={"other": "1.0"})
        rig.submit(make_plan(1))
        rig.wait(3.0)
        assert rig.worker("w2").tasks() == [("run1.0", 1)]

    def test_a_free_slot_wakes_what_waited_for_one(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(3))
        worker.finish()
        worker.fail()
        assert worker.tasks() == [("run1.0", 1), ("run1.1", 1), ("run1.2", 1)]

    def test_tasks_of_a_cancelled_run_are_dropped_when_they_are_met(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(3))
        rig.cancel()
        rig.wait(2.0)
        assert waits(rig) == []
        rig.submit(make_plan(1), "run2")
        worker.finish(status="CANCELLED")
        assert worker.tasks() == [("run1.0", 1), ("run2.0", 1)]
        assert len(rig.engine.view.queue) == 0

    def test_a_slot_that_frees_while_a_run_is_being_cancelled_goes_to_another(self) -> None:
        rig = Rig()
        worker = rig.worker(slots=2)
        rig.submit(make_plan(1), "run0")
        rig.submit(make_plan(3), "run1")
        rig.submit(make_plan(1), "run2")
        rig.cancel("run1")
        worker.finish(0)
        assert worker.tasks() == [("run0.0", 1), ("run1.0", 1), ("run2.0", 1)]
        assert len(rig.engine.view.queue) == 0

    def test_sticky_work_whose_key_nobody_has_is_woken_by_any_worker(self, rig: Rig) -> None:
        rig.submit(make_plan(1, nodes={0: STICKY}))
        rig.wait(2.0)
        assert rig.worker().tasks() == [("run1.0", 1)]
