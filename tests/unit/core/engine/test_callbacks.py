"""Attempts that are pushed to HTTP pools: leases, callbacks, silence, cancel, restarts (PROTOCOL §9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.dispatch import placement
from astraflow.core.dispatch.demand import Demand
from astraflow.core.engine.commands import ConfigurePool, RebindRun, RefusePush, RemovePool
from astraflow.core.engine.effects import AnswerCallback, EndPush, SendDispatch
from astraflow.core.fleet.pools import PoolPackage, PoolRecord
from astraflow.core.fleet.workers import PoolConfigured, PoolRemoved, WorkerEntry
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.callbacks import Beat, Callback, CallbackAnswer, Completed, Started
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    RunFinished,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.workflow.plan import AffinityHint, ResourceRefValue
from tests.tables import each_row
from tests.unit.core.engine.rig import TENANT, Rig
from tests.unit.plans import make_plan, retrying

POOL = "pool/functions"


def record(**changes: Any) -> PoolRecord:
    made = PoolRecord(
        tenant=TENANT,
        name="functions",
        url="https://functions.example",
        packages=(PoolPackage("pkg"),),
        start_timeout_s=20.0,
        heartbeat_interval_s=5.0,
        heartbeat_timeout_s=15.0,
        cancel_grace_s=4.0,
    )
    return msgspec.structs.replace(made, **changes)


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The workers that placement looks at from now on."""
    looks: list[str] = []
    offers = placement.offers

    def counted(worker: WorkerEntry, demand: Demand) -> bool:
        looks.append(worker.worker_id)
        return offers(worker, demand)

    monkeypatch.setattr(placement, "offers", counted)
    return looks


class PoolRig(Rig):
    """An engine with a pool, and what its workers are answered."""

    def __init__(self, result_schemas: str = "warn", **changes: Any) -> None:
        super().__init__(result_schemas=result_schemas)
        self.pool = record(**changes)
        self.execute(ConfigurePool(tenant=TENANT, pool=self.pool))

    @property
    def pushes(self) -> list[SendDispatch]:
        return [one for one in self.shell_effects if isinstance(one, SendDispatch)]

    @property
    def ended(self) -> list[tuple[str, int]]:
        ends = (one for one in self.shell_effects if isinstance(one, EndPush))
        return [(one.task_id, one.attempt) for one in ends]

    def report(
        self, kind: type[Callback], attempt: int = 1, task: int = 0, by: str = "i1", **more: Any
    ) -> CallbackAnswer | errors.AstraflowError | None:
        """The answer to a callback; None: the run is not active."""
        token = object()
        task_id = TaskId(f"run1.{task}")
        fields: dict[str, Any] = {"token_attempt": attempt, "attempt_id": None, **more}
        callback = kind(
            token=token,
            tenant=TENANT,
            run_id=RunId("run1"),
            task_id=task_id,
            attempt=attempt,
            worker_id=by,
            **fields,
        )
        if not self.engine.callback(callback, self.now, self.at):
            return None
        self.run()
        answers = (one for one in self.shell_effects if isinstance(one, AnswerCallback))
        (answer,) = [one.answer for one in answers if one.token is token]
        return answer

    def start(self, **more: Any) -> Any:
        return self.report(Started, **more)

    def beat(self, **more: Any) -> Any:
        return self.report(Beat, **more)

    def complete(self, outcome: str = "SUCCEEDED", **more: Any) -> Any:
        return self.report(Completed, outcome=outcome, **more)

    def restart(self) -> None:
        """As a scheduler does: the pools before the runs."""
        made = self._new_engine
        self._new_engine = self._with_pool(made)  # type: ignore[method-assign]
        try:
            super().restart()
        finally:
            self._new_engine = made  # type: ignore[method-assign]
        self.run()

    def _with_pool(self, make: Any) -> Any:
        def made() -> Any:
            engine = make()
            engine.restore_pool(self.pool)
            return engine

        return made


