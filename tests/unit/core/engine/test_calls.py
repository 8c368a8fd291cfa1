"""Calls of middlewares across the wire: when they are answered, and what a waiting attempt lends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.agent.actions import ForwardAnswer, InterruptAttempt
from astraflow.core.engine.calls import MAX_TOLD_INPUT_BYTES, lenders_of
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.codec import Unsendable
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.runs import calls
from astraflow.core.runs.facts import CallOpened
from astraflow.core.workflow.plan import Feature, InEdge, InputEdge
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.core.engine.test_sessions import end_session
from tests.unit.plans import make_plan, retrying, wrapped

RESULT = msgspec.Raw(b'{"v":7}')


def request(
    dispatch: business.Dispatch, request_id: str = "a", place: int | None = None, **fields: Any
) -> business.NextRequest:
    """What the host process of an attempt asks for when its code calls `ctx.next()`."""
    index = dispatch.chain_index if place is None else place
    return business.NextRequest(
        dispatch.run_id, dispatch.task_id, dispatch.attempt, request_id, index or 0, **fields
    )


def call(worker: Worker, number: int = -1, request_id: str = "a", **fields: Any) -> None:
    """The attempt that was started as this one calls the rest of its chain."""
    worker.live.call(request(worker.started[number], request_id, **fields), worker.rig.now)
    worker.rig.run()


def answers(worker: Worker) -> list[business.NextResponse]:
    return [one.response for one in worker.of(ForwardAnswer)]


def codes(worker: Worker) -> list[str]:
    return [one.error.code for one in answers(worker) if one.error is not None]


def called(rig: Rig, **fields: Any) -> Worker:
    """A worker that runs n1 (first) and, called by it, the host n0 (second)."""
    worker = rig.worker(**fields)
    rig.submit(wrapped(1))
    call(worker)
    assert len(worker.started) == 2
    return worker


class TestDispatches:
    def test_the_dispatches_of_a_chain_say_which_link_of_it_they_are(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(2))
        call(worker)
        call(worker)
        chain = ("n1", "n2")
        said = [
            (one.node_id, one.host_node_id, one.middleware_chain, one.chain_index)
            for one in worker.started
        ]
        assert said == [
            ("n1", "n0", chain, 0),
            ("n2", "n0", chain, 1),
            ("n0", "n0", chain, None),
        ]
        assert [one.task_id for one in worker.started] == [
            rig.run_of().task_id(task) for task in (0, 3, 4)
        ]

    def test_a_dispatch_without_a_chain_names_no_host(self, rig: Rig, worker: Worker) -> None:
        rig.submit(make_plan(1))
        [only] = worker.started
        assert (only.host_node_id, only.middleware_chain, only.chain_index) == (None, (), None)

    def test_a_middleware_is_told_what_its_host_would_be_given(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(2, n0={"parameters": b'{"x":1}'}))
        call(worker, payload=msgspec.Raw(b'{"x":2}'))
        call(worker)
        outer, inner, host = (one.host for one in worker.started)
        assert outer is not None
        assert inner is not None
        assert host is None
        assert [bytes(one.parameters) for one in (outer, inner)] == [b'{"x":1}', b'{"x":2}']
        assert outer.node_type == worker.started[2].node_type
        assert outer.package == worker.started[2].package
        assert outer.input_sha256 != inner.input_sha256

    def test_the_digest_of_an_input_does_not_depend_on_how_it_is_written(self) -> None:
        written = (b'{"x":1,"y":"\xc3\xa9"}', b'{ "y": "\\u00e9", "x": 1 }', b'{"x":2,"y":"e"}')
        digests = []
        for parameters in written:
            rig = Rig()
            worker = rig.worker()
            rig.submit(wrapped(1, n0={"parameters": parameters}))
            [only] = worker.started
            assert only.host is not None
            digests.append(only.host.input_sha256)
        assert digests[0] == digests[1] != digests[2]

    def test_a_large_input_is_told_by_its_digest_alone(self, rig: Rig) -> None:
        worker = rig.worker()
        text = b'{"x":"%s"}' % (b"x" * MAX_TOLD_INPUT_BYTES)
        rig.submit(wrapped(1, n0={"parameters": text}))
        [only] = worker.started
        assert only.host is not None
        assert bytes(only.host.parameters) == b"null"
        assert len(only.host.input_sha256 or "") == 64

    def test_a_middleware_may_give_its_host_other_parameters(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1, n0={"parameters": b'{"x":1}'}))
        call(worker)
        call(worker, 0, "b", payload=msgspec.Raw(b'{"x":2}'))
        assert [bytes(one.parameters) for one in worker.started[1:]] == [b'{"x":1}', b'{"x":2}']

    def test_what_an_outer_middleware_gave_reaches_the_host_through_the_inner_one(self) -> None:
        rig = Rig()
        worker = rig.worker()
        rig.submit(wrapped(2, n0={"parameters": b'{"x":1}'}))
        call(worker, payload=msgspec.Raw(b'{"x":2}'))
        call(worker)
        assert bytes(worker.started[2].parameters) == b'{"x":2}'

    def test_the_tasks_that_wait_for_a_call_are_those_above_it(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(2))
        call(worker)
        call(worker)
        run = rig.run_of()
        assert lenders_of(run, 0) == []
        assert lenders_of(run, 4) == [run.task_id(3), "run1.0"]


class TestTimeouts:
    def test_a_call_that_takes_too_long_is_stopped_and_answered_so(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, timeout_ms=4000)
        rig.wait(3.9)
        assert worker.of(InterruptAttempt) == []
        rig.wait(0.2)
        assert len(worker.of(InterruptAttempt)) == 1
        assert answers(worker) == [], "the host may still run"
        worker.finish(1, "CANCELLED")
        assert codes(worker) == ["E.NEXT.TIMEOUT"]
        assert [one.error and one.error.category for one in answers(worker)] == ["TIMEOUT"]
        call(worker, 0, "b")
        worker.finish(2, value=7)
        worker.finish(0)
        assert rig.active() == []

    def test_a_late_call_that_had_to_be_killed_is_told_as_late(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, timeout_ms=1000)
        rig.wait(1.1)
        killed = business.AttemptError("CANCEL_TIMEOUT", "CANCELLED", "it was killed")
        worker.finish(1, "FAILED", error=killed)
        assert codes(worker) == ["E.NEXT.TIMEOUT"]

    def test_a_host_that_skips_itself_in_time_is_not_late(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, timeout_ms=60_000)
        worker.finish(1, "SKIPPED")
        assert codes(worker) == ["E.NEXT.CANCELLED"]

    def test_a_call_that_has_no_place_is_answered_at_once(self, rig: Rig) -> None:
        worker = rig.worker(slots=1, per_node_limits={"acme.n0": 0})
        rig.submit(wrapped(1, n0={"type": "acme.n0"}))
        call(worker, timeout_ms=1000)
        assert len(worker.started) == 1
        rig.wait(1.1)
        assert codes(worker) == ["E.NEXT.TIMEOUT"]

    def test_a_call_that_ended_in_time_is_left_alone(self, rig: Rig, worker: Worker) -> None:
        rig.submit(wrapped(1))
        call(worker, timeout_ms=4000)
        worker.finish(1, value=7)
        rig.wait(5.0)
        assert codes(worker) == []
        assert len(answers(worker)) == 1

    def test_the_timeout_outlives_a_restart_and_the_answer_a_new_session(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, timeout_ms=4000)
        rig.restart()
        rig.wait(4.5)
        assert len(worker.of(InterruptAttempt)) == 1
        worker.finish(1, "CANCELLED")
        assert codes(worker) == ["E.NEXT.TIMEOUT"]
        rig.restart()
        rig.wait(3.0)
        assert set(codes(worker)) == {"E.NEXT.TIMEOUT"}

    def test_a_run_that_is_cancelled_says_so_and_not_that_it_was_late(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, timeout_ms=4000)
        rig.cancel()
        worker.finish(1, "CANCELLED")
        assert codes(worker) in ([], ["E.NEXT.CANCELLED"])
        rig.wait(5.0)
        assert "E.NEXT.TIMEOUT" not in codes(worker)


class TestAnswers:
    def test_a_result_is_the_answer_to_the_call(self, rig: Rig) -> None:
        worker = called(rig)
        worker.finish(1, value=7)
        [answer] = answers(worker)
        assert (answer.task_id, answer.attempt, answer.request_id) == ("run1.0", 1, "a")
        assert (answer.result, answer.error) == (RESULT, None)
        worker.finish(0)
        assert rig.active() == []

    def test_an_answer_goes_out_only_after_the_commit(self, rig: Rig) -> None:
        worker = called(rig)
        rig.commits = False
        worker.finish(1)
        assert answers(worker) == []
        rig.commits = True
        rig.commit()
        rig.run()
        assert len(answers(worker)) == 1

    def test_a_call_acts_only_after_its_commit(self, rig: Rig, worker: Worker) -> None:
        rig.submit(wrapped(1))
        rig.commits = False
        call(worker)
        assert len(worker.started) == 1
        rig.commits = True
        rig.commit()
        rig.run()
        assert [one.node_id for one in worker.started] == ["n1", "n0"]

    def test_an_answer_that_no_frame_can_carry_is_told_as_a_failure(self, rig: Rig) -> None:
        worker = called(rig)

        def refuse(frame_type: str, payload: Any) -> None:
            if frame_type == business.NEXT_RESPONSE and payload.error is None:
                raise Unsendable(errors.RESULT_TOO_LARGE, "too large")

        rig.gateway.refuse = refuse
        worker.finish(1, value=7)
        assert codes(worker) == [errors.NEXT_FAILED.code]

    def test_an_answer_that_finds_the_queue_full_goes_out_after_the_next_ack(
        self, rig: Rig
    ) -> None:
        worker = called(rig)
        full = [True]

        def refuse(frame_type: str, _: object) -> None:
            if frame_type == business.NEXT_RESPONSE and full:
                full.clear()
                raise QueueFull(1)

        rig.gateway.refuse = refuse
        worker.finish(1, value=7)
        assert answers(worker) == []
        rig.submit(make_plan(1), "run2")
        rig.wait(1.0)
        assert [one.result for one in answers(worker)] == [RESULT]

    def test_a_failure_is_told_with_its_error(self, rig: Rig) -> None:
        worker = called(rig)
        worker.fail(1)
        [answer] = answers(worker)
        assert answer.error == business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "boom")
        worker.finish(0)
        assert rig.active() == []

    def test_a_call_that_did_not_run_to_its_end_is_told_as_cancelled(self, rig: Rig) -> None:
        worker = called(rig)
        worker.finish(1, "SKIPPED")
        assert codes(worker) == ["E.NEXT.CANCELLED"]

    def test_a_request_that_comes_again_is_answered_and_opens_nothing(self, rig: Rig) -> None:
        worker = called(rig)
        worker.finish(1, value=7)
        call(worker, 0)
        assert [one.result for one in answers(worker)] == [RESULT, RESULT]
        assert len(worker.started) == 2
        assert rig.counted("call is known") == 1

    def test_an_answer_that_was_lost_with_its_session_is_given_in_the_next(self, rig: Rig) -> None:
        """
        worker                scheduler
        result of the call ─▶ committed
                       ✕──── answer
        new session ────────▶ the request again, answered from the store
        """
        worker = called(rig)
        worker.hears = False
        worker.finish(1, value=7)
        end_session(rig)
        worker.hears = True
        assert answers(worker) == []
        worker.cut()
        rig.wait(10.0)
        assert [one.result for one in answers(worker)] == [RESULT]
        worker.finish(0)
        assert rig.active() == []

    def test_what_ends_while_there_is_no_session_is_answered_in_the_next(self, rig: Rig) -> None:
        worker = called(rig)
        rig.engine.gateway.end(
            SessionId(rig.engine.gateway.session_of("acme", "w1") or ""),
            errors.SESSION_UNKNOWN,
            rig.now,
        )
        worker.is_online = False
        rig.run()
        worker.finish(1, value=7)
        assert answers(worker) == []
        worker.is_online = True
        rig.wait(10.0)
        assert [one.result for one in answers(worker)] == [RESULT]

    def test_a_restarted_scheduler_answers_from_the_store(self, rig: Rig) -> None:
        worker = called(rig)
        worker.hears = False
        worker.finish(1, value=7)
        worker.hears = True
        rig.restart()
        rig.wait(10.0)
        assert [one.result for one in answers(worker)] == [RESULT]
        assert len(worker.started) == 2
        worker.finish(0)
        assert rig.active() == []

    def test_a_restarted_scheduler_waits_for_an_open_call(self, rig: Rig) -> None:
        worker = called(rig, slots=1)
        rig.restart()
        assert [lease.is_lent for lease in rig.engine.view.leases] == [True, False]
        rig.wait(10.0)
        assert answers(worker) == []
        worker.finish(1, value=7)
        assert [one.result for one in answers(worker)] == [RESULT]
        assert [type(fact) for fact in rig.facts()].count(CallOpened) == 1

    def test_an_answer_for_a_session_that_ended_during_the_commit_is_not_sent(self) -> None:
        rig = Rig()
        worker = called(rig)
        rig.commits = False
        worker.finish(1, value=7)
        end_session(rig)
        rig.commits = True
        rig.commit()
        rig.wait(10.0)
        assert [one.result for one in answers(worker)] == [RESULT]

    def test_nobody_is_answered_while_the_worker_of_the_caller_has_no_session(self) -> None:
        rig = Rig()
        outer = rig.worker("w1", packages={"outer": "1.0"})
        inner = rig.worker("w2")
        rig.submit(wrapped(1, n1={"package_name": "outer"}))
        call(outer)
        rig.restart()
        outer.is_online = False
        rig.wait(5.0)
        inner.finish(value=7)
        assert answers(outer) == []
        outer.is_online = True
        rig.wait(15.0)
        assert [one.result for one in answers(outer)] == [RESULT]


class TestRefusals:
    def test_a_call_from_another_place_of_the_chain_is_refused(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, place=3)
        assert codes(worker) == ["E.NEXT.INVALID"]
        assert rig.counted("call refused") == 1

    def test_a_host_that_calls_is_refused(self, rig: Rig) -> None:
        worker = called(rig)
        call(worker, 1)
        assert codes(worker) == ["E.NEXT.INVALID"]

    @pytest.mark.parametrize("payload", [b"5", b'"x"', b"[{}]", b"true"])
    def test_a_payload_that_cannot_be_parameters_is_refused(self, rig: Rig, payload: bytes) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1))
        call(worker, payload=msgspec.Raw(payload))
        assert codes(worker) == ["E.NEXT.INVALID"]
        assert len(worker.started) == 1

    def test_a_loop_of_calls_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calls, "MAX_CALLS", 1)
        monkeypatch.setattr(calls, "CALLS_PER_TASK", 0)
        rig = Rig()
        worker = called(rig)
        call(worker, 0, "b")
        assert codes(worker) == ["E.NEXT.LIMIT"]

    def test_a_cancelled_run_takes_no_calls(self, rig: Rig, raw: RawWorker) -> None:
        rig.submit(wrapped(1))
        [dispatch] = raw.of(business.Dispatch)
        rig.cancel()
        raw.send(business.NEXT_REQUEST, request(dispatch), dispatch.task_id)
        [answer] = raw.of(business.NextResponse)
        assert (answer.error.code, answer.error.category) == ("E.NEXT.CANCELLED", "CANCELLED")

    def test_a_call_of_an_unknown_task_is_passed_over(self, rig: Rig, raw: RawWorker) -> None:
        rig.submit(wrapped(1))
        rig.new_facts()
        made = business.NextRequest(RunId("run9"), TaskId("run9.0"), 1, "a", 0)
        raw.send(business.NEXT_REQUEST, made, "run9.0")
        assert rig.counted("foreign report") == 1
        assert CallOpened not in rig.new_kinds()
        assert raw.of(business.NextResponse) == []

    def test_a_call_of_another_worker_is_foreign(self, rig: Rig, raw: RawWorker) -> None:
        rig.submit(wrapped(1))
        other = RawWorker(rig, "w2")
        [dispatch] = raw.of(business.Dispatch)
        other.send(business.NEXT_REQUEST, request(dispatch), dispatch.task_id)
        assert rig.counted("foreign report") == 1
        assert other.of(business.NextResponse) == []


class TestLending:
    def test_a_chain_of_three_completes_with_one_slot(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(wrapped(2))
        call(worker)
        call(worker)
        assert [one.node_id for one in worker.started] == ["n1", "n2", "n0"]
        for number in (2, 1, 0):
            worker.finish(number)
        assert rig.active() == []
        [entry] = rig.engine.view.workers
        assert entry.used == 0

    def test_a_slot_that_was_lent_is_taken_again(self, rig: Rig) -> None:
        worker = called(rig, slots=1)
        worker.finish(1)
        rig.submit(make_plan(1), "run2")
        assert len(worker.started) == 2
        worker.finish(0)
        assert worker.started[-1].run_id == "run2"

    def test_a_chain_with_one_key_completes_and_another_run_with_the_key_waits(self) -> None:
        rig = Rig()
        worker = rig.worker()
        key = {"concurrency_key": "printer"}
        rig.submit(wrapped(2, n0=key, n1=key, n2=key))
        rig.submit(make_plan(1, nodes={0: key}), "run2")
        call(worker)
        call(worker)
        rig.wait(2.0)
        assert [one.node_id for one in worker.started] == ["n1", "n2", "n0"]
        for number in (2, 1):
            worker.finish(number)
            assert len(worker.started) == 3
        worker.finish(0)
        assert [one.run_id for one in worker.started] == ["run1"] * 3 + ["run2"]
        worker.finish()
        assert rig.active() == []
        assert len(rig.engine.view.keys) == 0

    def test_two_calls_of_one_caller_do_not_share_its_key(self, rig: Rig, worker: Worker) -> None:
        key = {"concurrency_key": "printer"}
        rig.submit(wrapped(1, n0=key, n1=key))
        call(worker, 0, "a")
        call(worker, 0, "b")
        assert len(worker.started) == 2
        worker.finish(1)
        assert len(worker.started) == 3

    def test_lent_keys_and_slots_are_the_same_after_a_restart(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        key = {"concurrency_key": "printer"}
        rig.submit(wrapped(1, n0=key, n1=key))
        rig.submit(make_plan(1, nodes={0: key}), "run2")
        call(worker)
        rig.restart()
        rig.wait(10.0)
        assert len(worker.started) == 2
        worker.finish(1)
        worker.finish(0)
        assert worker.started[-1].run_id == "run2"


class TestTheEndOfACaller:
    def test_its_call_is_stopped_on_its_worker_before_it_is_tried_again(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1, n1=retrying()))
        call(worker)
        worker.fail(0)
        [stop] = rig.frames(business.CANCEL)
        assert stop.task_id == worker.started[1].task_id
        rig.wait(5.0)
        assert len(worker.started) == 2
        worker.finish(1, "CANCELLED")
        rig.wait(2.0)
        assert worker.tasks()[2] == ("run1.0", 2)

    def test_a_restarted_scheduler_queues_it_only_when_its_call_has_ended(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(wrapped(1, n1=retrying()))
        call(worker)
        worker.fail(0)
        rig.restart()
        rig.wait(8.0)
        assert len(worker.started) == 2
        worker.finish(1, "CANCELLED")
        rig.wait(2.0)
        assert worker.tasks()[2] == ("run1.0", 2)

    def test_a_crashed_worker_takes_its_chain_with_it_and_all_is_done_again(self, rig: Rig) -> None:
        worker = called(rig)
        worker.crash()
        rig.wait(1.0)
        worker.boot()
        rig.wait(5.0)
        assert worker.tasks()[2:] == [("run1.0", 2)]
        call(worker)
        worker.finish()
        worker.finish(2)
        assert rig.active() == []

    def test_nothing_of_its_calls_stays_in_memory(self, rig: Rig) -> None:
        worker = called(rig)
        assert rig.engine.view.runs.calls == [worker.started[1].task_id]
        worker.finish(1)
        worker.finish(0)
        view = rig.engine.view
        assert (view.runs.calls, len(view.runs), view.runs.tasks) == ([], 0, 0)
        assert (len(view.queue), len(view.leases)) == (0, 0)


class TestRebuilds:
    """n0 makes a page; n2, round n1, uses it and calls n1."""

    def lost(self, rig: Rig) -> Worker:
        """A worker on which n2 has failed for want of the page, while its call of n1 still runs."""
        nodes: dict[int, dict[str, Any]] = {
            1: {"middlewares": (2,), "inputs": (), "edges_in": (InEdge(0, "control"),)},
            2: {
                "host": 1,
                "inputs": (InputEdge(0, ("v",), ("page",)),),
                "on_resource_lost": "rebuild",
            },
        }
        features = frozenset({Feature.MIDDLEWARE})
        worker = rig.worker(slots=4)
        rig.submit(make_plan(3, [(0, 1)], nodes=nodes, features=features))
        page = {"resourceRef": {"resourceId": "page", "workerId": "w1", "type": "page"}}
        worker.finish(value=page)
        call(worker)
        assert [one.node_id for one in worker.started] == ["n0", "n2", "n1"]
        error = business.AttemptError(
            errors.RESOURCE_LOST.code, "INFRASTRUCTURE", "it is gone: page", False
        )
        worker.finish(1, "FAILED", error=error)
        return worker

    def test_what_an_attempt_called_is_stopped_before_its_resource_is_made_again(self) -> None:
        rig = Rig()
        worker = self.lost(rig)
        [stop] = worker.of(InterruptAttempt)
        assert stop.task_id == worker.started[2].task_id
        worker.finish(3, value=None)  # the page is there again, the call has not ended
        assert [one.node_id for one in worker.started] == ["n0", "n2", "n1", "n0"]
        assert not rig.task(1).is_terminal

    @pytest.mark.parametrize("first", ["call", "maker"])
    def test_the_attempt_is_made_again_when_both_have_ended(self, first: str, rig: Rig) -> None:
        worker = self.lost(rig)

        def end_call() -> None:
            worker.finish(2, status="CANCELLED")

        def end_maker() -> None:
            page = {"resourceRef": {"resourceId": "page2", "workerId": "w1", "type": "page"}}
            worker.finish(3, value=page)

        for end in (end_call, end_maker) if first == "call" else (end_maker, end_call):
            end()
        rig.wait(1.0)
        assert [one.node_id for one in worker.started] == ["n0", "n2", "n1", "n0", "n2"]
        call(worker)
        worker.finish(-1)
        worker.finish(4)
        assert rig.active() == []

    def test_a_scheduler_that_starts_anew_waits_for_both_too(self, rig: Rig) -> None:
        worker = self.lost(rig)
        worker.finish(3, value=None)
        rig.restart()
        rig.wait(1.0)
        assert [one.node_id for one in worker.started] == ["n0", "n2", "n1", "n0"]
        worker.finish(2, status="CANCELLED")
        rig.wait(1.0)
        assert worker.started[-1].node_id == "n2"
