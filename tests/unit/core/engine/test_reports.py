"""What workers report, and what becomes of it."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.engine.reports import on_delivered
from astraflow.core.fleet.facts import Audited
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import Delivered
from astraflow.core.protocol.wire import Unreadable
from astraflow.core.runs.facts import (
    ArtifactRef,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    Chunk,
    RunFinished,
    TaskFailed,
    TaskFailure,
    TaskSkipped,
    TaskSucceeded,
)
from tests.unit.core.engine.rig import RawWorker, Rig
from tests.unit.plans import make_plan, retrying


def leased(count: int = 1, **plan: object) -> tuple[Rig, RawWorker]:
    """A worker by hand that has been sent all tasks of a run."""
    rig = Rig()
    raw = RawWorker(rig)
    rig.submit(make_plan(count, **plan))  # type: ignore[arg-type]
    raw.take()
    rig.new_facts()
    return rig, raw


def acked_through(raw: RawWorker) -> int | None:
    """How far the scheduler has acknowledged what this worker sent."""
    raw.rig.wait(0.1)
    acks = [one.ack_seq for one in raw.of(control.ControlAck) if one.recv_window is not None]
    return acks[-1] if acks else None


class TestResults:
    def test_a_result_is_committed_whole(self) -> None:
        rig, raw = leased()
        artifact = business.ResultArtifact(
            "r1", "w1", "file", 7, "2030-01-01T00:00:00Z", True, msgspec.Raw(b'{"m":1}')
        )
        raw.result("run1.0", result=msgspec.Raw(b'{"v":1}'), artifacts=(artifact,), duration_ms=12)
        expected = ArtifactRef(
            "r1", "w1", "file", 7, "2030-01-01T00:00:00Z", True, msgspec.Raw(b'{"m":1}')
        )
        assert rig.new_facts() == [
            TaskSucceeded(0, 0, 1, msgspec.Raw(b'{"v":1}'), (expected,), 12),
            RunFinished(0, "succeeded"),
        ]
        assert acked_through(raw) == 0

    def test_an_error_reaches_the_retry_policy_as_it_was_told(self) -> None:
        rig, raw = leased(nodes={0: retrying()})
        error = business.AttemptError("E.MY.OWN", "INFRASTRUCTURE", "no disk", True, "a stack")
        raw.result("run1.0", status="FAILED", error=error)
        [failed] = rig.new_facts()
        assert isinstance(failed, AttemptFailed)
        assert failed.error == TaskFailure("E.MY.OWN", "INFRASTRUCTURE", "no disk", True, "a stack")

    def test_a_skip_is_a_skip(self) -> None:
        rig, raw = leased()
        raw.result("run1.0", status="SKIPPED")
        assert rig.new_facts()[0] == TaskSkipped(0, 0, "E.TASK.SKIPPED", None, 1)

    def test_only_the_first_terminal_report_counts(self) -> None:
        rig, raw = leased(2)
        raw.result("run1.0")
        raw.result("run1.0", status="FAILED")
        assert [type(fact) for fact in rig.new_facts()] == [TaskSucceeded]
        assert rig.counted("late report") == 1
        assert acked_through(raw) == 1

    @pytest.mark.parametrize("task_id", ["run9.0", "run1.9", "nonsense"])
    def test_a_report_of_an_unknown_task_is_acknowledged_and_counted(self, task_id: str) -> None:
        rig, raw = leased()
        raw.send(
            business.RESULT, business.Result(RunId("x"), TaskId(task_id), 1, "SUCCEEDED"), task_id
        )
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        assert acked_through(raw) == 0

    def test_the_report_of_another_tenant_has_no_effect(self) -> None:
        rig, _ = leased()
        foreign = RawWorker(rig, "w1", tenant="other")
        foreign.result("run1.0")
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        assert acked_through(foreign) == 0

    def test_the_report_of_a_worker_that_does_not_hold_the_attempt_has_no_effect(self) -> None:
        rig, _ = leased()
        other = RawWorker(rig, "w2")
        other.result("run1.0")
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        [row] = [one for one in rig.recorded(Audited) if one.code is not None]
        assert row.action == "report.foreign"
        assert (row.worker_id, row.code, row.corr) == ("w2", "E.TASK.UNKNOWN", "run1.0")

    def test_a_report_that_names_another_run_has_no_effect(self) -> None:
        rig, raw = leased()
        made = business.Result(RunId("run2"), TaskId("run1.0"), 1, "FAILED")
        raw.send(business.RESULT, made, "run1.0")
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        assert acked_through(raw) == 0

    @pytest.mark.parametrize(
        ("size", "metadata"), [(3 * 1024**2, b"{}"), (None, b'"' + b"x" * 3 * 1024**2 + b'"')]
    )
    def test_an_inline_artifact_above_the_limit_fails_the_attempt(
        self, size: int | None, metadata: bytes
    ) -> None:
        rig, raw = leased()
        large = business.ResultArtifact("r1", "w1", "file", size, None, True, msgspec.Raw(metadata))
        raw.result("run1.0", artifacts=(large,))
        failed = rig.new_facts()[0]
        assert isinstance(failed, TaskFailed)
        assert failed.error.code == "E.ARTIFACT.INLINE_LIMIT"

    def test_a_reference_may_be_to_something_of_any_size(self) -> None:
        rig, raw = leased()
        raw.result("run1.0", artifacts=(business.ResultArtifact("r1", "w1", "file", 10**12),))
        assert isinstance(rig.new_facts()[0], TaskSucceeded)

    def test_an_artifact_of_another_worker_fails_the_task(self) -> None:
        rig, raw = leased(nodes={0: retrying()})
        mine = business.ResultArtifact("r1", "w1", "file")
        stolen = business.ResultArtifact("r2", "w7", "file")
        raw.result("run1.0", artifacts=(mine, stolen))
        failed, finished = rig.new_facts()
        assert isinstance(failed, TaskFailed)
        assert failed.error == TaskFailure(
            "E.RESULT.INVALID", "USER_CODE", "an artifact names another worker: w7", False
        )
        assert finished == RunFinished(0, "failed", failed.error)

    def test_a_report_after_the_lease_ended_counts_while_no_newer_attempt_was_issued(self) -> None:
        """
        lease ends → lost, attempt 2 waits for its delay
        result of attempt 1 arrives → it succeeds, and attempt 2 is never issued
        """
        rig, raw = leased()
        for _ in range(7):
            rig.wait(4.0)
            raw.heartbeat()
        rig.wait(2.01)
        assert rig.new_kinds() == [AttemptLost]
        raw.result("run1.0")
        assert rig.new_kinds() == [TaskSucceeded, RunFinished]
        rig.wait(4.0)
        assert len(raw.of(business.Dispatch)) == 1


class TestFeedback:
    def test_feedback_is_recorded_with_its_chunks(self) -> None:
        rig, raw = leased()
        chunks = (
            business.FeedbackChunk("log", 0, "hello"),
            business.FeedbackChunk("image", 1, None, "QUJD", "image/png"),
        )
        feedback = business.Feedback(
            RunId("run1"), TaskId("run1.0"), 1, "load", 0.5, "half", chunks, dropped=2
        )
        raw.send(business.FEEDBACK, feedback, "run1.0")
        expected = (Chunk("log", 0, "hello"), Chunk("image", 1, None, "QUJD", "image/png"))
        assert rig.new_facts() == [AttemptProgressed(0, 0, 1, 0.5, "half", "load", expected, 2)]
        assert acked_through(raw) == 0

    def test_metrics_of_feedback_and_of_a_result_are_recorded(self) -> None:
        rig, raw = leased()
        names = (RunId("run1"), TaskId("run1.0"), 1)
        raw.send(business.FEEDBACK, business.Feedback(*names, metrics={"loss": 0.5}), "run1.0")
        assert rig.new_facts() == [AttemptProgressed(0, 0, 1, metrics={"loss": 0.5})]
        last = business.Result(*names, "SUCCEEDED", metrics={"loss": 0.25})
        raw.send(business.RESULT, last, "run1.0")
        progressed, succeeded, _ = rig.new_facts()
        assert progressed == AttemptProgressed(0, 0, 1, metrics={"loss": 0.25})
        assert isinstance(succeeded, TaskSucceeded)

    def test_feedback_of_an_unknown_task_is_acknowledged_and_counted(self) -> None:
        rig, raw = leased()
        raw.send(business.FEEDBACK, business.Feedback(RunId("run9"), TaskId("run9.0"), 1), "run9.0")
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        assert acked_through(raw) == 0


class TestRefusals:
    def test_a_refused_attempt_is_issued_anew_after_a_delay(self) -> None:
        rig, raw = leased()
        raw.refuse("run1.0", code="E.DISPATCH.OVERLOADED")
        [refused] = rig.new_facts()
        assert isinstance(refused, AttemptRefused)
        assert (refused.code, refused.counted) == ("E.DISPATCH.OVERLOADED", True)
        assert len(rig.engine.view.leases) == 0
        rig.wait(0.5)
        assert [one.attempt for one in raw.of(business.Dispatch)] == [1, 2]

    def test_a_worker_that_says_it_drains_gets_nothing_more(self) -> None:
        rig, raw = leased()
        raw.refuse("run1.0", code="E.DISPATCH.DRAINING")
        [refused] = rig.new_facts()
        assert isinstance(refused, AttemptRefused)
        assert not refused.counted
        rig.wait(4.0)
        assert len(raw.of(business.Dispatch)) == 1
        RawWorker(rig, "w2")
        assert rig.task().worker == "w2"

    def test_a_refusal_of_an_unknown_task_is_acknowledged_and_counted(self) -> None:
        rig, raw = leased()
        raw.refuse("run9.0")
        assert rig.new_facts() == []
        assert rig.counted("foreign report") == 1
        assert acked_through(raw) == 0


class TestUnreadable:
    def test_the_attempt_that_an_unreadable_frame_names_fails(self) -> None:
        rig, raw = leased(nodes={0: retrying()})
        bad = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/status", "is unknown", TaskId("run1.0"), 1)
        raw.send(business.RESULT, bad, "run1.0")
        failed = rig.new_facts()[0]
        assert isinstance(failed, TaskFailed)
        assert failed.error == TaskFailure(
            "E.RESULT.INVALID", "USER_CODE", "is unknown at /status", False
        )
        assert acked_through(raw) == 0

    def test_a_bad_feedback_costs_the_attempt_nothing(self) -> None:
        rig, raw = leased()
        bad = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/progress", "too large", TaskId("run1.0"), 1)
        raw.send(business.FEEDBACK, bad, "run1.0")
        assert rig.new_facts() == []
        assert rig.counted("refused: biz.exec.feedback") == 1
        assert acked_through(raw) == 0

    @pytest.mark.parametrize(
        "named", [(None, None), ("run1.0", None), ("run9.0", 1)], ids=["nothing", "task", "unknown"]
    )
    def test_one_that_names_no_attempt_is_only_acknowledged(
        self, named: tuple[TaskId | None, int | None]
    ) -> None:
        rig, raw = leased()
        bad = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "", "is not an object", *named)
        raw.send(business.RESULT, bad)
        assert rig.new_facts() == []
        assert acked_through(raw) == 0

    def test_an_unreadable_control_frame_has_nothing_to_acknowledge(self) -> None:
        rig, raw = leased()
        raw.send(control.REGISTER, Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "", "is bad"))
        assert rig.new_facts() == []
        assert len(raw.of(control.ControlError)) == 1


def test_a_frame_that_nobody_handles_is_acknowledged_and_counted() -> None:
    rig, _ = leased()
    envelope = rig.carried[-1]
    frame = msgspec.structs.replace(envelope, type="ext.acme.hello", payload=msgspec.Raw(b"{}"))
    on_delivered(rig.engine.view, Delivered(SessionId("session"), "acme", "w1", 7, frame))
    assert rig.counted("not handled: ext.acme.hello") == 1
    assert rig.engine.view.batch.delivered == {SessionId("session"): [7]}