def code_of(answer: Any) -> str:
    assert isinstance(answer, errors.Conflict), answer
    return answer.code.code


@pytest.fixture
def rig() -> PoolRig:
    return PoolRig()


class TestResultSchemas:
    @each_row("policy", ["warn", "fail"])
    def test_a_result_that_does_not_fit_its_schema(self, policy: str) -> None:
        rig = PoolRig(policy)
        rig.submit(
            make_plan(1, nodes={0: {"results_schema": 0}}, schemas=(b'{"required": ["a"]}',))
        )
        rig.start()
        answer = rig.complete(output=msgspec.Raw(b"{}"))
        expected = [TaskSucceeded] if policy == "warn" else [TaskFailed]
        assert [type(one) for one in rig.facts()][-2:-1] == expected
        assert answer.final_state == ("SUCCEEDED" if policy == "warn" else "FAILED")


class TestPlacing:
    def test_an_attempt_is_leased_for_its_start_and_pushed(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {"timeout_s": 7.5}}))
        assert rig.new_facts()[2:] == [TaskLeased(0, 0, 1, POOL, 0, 20_000)]
        (push,) = rig.pushes
        assert push.channel == rig.pool
        assert push.workflow_id == "wf"
        assert push.dispatch.constraints.timeout_ms == 7500
        assert rig.frames("biz.exec.dispatch") == []

    def test_a_worker_with_room_comes_first(self, rig: PoolRig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(2))
        assert len(worker.started) == 1
        assert len(rig.pushes) == 1

    @each_row(
        "node",
        [
            {"resource_refs": (ResourceRefValue("r", None, "file"),)},
            {"affinity": AffinityHint("model", "sticky")},
            {"package_name": "other"},
            {"worker_labels": (("gpu", "yes"),)},
        ],
    )
    def test_what_needs_a_session_does_not_go_there(self, node: dict[str, Any]) -> None:
        rig = PoolRig()
        rig.submit(make_plan(1, nodes={0: node}))
        assert not rig.pushes

    def test_its_name_is_a_label(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {"worker_labels": (("pool", "functions"),)}}))
        assert len(rig.pushes) == 1

    def test_a_version_that_it_does_not_offer(self) -> None:
        rig = PoolRig(packages=(PoolPackage("pkg", "2.0"),))
        rig.submit(make_plan(1))
        assert not rig.pushes

    def test_slots_bound_what_is_under_way(self) -> None:
        rig = PoolRig(max_parallel=2)
        rig.submit(make_plan(3))
        assert len(rig.pushes) == 2
        rig.complete()
        assert len(rig.pushes) == 3

    def test_the_cost_of_a_dispatch_does_not_grow_with_the_pools(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig = PoolRig()
        pools = 1_000
        for number in range(pools):
            made = record(name=f"p{number}", max_parallel=1)
            rig.execute(ConfigurePool(tenant=TENANT, pool=made))
        labels = [{"worker_labels": (("pool", f"p{number}"),)} for number in range(pools)]
        # Two for each pool: one is pushed, the other waits for its slot.
        looks = counted_looks(monkeypatch)
        rig.submit(make_plan(2 * pools, nodes=dict(enumerate(labels * 2))))
        assert len(rig.pushes) == pools
        assert len(looks) <= 8 * pools
        looks.clear()
        rig.complete(task=500)
        assert len(rig.pushes) == pools + 1
        assert rig.pushes[-1].dispatch.task_id == f"run1.{pools + 500}"
        # What waits for other pools is not looked at again.
        assert len(looks) <= 8

    def test_a_paused_pool_gets_nothing(self) -> None:
        rig = PoolRig(is_paused=True)
        rig.submit(make_plan(1))
        assert not rig.pushes
        rig.execute(ConfigurePool(tenant=TENANT, pool=record()))
        assert len(rig.pushes) == 1


class TestCallbacks:
    def test_from_the_start_to_the_result(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.new_facts()
        assert rig.start() == CallbackAnswer()
        assert rig.beat() == CallbackAnswer()
        assert rig.beat(progress=0.5, message="half") == CallbackAnswer()
        output = msgspec.Raw(b'{"v":1}')
        assert rig.complete(output=output) == CallbackAnswer(final_state="SUCCEEDED")
        assert rig.new_facts() == [
            AttemptStarted(0, 0, 1, "i1", 15_000),
            AttemptProgressed(0, 0, 1, 0.5, "half"),
            TaskSucceeded(0, 0, 1, output),
            RunFinished(0, "succeeded"),
        ]
        assert rig.ended == [("run1.0", 1)]
        assert rig.complete() is None

    def test_nothing_is_answered_before_the_commit(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.commits = False
        with pytest.raises(ValueError, match="not enough values"):
            rig.start()
        rig.commit()
        rig.run()
        assert [one.answer for one in rig.shell_effects if isinstance(one, AnswerCallback)] == [
            CallbackAnswer()
        ]

    def test_another_tenant_and_another_run_are_not_found(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        common: dict[str, Any] = {"token": None, "task_id": TaskId("run1.0"), "token_attempt": 1}
        common |= {"attempt": 1, "attempt_id": None, "worker_id": "i"}
        for tenant, run_id in (("umbrella", "run1"), (TENANT, "run2")):
            stranger = Started(tenant=tenant, run_id=RunId(run_id), **common)
            assert not rig.engine.callback(stranger, rig.now, rig.at)
        assert not isinstance(rig.new_facts()[-1], AttemptStarted)

    def test_a_timeout_counts_from_the_start(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {"timeout_s": 5.0}}))
        rig.wait(15)
        assert rig.start() == CallbackAnswer()
        rig.wait(9)
        assert rig.beat() == CallbackAnswer()
        rig.wait(2)
        told = rig.beat()
        assert told == CallbackAnswer(should_cancel=True, cancel_reason="timeout")
        assert rig.complete("CANCELLED") == CallbackAnswer(final_state="FAILED")
        assert isinstance(rig.new_facts()[-2], TaskFailed)

    def test_a_timeout_that_is_retried_needs_proof(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {**retrying(2), "timeout_s": 5.0}}))
        rig.start()
        rig.wait(10.5)
        assert rig.beat().should_cancel
        rig.wait(4.5)
        assert code_of(rig.beat()) == "task_expired"
        rig.wait(16)
        assert any(isinstance(fact, AttemptFailed) for fact in rig.new_facts())


