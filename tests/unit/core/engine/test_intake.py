"""Submitting and cancelling runs."""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.engine.effects import ReplyToCaller
from astraflow.core.ids import RunId
from astraflow.core.protocol import business
from astraflow.core.runs.facts import (
    CancelRequested,
    RunAccepted,
    RunFinished,
    StopRequested,
    TaskCancelled,
    TaskReused,
)
from tests.unit.core.engine.rig import Rig, Worker
from tests.unit.plans import make_plan


def refusal(rig: Rig) -> errors.AstraflowError:
    error = rig.replies[-1].error
    assert isinstance(error, errors.AstraflowError)
    return error


class TestSubmit:
    def test_a_run_is_stored_with_its_plan_and_then_answered(self, rig: Rig) -> None:
        plan = make_plan(1)
        inputs = msgspec.Raw(b'{"x":1}')
        rig.submit(plan, inputs=inputs, idempotency_key="k", fingerprint="f")
        accepted = RunAccepted(0, RunId("run1"), "acme", "wf", inputs, "k", "f")
        assert rig.new_facts()[0] == accepted
        assert rig.plans == {"run1": plan}
        assert rig.replies == [ReplyToCaller("run1", RunId("run1"))]

    def test_a_repeated_submission_is_answered_with_the_run_that_it_made(self, rig: Rig) -> None:
        rig.submit(make_plan(1), idempotency_key="k", fingerprint="f")
        rig.submit(make_plan(1), "run2", idempotency_key="k", fingerprint="f")
        assert rig.replies[-1] == ReplyToCaller("run2", RunId("run1"))
        assert [run.run_id for run in rig.engine.view.runs] == ["run1"]
        assert rig.counted("submission deduplicated") == 1

    def test_a_repeated_submission_is_answered_after_the_run_has_ended(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(1), idempotency_key="k", fingerprint="f")
        worker.finish()
        rig.submit(make_plan(1), "run2", idempotency_key="k", fingerprint="f")
        assert rig.replies[-1] == ReplyToCaller("run2", RunId("run1"))

    def test_the_key_of_a_run_before_the_restart_is_still_good(self, rig: Rig) -> None:
        rig.engine.remember_submission("acme", "k", "f", RunId("run0"))
        rig.submit(make_plan(1), idempotency_key="k", fingerprint="f")
        assert rig.replies == [ReplyToCaller("run1", RunId("run0"))]

    def test_a_key_with_another_body_is_a_conflict(self, rig: Rig) -> None:
        rig.submit(make_plan(1), idempotency_key="k", fingerprint="f")
        rig.submit(make_plan(1), "run2", idempotency_key="k", fingerprint="g")
        assert refusal(rig).code is errors.RUN_IDEMPOTENCY_CONFLICT
        assert [run.run_id for run in rig.engine.view.runs] == ["run1"]

    def test_the_same_key_of_another_tenant_is_another_key(self, rig: Rig) -> None:
        rig.submit(make_plan(1), idempotency_key="k", fingerprint="f")
        rig.submit(make_plan(1), "run2", "other", idempotency_key="k", fingerprint="g")
        assert rig.replies[-1] == ReplyToCaller("run2", RunId("run2"))

    def test_one_tenant_does_not_keep_all_others_out(self) -> None:
        rig = Rig(max_active_tasks=20)
        rig.submit(make_plan(18), "mine", "acme")
        rig.submit(make_plan(1), "more", "acme")
        rig.submit(make_plan(2), "theirs", "umbrella")
        refused = [one.error for one in rig.replies]
        assert [one is None for one in refused] == [True, False, True]
        assert refused[1] is not None
        assert refused[1].code is errors.OVERLOADED

    def test_too_many_active_tasks_are_refused(self) -> None:
        rig = Rig(max_active_tasks=5)
        rig.submit(make_plan(3))
        rig.submit(make_plan(3), "run2", idempotency_key="k")
        assert refusal(rig).code is errors.OVERLOADED
        assert isinstance(refusal(rig), errors.Unavailable)
        rig.submit(make_plan(2), "run2", idempotency_key="k")  # the key was not used up
        assert rig.replies[-1] == ReplyToCaller("run2", RunId("run2"))

    def test_a_rerun_takes_over_what_it_keeps(self, rig: Rig, worker: Worker) -> None:
        kept = {0: (msgspec.Raw(b'{"v":1}'), ())}
        rig.submit(make_plan(2, [(0, 1)]), "run2", rerun_of="run1", kept=kept)
        assert rig.new_facts()[1] == TaskReused(0, 0, "run1", msgspec.Raw(b'{"v":1}'))
        assert worker.tasks() == [("run2.1", 1)]


class TestCancel:
    def test_a_cancelled_run_starts_nothing_more_and_stops_what_runs(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(2))
        rig.new_facts()
        rig.cancel(by="ann")
        assert rig.new_facts() == [
            CancelRequested(0, "ann"),
            StopRequested(0, 0, 1, "cancel", 30_000),
            TaskCancelled(0, 1, 0),
        ]
        assert rig.replies[-1] == ReplyToCaller("cancel run1", RunId("run1"))
        worker.finish(status="CANCELLED")
        assert rig.new_facts()[-2:] == [TaskCancelled(0, 0, 1), RunFinished(0, "cancelled")]
        assert worker.tasks() == [("run1.0", 1)]

    def test_the_caller_may_choose_the_grace(self, rig: Rig) -> None:
        rig.worker()
        rig.submit(make_plan(1))
        rig.cancel(grace_ms=0)
        [frame] = rig.frames(business.CANCEL)
        assert (frame.task_id, frame.attempt, frame.reason, frame.grace_ms) == (
            "run1.0",
            1,
            "cancel",
            0,
        )

    def test_a_run_without_started_tasks_ends_at_once(self, rig: Rig) -> None:
        rig.submit(make_plan(2))
        rig.cancel()
        assert rig.new_facts()[-1] == RunFinished(0, "cancelled")

    def test_a_second_cancel_is_answered_and_changes_nothing(self, rig: Rig) -> None:
        rig.worker()
        rig.submit(make_plan(1))
        rig.cancel()
        rig.new_facts()
        rig.cancel()
        assert not any(isinstance(fact, CancelRequested) for fact in rig.new_facts())
        assert rig.replies[-1] == ReplyToCaller("cancel run1", RunId("run1"))

    def test_an_unknown_run_and_that_of_another_tenant_look_the_same(self, rig: Rig) -> None:
        rig.submit(make_plan(1))
        rig.cancel("run9")
        unknown = refusal(rig)
        rig.cancel("run1", "other")
        foreign = refusal(rig)
        assert unknown.code is foreign.code is errors.RUN_NOT_FOUND
        assert foreign.message == "no active run: run1"
        assert rig.run_of().cancel is None
