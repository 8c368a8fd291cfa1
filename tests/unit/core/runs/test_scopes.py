"""Nodes with a body: containers, calls of other workflows, and maps."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core.dispatch.demand import bind_task
from astraflow.core.expressions import ExpressionError
from astraflow.core.ids import NodeId
from astraflow.core.runs import scope_opening, scope_rules
from astraflow.core.runs.commands import (
    Cancel,
    Collect,
    EndWait,
    LeaseTask,
    Lose,
    Report,
    RunCommand,
    TakeList,
)
from astraflow.core.runs.consequences import (
    EnqueueTask,
    StopAttempt,
    StoreCollected,
    UnqueueTask,
    WatchParked,
)
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import (
    ScopeClosing,
    ScopeOpened,
    TaskFact,
    TaskFailure,
    WaitReason,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of, view_run
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import find_task, view_body, view_items, view_whole
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow import plan_workflow, validate
from astraflow.core.workflow.plan import Plan
from tests.tables import each_row
from tests.unit.core.workflow.drafts import CORE, definition, edge, found, node, plan, uid
from tests.unit.plans import AT, start

BOX = "core.container"
STORED = {"resourceRef": {"resourceId": "r", "workerId": "w", "type": "astraflow.value"}}
BOOM = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom")


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


class Playing:
    """A run whose queued tasks are taken one after the other, as the test says."""

    def __init__(self, made: Plan, **inputs: Any) -> None:
        self.plan = made
        decision = start(made, inputs=msgspec.Raw(msgspec.json.encode(inputs)))
        self.run: RunRecord = decision.run
        self.facts = list(decision.facts)
        self.queued: list[int] = []
        self.consequences: list[Any] = []
        self._take(decision)

    def _take(self, decision: Any) -> None:
        self.consequences = decision.consequences
        for one in decision.consequences:
            if isinstance(one, EnqueueTask):
                self.queued.append(one.task)
            elif isinstance(one, UnqueueTask) and one.task in self.queued:
                self.queued.remove(one.task)
        self.run.check()
        again = replay(self.plan, self.facts)
        again.check()
        assert view_run(again) == view_run(self.run), "the fold of its facts is another run"

    def give(self, command: RunCommand) -> None:
        decision = decide(self.run, command, AT, Random(1))
        self.facts += decision.facts
        self._take(decision)

    def given(self, task: int) -> Any:
        return msgspec.json.decode(bind_task(self.run, task)[0])

    def lease(self, task: int) -> None:
        self.queued.remove(task)
        self.give(LeaseTask(task, "w1", 1, 30_000))

    def end(self, task: int, outcome: Any = None) -> None:
        attempt = self.run.tasks[task].attempt
        if isinstance(outcome, TaskFailure):
            self.give(Report(task, attempt, "w1", "FAILED", error=outcome))
        else:
            result = self.given(task) if outcome is None else outcome
            raw = msgspec.Raw(msgspec.json.encode(result))
            self.give(Report(task, attempt, "w1", "SUCCEEDED", raw))

    def play(self, outcome: Any = None) -> Playing:
        """Run all that is queued, each to the outcome that the function of its parameters gives."""
        while self.queued:
            task = self.queued[0]
            self.lease(task)
            self.end(task, outcome(self.given(task)) if callable(outcome) else outcome)
        return self

    def result(self, number: int) -> Any:
        raw = self.run.tasks[self.run.plan.index[NodeId(uid(number))]].result
        return None if raw is None else msgspec.json.decode(raw)

    def status(self, number: int) -> str:
        nodes = {one.node_id: one for one in view_whole(self.run, {}, {}).nodes}
        one = nodes[uid(number)]
        return one.status if one.error is None else f"{one.status} {one.error.code}"


def echo(number: int, **fields: Any) -> dict[str, Any]:
    return node(number, "core.echo", **fields)


class TestMaps:
    def test_each_item_takes_the_place_of_the_list(self) -> None:
        made = plan([echo(1, parameters={"value": [3, "a", None]}, map={"over": "value"})])
        played = Playing(made)
        assert [played.given(task) for task in played.queued] == [
            {"value": 3},
            {"value": "a"},
            {"value": None},
        ]
        played.play()
        assert played.result(1) == {"items": [{"value": 3}, {"value": "a"}, {"value": None}]}
        assert played.run.status == "succeeded"

    def test_results_stand_in_the_order_of_the_items_not_of_their_ends(self) -> None:
        made = plan([echo(1, parameters={"value": [1, 2, 3]}, map={"over": "parameters.value"})])
        played = Playing(made)
        tasks = list(played.queued)
        for task in tasks:
            played.lease(task)
        for task in reversed(tasks):
            played.end(task)
        assert played.result(1) == {"items": [{"value": 1}, {"value": 2}, {"value": 3}]}

    def test_an_expression_gives_the_list_and_others_read_the_item(self) -> None:
        parameters = {"value": {"n": "=row.n * 2", "at": "=index", "all": "=inputs.k"}}
        over = {"over": "=inputs.rows", "item": "row", "collect": "doubled"}
        made = plan(
            [echo(1, parameters=parameters, map=over)], inputs={"rows": {}, "k": {"default": 7}}
        )
        played = Playing(made, rows=[{"n": 4}, {"n": 5}], k=7).play()
        assert played.result(1) == {
            "doubled": [
                {"value": {"n": 8, "at": 0, "all": 7}, "row": {"n": 4}},
                {"value": {"n": 10, "at": 1, "all": 7}, "row": {"n": 5}},
            ]
        }

    def test_ports_of_a_map_carry_lists(self) -> None:
        nodes = [
            echo(1, parameters={"value": [1, 2]}),
            echo(2, map={"over": "value"}),
            echo(3),
            echo(4),
        ]
        edges = [edge("1.value", "2.value"), edge("2.value", "3.value"), edge("2.items", "4.value")]
        outputs = {"all": {"source": {"node": uid(2), "port": "value"}}}
        played = Playing(plan(nodes, edges, outputs=outputs)).play()
        assert played.result(3) == {"value": [1, 2]}
        assert played.result(4) == {"value": [{"value": 1}, {"value": 2}]}
        assert msgspec.json.decode(view_run(played.run).outputs["all"]) == [1, 2]

    def test_an_empty_list_is_done_at_once(self) -> None:
        made = plan(
            [echo(1, parameters={"value": []}, map={"over": "value"}), echo(2)], [edge(1, 2)]
        )
        played = Playing(made)
        assert played.result(1) == {"items": []}
        assert played.queued == [1]
        over = {"over": "value", "failurePolicy": "collect"}
        played = Playing(plan([echo(1, parameters={"value": []}, map=over)]))
        assert played.result(1) == {"items": [], "errors": []}

    @each_row("value", [None, "abc", {"a": 1}, 7])
    def test_what_is_no_list_fails_the_node(self, value: Any) -> None:
        played = Playing(plan([echo(1, parameters={"value": value}, map={"over": "value"})]))
        assert played.status(1) == "failed E.TASK.INPUT_INVALID"
        assert played.run.status == "failed"

    @each_row("over", ["value", "=nodes.first.results.value"])
    def test_a_list_that_is_stored_by_reference_is_read_first(self, over: str) -> None:
        nodes = [echo(1, label="first"), echo(2, map={"over": over})]
        played = Playing(plan(nodes, [edge("1.value", "2.value")]))
        played.lease(0)
        played.end(0, {"value": STORED})
        assert EnqueueTask(1) in played.consequences
        assert played.status(2) == "waiting"
        assert played.run.tasks[1].waiting_for == WaitReason("resource", "the list of the map: r")
        assert scope_opening.awaited_list(played.run, 1) == "r"
        played.give(TakeList(1, "another", raw([1])))
        assert played.consequences == [], "it is not what the map waits for"
        played.give(TakeList(1, "r", raw([7, 8])))
        assert played.consequences == [EnqueueTask(2), EnqueueTask(3)]
        assert list(map(bytes, played.run.scopes[1].items)) == [b"7", b"8"]
        if over == "value":
            assert [played.given(task) for task in (2, 3)] == [{"value": 7}, {"value": 8}]
        played.give(TakeList(1, "r", raw([7, 8])))
        assert played.consequences == [], "an answer that comes twice opens nothing"
        assert replay(played.plan, played.facts).scopes[1].count == 2

    def test_a_stored_list_has_the_bounds_of_any_other(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scope_opening, "MAX_ITEMS", 2)
        made = plan([echo(1, parameters={"value": STORED}, map={"over": "value"})])
        for items, status in (
            ([1, 2, 3], "failed E.TASK.TOO_MANY"),
            ({"a": 1}, "failed E.TASK.INPUT_INVALID"),
            ("abc", "failed E.TASK.INPUT_INVALID"),
            ([], "succeeded"),
        ):
            played = Playing(made)
            played.give(TakeList(0, "r", raw(items)))
            assert played.status(1) == status
            assert played.run.is_terminal

    def test_a_parameter_that_has_no_value_by_then_fails_the_node(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any) -> bytes:
            raise ExpressionError("gone")

        played = Playing(plan([echo(1, parameters={"value": STORED}, map={"over": "value"})]))
        monkeypatch.setattr(scope_opening, "bind_parameters", broken)
        played.give(TakeList(0, "r", raw([1])))
        assert played.status(1) == "failed E.TASK.EXPRESSION"

    def test_a_map_that_waits_for_its_list_can_be_cancelled(self) -> None:
        played = Playing(plan([echo(1, parameters={"value": STORED}, map={"over": "value"})]))
        played.give(Cancel("ann", 5))
        assert played.run.status == "cancelled"
        played.give(TakeList(0, "r", raw([1])))
        assert played.consequences == []

    def test_what_only_looks_like_a_stored_list_is_none(self) -> None:
        ref = {"resourceRef": {"resourceId": 7, "type": "astraflow.value"}}
        played = Playing(plan([echo(1, parameters={"value": ref}, map={"over": "value"})]))
        assert played.status(1) == "failed E.TASK.INPUT_INVALID"

    def test_too_many_items_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scope_opening, "MAX_ITEMS", 2)
        made = plan([echo(1, parameters={"value": [1, 2, 3]}, map={"over": "value"})])
        assert Playing(made).status(1) == "failed E.TASK.TOO_MANY"
        monkeypatch.setattr(scope_opening, "MAX_ITEMS", 3)
        monkeypatch.setattr(scope_opening, "MAX_RUN_TASKS", 3)
        assert Playing(made).status(1) == "failed E.TASK.TOO_MANY"

    def test_no_more_items_than_the_limit_are_under_way(self) -> None:
        made = plan(
            [echo(1, parameters={"value": list(range(5))}, map={"over": "value", "concurrency": 2})]
        )
        played = Playing(made)
        assert len(played.queued) == 2
        first, second = played.queued
        played.lease(first)
        played.lease(second)
        assert played.queued == []
        played.end(second)
        assert played.queued == [3]
        played.end(first)
        assert played.queued == [3, 4]
        assert played.play().result(1) == {"items": [{"value": one} for one in range(5)]}

    def test_an_item_is_retried_by_the_setting_of_its_node(self) -> None:
        retry = {"maxAttempts": 2, "backoff": {"initialSeconds": 0}}
        made = plan([echo(1, parameters={"value": [1, 2]}, map={"over": "value"}, retry=retry)])
        played = Playing(made)
        task = played.queued[0]
        played.lease(task)
        played.end(task, BOOM)
        assert task in played.queued
        assert played.play().run.status == "succeeded"
        assert played.run.tasks[task].failures == 1

    def test_a_failed_item_stops_the_others(self) -> None:
        over = {"over": "value", "concurrency": 3}
        made = plan([echo(1, parameters={"value": list(range(6))}, map=over)])
        played = Playing(made)
        one, two, three = played.queued
        played.lease(one)
        played.lease(two)
        played.end(one, BOOM)
        assert [type(fact) for fact in played.facts].count(ScopeClosing) == 1
        assert played.queued == []
        [stop] = [one for one in played.consequences if isinstance(one, StopAttempt)]
        assert (stop.task, stop.why) == (two, "cancel")
        assert played.status(1) == "running"
        played.give(Report(two, 1, "w1", "CANCELLED"))
        assert played.status(1) == "failed E.RUNNER.FAILURE"
        error = view_run(played.run).nodes[0].error
        assert error is not None
        assert error.message == "item 0: boom"
        words = [item.status for item in view_items(played.run, 0, 0, 10)]
        assert words == ["failed"] + ["cancelled"] * 5
        assert played.run.status == "failed"
        assert three not in played.queued

    def test_an_attempt_that_is_lost_while_the_map_closes_is_not_repeated(self) -> None:
        made = plan([echo(1, parameters={"value": [1, 2]}, map={"over": "value"})])
        played = Playing(made)
        one, two = played.queued
        played.lease(one)
        played.lease(two)
        played.end(one, BOOM)
        played.give(Lose(two, 1, "gone"))
        assert played.queued == []
        assert played.run.status == "failed"

    def test_finish_lets_the_others_end_and_then_fails(self) -> None:
        over = {"over": "value", "failurePolicy": "finish"}
        made = plan([echo(1, parameters={"value": [1, 2, 3]}, map=over)])
        played = Playing(made).play(lambda given: BOOM if given["value"] == 2 else None)
        assert [item.status for item in view_items(played.run, 0, 0, 10)] == [
            "succeeded",
            "failed",
            "succeeded",
        ]
        assert played.status(1) == "failed E.RUNNER.FAILURE"

    def test_collect_lists_the_errors_and_goes_on(self) -> None:
        over = {"over": "value", "failurePolicy": "collect"}
        nodes = [echo(1, parameters={"value": [1, 2, 3]}, map=over), echo(2), echo(3)]
        edges = [edge("1.value", "2.value"), edge("1.errors", "3.value")]
        played = Playing(plan(nodes, edges)).play(
            lambda given: BOOM if given.get("value") == 2 else None
        )
        problem = {
            "index": 1,
            "code": "E.RUNNER.FAILURE",
            "category": "USER_CODE",
            "message": "boom",
        }
        assert played.result(1) == {
            "items": [{"value": 1}, None, {"value": 3}],
            "errors": [problem],
        }
        assert played.result(2) == {"value": [1, None, 3]}
        assert played.result(3) == {"value": [problem]}
        assert played.run.status == "succeeded"

    def test_a_cancelled_run_cancels_items_that_have_not_begun_with_one_fact(self) -> None:
        over = {"over": "value", "concurrency": 1}
        made = plan([echo(1, parameters={"value": list(range(9))}, map=over)])
        played = Playing(made)
        played.lease(1)
        before = len(played.facts)
        played.give(Cancel("ann", 5))
        assert len(played.facts) == before + 3  # cancel, closing, stop
        assert played.status(1) == "running"
        played.give(Report(1, 1, "w1", "CANCELLED"))
        assert played.run.status == "cancelled"
        assert played.status(1) == "cancelled"

    def test_results_that_are_too_large_together_are_stored_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scope_rules, "MAX_COLLECTED_BYTES", 20)
        nodes = [
            echo(1, parameters={"value": [1, 2]}, map={"over": "value"}),
            echo(2),
        ]
        ref = {"resourceRef": {"resourceId": "r", "type": "astraflow.value"}}
        raw = msgspec.Raw(msgspec.json.encode(ref))
        played = Playing(plan(nodes, [edge("1.items", "2.value")])).play()
        assert StoreCollected(0) in played.consequences
        assert scope_rules.collected_list(played.run, 0) == b'[{"value":1},{"value":2}]'
        assert played.status(1) == "running"
        played.give(EndWait(0))  # after a restart
        assert played.consequences == [StoreCollected(0)]
        played.give(Collect(0, raw))
        assert played.result(1) == {"items": ref}
        assert [played.given(task) for task in played.queued] == [{"value": ref}]
        played.give(Collect(0, raw))
        assert played.consequences == []

    def test_a_port_cannot_look_into_results_that_are_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scope_rules, "MAX_COLLECTED_BYTES", 20)
        nodes = [echo(1, parameters={"value": [1, 2]}, map={"over": "value"}), echo(2)]
        ref = {"resourceRef": {"resourceId": "r", "type": "astraflow.value"}}
        played = Playing(plan(nodes, [edge("1.value", "2.value")])).play()
        played.give(Collect(0, msgspec.Raw(msgspec.json.encode(ref))))
        with pytest.raises(ExpressionError, match="stored by reference"):
            played.given(1)

    def test_results_that_cannot_be_stored_fail_the_node(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scope_rules, "MAX_COLLECTED_BYTES", 20)
        over = {"over": "value", "failurePolicy": "collect"}
        played = Playing(plan([echo(1, parameters={"value": [1, 2]}, map=over)])).play()
        played.give(Collect(0, None, "the bucket is away"))
        assert played.status(1) == "failed E.RESULT.NOT_STORED"

    def test_a_condition_and_a_disabled_node_are_of_the_whole_map(self) -> None:
        nodes = [
            echo(1, parameters={"value": [1]}, map={"over": "value"}, when="1 > 2"),
            echo(2, parameters={"value": [1]}, map={"over": "value"}, disabled=True),
        ]
        played = Playing(plan(nodes))
        assert played.status(1) == "skipped E.TASK.CONDITION_FALSE"
        assert played.result(2) == {"value": [1]}

    def test_a_wait_is_mapped_as_any_other_node(self) -> None:
        made = plan([node(1, "core.signal", signal={"name": "=item"}, map={"over": "=['a', 'b']"})])
        played = Playing(made)
        assert sorted(played.run.parked) == [1, 2]


class TestContainers:
    def container(self, **fields: Any) -> Plan:
        nodes = [
            echo(1, parameters={"value": 4}),
            node(2, BOX, label="box", **fields),
            echo(3, parent=uid(2), label="inner"),
            echo(4, parent=uid(2), parameters={"value": "=nodes.inner.results.value + 1"}),
            echo(5),
        ]
        edges = [
            edge("1.value", "2.input"),
            edge("2.input", "3.value"),
            edge(3, 4),
            edge("4.value", "2.output"),
            edge("2.output", "5.value"),
        ]
        return plan(nodes, edges)

    def test_what_is_inside_runs_between_its_input_and_its_output(self) -> None:
        played = Playing(self.container())
        assert played.status(3) == "pending"
        played.play()
        assert played.result(2) == {"output": 5}
        assert played.result(5) == {"value": 5}
        assert [played.status(number) for number in range(1, 6)] == ["succeeded"] * 5

    def test_a_failure_inside_fails_the_container_and_skips_what_follows(self) -> None:
        played = Playing(self.container())
        played.lease(0)
        played.end(0)
        played.lease(3)
        played.end(3, BOOM)
        assert played.status(2) == "failed E.RUNNER.FAILURE"
        assert played.status(4) == "skipped E.TASK.UPSTREAM_FAILED"
        assert played.status(5) == "skipped E.TASK.UPSTREAM_FAILED"
        assert played.run.status == "failed"
        assert played.run.error is not None
        assert played.run.error.message == "node inner: boom"

    def test_a_failure_that_is_handled_inside_is_none(self) -> None:
        nodes = [
            node(1, BOX, container={"failurePolicy": "stop"}),
            echo(2, parent=uid(1), label="bad", parameters={"value": "bad"}),
            echo(3, parent=uid(1)),
        ]
        made = plan(nodes, [edge("2.error", "3.value"), edge("3.value", "1.output")])
        played = Playing(made).play(lambda given: BOOM if given == {"value": "bad"} else None)
        assert played.result(1)["output"]["code"] == "E.RUNNER.FAILURE"
        assert played.run.status == "succeeded"

    def test_a_container_may_stop_the_rest_at_the_first_failure(self) -> None:
        nodes = [
            node(1, BOX, container={"failurePolicy": "stop"}),
            echo(2, parent=uid(1)),
            echo(3, parent=uid(1)),
        ]
        played = Playing(plan(nodes))
        one, two = played.queued
        played.lease(one)
        played.end(one, BOOM)
        assert played.queued == []
        assert played.status(3) == "cancelled"
        assert two not in played.queued
        assert played.run.status == "failed"

    def test_a_failure_can_be_taken_up_outside(self) -> None:
        nodes = [node(1, BOX), echo(2, parent=uid(1)), echo(3)]
        played = Playing(plan(nodes, [edge("1.error", "3.value")]))
        task = played.queued[0]
        played.lease(task)
        played.end(task, BOOM)
        assert played.play().run.status == "succeeded"
        assert played.result(3)["value"]["message"] == f"node {echo(2)['type']}: boom"

    def test_an_expression_reads_what_the_container_was_given(self) -> None:
        nodes = [
            node(1, BOX, parameters={"input": {"a": 1}}),
            echo(2, parent=uid(1), parameters={"value": "=container.input.a + 1"}),
        ]
        played = Playing(plan(nodes))
        assert played.given(played.queued[0]) == {"value": 2}

    def test_inside_a_container_nodes_beside_it_are_known(self) -> None:
        nodes = [
            echo(1, label="first", parameters={"value": 3}),
            node(2, BOX),
            node(3, BOX, parent=uid(2)),
            echo(4, parent=uid(3), parameters={"value": "=nodes.first.results.value"}),
        ]
        played = Playing(plan(nodes, [edge(1, 2)])).play()
        assert view_body(played.run, find_task(played.run, uid(3)), 0)[0].result == msgspec.Raw(
            b'{"value":3}'
        )

    def test_a_container_is_mapped_with_all_that_is_inside(self) -> None:
        nodes = [
            node(1, BOX, map={"over": "=[1, 2, 3]", "item": "input", "concurrency": 1}),
            echo(2, parent=uid(1), label="a"),
            echo(3, parent=uid(1), parameters={"value": "=nodes.a.results.value * 10 + index"}),
        ]
        edges = [edge("1.input", "2.value"), edge(2, 3), edge("3.value", "1.output")]
        played = Playing(plan(nodes, edges))
        assert len(played.queued) == 1
        played.play()
        assert played.result(1) == {"items": [{"output": 10}, {"output": 21}, {"output": 32}]}
        counts = {one.node_id: one.items for one in view_whole(played.run, {}, {}).nodes}
        inner = counts[uid(2)]
        assert inner is not None
        assert (inner.total, inner.succeeded) == (3, 3)

    def test_a_container_without_nodes_is_done_at_once(self) -> None:
        assert Playing(plan([node(1, BOX)])).run.status == "succeeded"

    def test_the_time_of_a_container_is_bounded(self) -> None:
        nodes = [node(1, BOX, timeoutSeconds=2), echo(2, parent=uid(1)), echo(3, parent=uid(1))]
        played = Playing(plan(nodes))
        assert WatchParked(0, 2_000) in played.consequences or any(
            isinstance(fact, ScopeOpened) and fact.for_ms == 2_000 for fact in played.facts
        )
        played.lease(1)
        played.give(EndWait(0))
        assert played.status(3) == "cancelled"
        assert played.status(1) == "running"
        played.give(Report(1, 1, "w1", "CANCELLED"))
        assert played.status(1) == "failed E.TIMEOUT"

    def test_a_run_that_is_cancelled_cancels_what_is_inside(self) -> None:
        played = Playing(plan([node(1, BOX), node(2, BOX, parent=uid(1)), echo(3, parent=uid(2))]))
        played.give(Cancel("ann", 5))
        assert [played.status(number) for number in (1, 2, 3)] == ["cancelled"] * 3
        assert played.run.status == "cancelled"


class TestCallsOfWorkflows:
    def callee(self, **fields: Any) -> Any:
        nodes = [echo(11, label="inner", parameters={"value": "=inputs.n + 1"})]
        outputs = {"sum": {"source": {"node": uid(11), "port": "value"}}}
        document = definition(nodes, inputs={"n": {"required": True}}, outputs=outputs, **fields)
        return document

    def calling(self, **parameters: Any) -> Plan:
        caller = definition(
            [
                node(1, "core.call", call={"workflowId": uid(9)}, parameters=parameters),
                echo(2, parameters={"value": "=nodes['" + uid(1) + "'].results.outputs.sum"}),
            ],
            [edge(1, 2)],
        )
        made = plan_workflow(caller, CORE, {(uid(9), None): self.callee(id=uid(9))})
        made.check()
        return made

    def test_a_workflow_is_called_with_inputs_and_gives_its_outputs(self) -> None:
        played = Playing(self.calling(inputs={"n": 4})).play()
        assert played.result(1) == {"outputs": {"sum": 5}}
        assert played.result(2) == {"value": 5}

    @each_row("inputs", ["={}", "={'n': 1, 'm': 2}", "=7"])
    def test_inputs_that_do_not_fit_fail_the_node(self, inputs: Any) -> None:
        assert Playing(self.calling(inputs=inputs)).status(1) == "failed E.TASK.INPUT_INVALID"

    def test_its_nodes_are_found_at_the_path_of_the_call(self) -> None:
        played = Playing(self.calling(inputs={"n": 4})).play()
        task = find_task(played.run, uid(11), f"{uid(1)}:0")
        assert played.run.node_at(task).label == "inner"
        [shown] = view_body(played.run, 0, 0)
        assert shown.scope_path == f"{uid(1)}:0"

    def test_a_workflow_that_calls_itself_is_refused(self) -> None:
        caller = definition([node(1, "core.call", call={"workflowId": uid(0)})])
        assert [one.pointer for one in _problems(caller, {(uid(0), None): caller})] == [
            "/nodes/0/call"
        ]
        other = definition([node(1, "core.call", call={"workflowId": uid(0)})], id=uid(9))
        first = definition([node(1, "core.call", call={"workflowId": uid(9)})])
        [problem] = _problems(first, {(uid(9), None): other, (uid(0), None): first})
        assert "call itself" in problem.message

    def test_what_is_wrong_with_a_callee_is_told_at_the_call(self) -> None:
        bad = definition([node(1, "no.such")], id=uid(9))
        caller = definition([node(1, "core.call", call={"workflowId": uid(9), "version": 2})])
        [problem] = _problems(caller, {(uid(9), 2): bad})
        assert problem.pointer == "/nodes/0/call"
        assert "/nodes/0/type" in problem.message


def _problems(document: Any, documents: Any) -> Any:
    return validate(document, CORE, documents)


def test_events_say_where_a_node_is() -> None:
    nodes = [
        node(1, BOX, map={"over": "=[7, 8]"}),
        echo(2, parent=uid(1), middlewares=[uid(3)]),
        node(3, parent=uid(1)),
    ]
    played = Playing(plan(nodes)).play()
    places, paths = TaskPlaces(played.plan), set()
    first = 1
    for fact in played.facts:
        for event in events_of(fact, first, places):
            assert event.id == first
            first += 1
            if event.scope.node_id == uid(2):
                paths.add(event.body.scope_path)
    assert paths == {f"{uid(1)}:{item}/{uid(1)}:0" for item in (0, 1)}
    assert played.run.last_event == first - 1


def test_places_are_the_same_from_the_facts_and_from_the_run() -> None:
    nodes = [
        node(1, BOX, map={"over": "=[7, 8]"}),
        echo(2, parent=uid(1), middlewares=[uid(3)]),
        node(3, parent=uid(1)),
        echo(4, map={"over": "=[1, 2, 3]"}),
    ]
    played = Playing(plan(nodes)).play()
    folded, of_run = TaskPlaces(played.plan, played.facts), TaskPlaces.of_run(played.run)
    shown = [fact for fact in played.facts if isinstance(fact, TaskFact)]
    assert len(played.run.tasks) > len(nodes)
    assert [folded.fields_of(one) for one in shown] == [of_run.fields_of(one) for one in shown]
    # Who resumes sees facts again that the run knows already.
    for fact in played.facts:
        of_run.note(fact)
    assert [folded.fields_of(one) for one in shown] == [of_run.fields_of(one) for one in shown]


@each_row(
    ("nodes", "edges", "expected"),
    [
        (
            [node(1, BOX), echo(2, parent=uid(1))],
            [edge("1.input", "2.value", when="true")],
            [("/edges/0/when", "INVALID")],
        ),
        (
            [node(1, BOX), echo(2, parent=uid(1))],
            [edge("1.output", "2.value")],
            [("/edges/0/source/port", "UNKNOWN_PORT")],
        ),
        (
            [node(1, BOX), echo(2, parent=uid(1)), echo(3, parent=uid(1))],
            [edge("2.value", "1.output"), edge("3.value", "1.output")],
            [("/edges/1/target/port", "DOUBLE_INPUT")],
        ),
        (
            [node(1, BOX), echo(2, parent=uid(1))],
            [edge("2.error", "1.output")],
            [("/edges/0", "INVALID")],
        ),
        ([node(1, BOX, middlewares=[uid(2)]), node(2)], [], [("/nodes/0/middlewares", "INVALID")]),
        (
            [echo(1, middlewares=[uid(2)]), node(2, map={"over": "=[1]"})],
            [],
            [("/nodes/0/middlewares/0", "INVALID")],
        ),
        (
            [node(1, BOX), echo(2, parent=uid(1)), echo(3, parameters={"value": "=container"})],
            [],
            [("/nodes/2/parameters/value", "EXPRESSION")],
        ),
        (
            [
                echo(1, label="a", parent=uid(2)),
                node(2, BOX),
                echo(3, parameters={"value": "=nodes.a"}),
            ],
            [edge(2, 3)],
            [("/nodes/2/parameters/value", "EXPRESSION")],
        ),
    ],
)
def test_a_body_that_makes_no_sense_is_reported(
    nodes: list[Any], edges: list[Any], expected: list[Any]
) -> None:
    assert found(nodes, edges) == expected


def test_an_output_of_the_run_is_no_node_inside_a_container() -> None:
    outputs = {"a": {"source": {"node": uid(2), "port": "value"}}}
    assert found([node(1, BOX), echo(2, parent=uid(1))], outputs=outputs) == [
        ("/outputs/a/source/node", "INVALID")
    ]