class TestSilence:
    def test_nobody_starts_it(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.wait(20.1)
        (lost,) = [fact for fact in rig.new_facts() if isinstance(fact, AttemptLost)]
        assert lost.cause == "no worker started it in time"
        assert rig.ended == [("run1.0", 1)]
        rig.wait(6)
        assert len(rig.pushes) == 2

    def test_a_late_report_of_a_lost_attempt_counts_and_a_late_start_does_not(
        self, rig: PoolRig
    ) -> None:
        rig.submit(make_plan(1))
        rig.wait(20.1)
        assert code_of(rig.start()) == "task_already_terminal"
        assert code_of(rig.beat()) == "task_expired"
        assert rig.complete() == CallbackAnswer(final_state="SUCCEEDED")

    def test_heartbeats_stop(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.wait(14)
        assert rig.beat() == CallbackAnswer()
        rig.wait(14)
        assert rig.task().is_held
        rig.wait(2)
        failed, finished = rig.new_facts()[-2:]
        assert isinstance(failed, TaskFailed)
        assert failed.error.code == "HEARTBEAT_TIMEOUT"
        assert not failed.confirmed
        assert isinstance(finished, RunFinished)

    def test_the_policy_gives_another_attempt(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: retrying(2)}))
        rig.start()
        rig.wait(30)
        assert len(rig.pushes) == 2
        assert code_of(rig.beat(attempt=1)) == "attempt_mismatch"
        assert rig.start(attempt=2) == CallbackAnswer()

    def test_a_package_that_must_not_run_twice(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {**retrying(2), "idempotency": "none"}}))
        rig.start()
        rig.wait(16)
        assert len(rig.pushes) == 1
        assert any(isinstance(fact, TaskFailed) for fact in rig.new_facts())

    def test_a_push_that_reached_nobody_is_given_away(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        command = RefusePush(
            tenant=TENANT,
            task_id=TaskId("run1.0"),
            attempt=1,
            code=errors.DISPATCH_PUSH_REFUSED.code,
            message="refused",
        )
        rig.execute(command)
        assert isinstance(rig.new_facts()[-1], AttemptRefused)
        rig.execute(command)
        rig.wait(1)
        rig.start(attempt=2)
        rig.execute(msgspec.structs.replace(command, attempt=2))
        assert rig.task().is_held


class TestCancel:
    def test_before_the_start_it_is_over_at_once(self, rig: PoolRig) -> None:
        rig.submit(make_plan(2, [(0, 1)]))
        rig.cancel()
        assert [type(fact) for fact in rig.new_facts()[-3:]] == [
            TaskCancelled,
            TaskCancelled,
            RunFinished,
        ]
        assert rig.ended == [("run1.0", 1)]

    def test_it_is_told_by_the_next_answer_and_the_grace_counts_from_there(
        self, rig: PoolRig
    ) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.cancel()
        rig.wait(10)
        told = CallbackAnswer(should_cancel=True, cancel_reason="user_requested")
        assert rig.beat() == told
        rig.wait(3)
        assert rig.beat() == told
        rig.wait(1.1)
        failed = rig.new_facts()[-2]
        assert isinstance(failed, TaskFailed)
        assert failed.error.code == "CANCEL_TIMEOUT"

    def test_a_repeated_start_is_told_too(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.cancel()
        assert code_of(rig.start()) == "task_already_terminal"
        rig.wait(4.1)
        assert isinstance(rig.new_facts()[-1], RunFinished)

    def test_it_is_confirmed_with_what_was_done(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.cancel()
        partial = msgspec.Raw(b'{"rows":3}')
        answer = rig.complete("CANCELLED", phase="loading", partial=partial)
        assert answer == CallbackAnswer(final_state="CANCELLED")
        assert rig.new_facts()[-2] == TaskCancelled(0, 0, 1, True, "loading", partial)

    def test_a_silent_one_ends_with_its_lease(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.cancel()
        rig.wait(16)
        failed = rig.new_facts()[-2]
        assert isinstance(failed, TaskFailed)
        assert failed.error.code == "HEARTBEAT_TIMEOUT"

    def test_nobody_has_cancelled_it(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: retrying(3)}))
        rig.start()
        assert rig.complete("CANCELLED") == CallbackAnswer(final_state="FAILED")
        failed = rig.new_facts()[-2]
        assert isinstance(failed, TaskFailed)
        assert failed.error.category == "CANCELLED"

    def test_the_output_of_a_failure_is_kept(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        error = TaskFailure("E.RUNNER.FAILURE", "DATA_QUALITY", "bad")
        output = msgspec.Raw(b'{"rows":3}')
        rig.complete("FAILED", error=error, output=output)
        assert rig.new_facts()[-2] == TaskFailed(0, 0, 1, error, True, output)


class TestRestarts:
    def test_a_push_that_nobody_started_is_repeated(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.restart()
        first, second = rig.pushes
        assert first.dispatch == second.dispatch
        rig.wait(19)
        assert rig.start() == CallbackAnswer()

    def test_a_started_attempt_has_one_full_timeout(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1, nodes={0: {"timeout_s": 60.0}}))
        rig.start()
        rig.wait(14)
        rig.restart()
        assert len(rig.pushes) == 1
        rig.wait(14)
        assert rig.beat() == CallbackAnswer()
        assert code_of(rig.start(by="i2")) == "already_started"
        rig.wait(14)
        assert rig.complete() == CallbackAnswer(final_state="SUCCEEDED")

    def test_a_cancel_is_told_again(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.start()
        rig.cancel()
        assert rig.beat().should_cancel
        rig.restart()
        assert rig.beat().should_cancel
        rig.wait(4.1)
        assert isinstance(rig.new_facts()[-1], RunFinished)

    def test_a_join_of_any_is_pushed_as_another_attempt(self, rig: PoolRig) -> None:
        plan = make_plan(3, [(0, 2), (1, 2)], reads=True, nodes={2: {"join": "any"}})
        rig.submit(plan)
        rig.complete(task=0, output=msgspec.Raw(b'{"v":1}'))
        rig.complete(task=1, output=msgspec.Raw(b'{"v":2}'))
        assert rig.task(2).attempt == 1
        rig.restart()
        rig.wait(1)
        assert rig.task(2).attempt == 2
        assert code_of(rig.start(task=2, attempt=1)) == "attempt_mismatch"

    def test_rebinding_takes_an_unstarted_push_back(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        rig.execute(RebindRun(tenant=TENANT, run_id=RunId("run1"), restart=True))
        assert isinstance(rig.new_facts()[-1], AttemptLost)
        rig.wait(1)
        rig.start(attempt=2)
        rig.execute(RebindRun(tenant=TENANT, run_id=RunId("run1"), restart=True))
        assert rig.beat(attempt=2).cancel_reason == "rebind"
        rig.complete("CANCELLED", attempt=2)
        assert isinstance(rig.new_facts()[-1], AttemptLost)


class TestPools:
    @each_row(
        ("change", "pointer"),
        [
            ({"heartbeat_timeout_s": 9.0}, "/heartbeatTimeoutSeconds"),
            ({"heartbeat_interval_s": 0.0}, "/heartbeatIntervalSeconds"),
            ({"heartbeat_interval_s": float("nan")}, "/heartbeatIntervalSeconds"),
            ({"start_timeout_s": -1.0}, "/startTimeoutSeconds"),
            ({"cancel_grace_s": 1e9}, "/cancelGraceSeconds"),
            ({"token_ttl_s": 0}, "/tokenTtlSeconds"),
            ({"token_ttl_s": 7_201}, "/tokenTtlSeconds"),
        ],
    )
    def test_numbers_that_could_not_work(self, change: dict[str, Any], pointer: str) -> None:
        rig = Rig()
        with pytest.raises(errors.Refused) as refused:
            rig.execute(ConfigurePool(tenant=TENANT, pool=record(**change)))
        assert refused.value.pointer == pointer
        assert not rig.recorded(PoolConfigured)

    def test_removing(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        with pytest.raises(errors.Conflict):
            rig.execute(RemovePool(tenant=TENANT, name="functions"))
        rig.complete()
        rig.execute(RemovePool(tenant=TENANT, name="functions"))
        assert len(rig.recorded(PoolRemoved)) == 1
        with pytest.raises(errors.NotFound):
            rig.execute(RemovePool(tenant=TENANT, name="functions"))
        assert rig.engine.ask.pools(TENANT) == []

    def test_what_shells_ask(self, rig: PoolRig) -> None:
        rig.submit(make_plan(1))
        assert [one.pool for one in rig.engine.ask.pools(TENANT)] == [rig.pool]
        assert rig.engine.ask.pool_of(TENANT, TaskId("run1.0"), 1) == rig.pool
        assert rig.engine.ask.pool_of(TENANT, TaskId("run1.0"), 2) is None
        ((task, until),) = rig.engine.ask.unacked(rig.run_of())
        assert (task, until) == (0, rig.now + 20.0)
