"""Nodes that the scheduler itself carries out: choices, waits, approvals, signals."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from astraflow.core.runs.commands import Approve, Cancel, EndWait, ReceiveSignal, RunCommand
from astraflow.core.runs.consequences import EnqueueTask, WatchParked
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import Fact, RunStarted, SignalReceived, TaskDecided, TaskParked
from astraflow.core.runs.projections import view_run
from astraflow.core.runs.states import Parked
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import Plan
from tests.tables import each_row
from tests.unit.core.runs.played import Played
from tests.unit.core.workflow.drafts import edge, found, node, plan
from tests.unit.plans import AT, start

NOT_TAKEN = "skipped E.TASK.BRANCH_NOT_TAKEN"
CASES = [{"port": "big", "when": "=inputs.n > 10"}, {"port": "five", "equals": 5}]


def echo(number: int, label: str, **fields: Any) -> dict[str, Any]:
    return node(number, "core.echo", label=label, **fields)


def switch(**parameters: Any) -> dict[str, Any]:
    return node(1, "core.switch", label="choose", parameters=parameters)


class TestChoices:
    @each_row(("n", "taken"), [(3, "no"), (4, "yes")])
    def test_an_if_leads_to_one_side(self, n: int, taken: str) -> None:
        parameters = {"condition": "=inputs.n % 2 == 0", "value": "=inputs.n"}
        nodes = [node(1, "core.if", parameters=parameters), echo(2, "yes"), echo(3, "no")]
        edges = [edge("1.true", "2.value"), edge("1.false", 3)]
        played = Played(plan(nodes, edges, inputs={"n": {}}), n=n)
        states = {label: state for label, state in played.states.items() if label in ("yes", "no")}
        assert states == {"yes": NOT_TAKEN, "no": NOT_TAKEN, taken: "succeeded"}
        assert played.given[taken] == ({"value": n} if taken == "yes" else {})
        assert played.run.status == "succeeded"

    @each_row(
        ("n", "value", "taken"),
        [(11, 5, "big"), (1, 5, "five"), (1, 5.0, "five"), (1, "5", "other"), (1, True, "other")],
    )
    def test_a_switch_takes_its_first_case_that_holds(self, n: int, value: Any, taken: str) -> None:
        nodes = [
            switch(value=value, cases=CASES, default="other"),
            *(echo(number, label) for number, label in ((2, "big"), (3, "five"), (4, "other"))),
        ]
        edges = [
            edge(f"1.{label}", place) for place, label in ((2, "big"), (3, "five"), (4, "other"))
        ]
        played = Played(plan(nodes, edges, inputs={"n": {}}), n=n)
        assert [label for label, state in played.states.items() if state == "succeeded"] == [
            "choose",
            taken,
        ]

    def test_without_a_default_nothing_may_be_taken(self) -> None:
        made = plan([switch(cases=CASES), echo(2, "big")], [edge("1.big", 2)], inputs={"n": {}})
        played = Played(made, n=1)
        assert played.states == {"choose": "succeeded", "big": NOT_TAKEN}
        assert played.run.tasks[0].result == msgspec.Raw(b'{"case":null,"value":null}')

    def test_a_condition_without_a_value_fails_the_node(self) -> None:
        made = plan([node(1, "core.if", label="if", parameters={"condition": "=1/0"})])
        assert Played(made).states == {"if": "failed E.TASK.EXPRESSION"}

    @each_row(
        ("parameters", "pointer"),
        [
            ({}, "/cases"),
            ({"cases": []}, "/cases"),
            ({"cases": 3}, "/cases"),
            ({"cases": [{"port": "a", "when": "=1"}] * 2}, "/cases/1"),
            ({"cases": [{"when": "=1"}]}, "/cases/0"),
            ({"cases": [{"port": "done", "when": "=1"}]}, "/cases/0"),
            ({"cases": [{"port": "", "when": "=1"}]}, "/cases/0"),
            ({"cases": [{"port": "a"}]}, "/cases/0"),
            ({"cases": [{"port": "a", "when": "=1", "equals": 1}]}, "/cases/0"),
            ({"cases": [{"port": "a", "when": "no sign"}]}, "/cases/0"),
            ({"cases": [{"port": "a", "equals": 1}], "default": "error"}, "/default"),
        ],
    )
    def test_what_is_wrong_with_cases_is_told(self, parameters: Any, pointer: str) -> None:
        rows = found([switch(**parameters)])
        assert (f"/nodes/0/parameters{pointer}", "INVALID") in rows

    def test_an_edge_from_a_case_that_is_not_there_is_a_problem(self) -> None:
        rows = found([switch(cases=CASES), echo(2, "x")], [edge("1.small", 2)], inputs={"n": {}})
        assert rows == [("/edges/0/source/port", "UNKNOWN_PORT")]


class Waiting:
    """A run that is told what happens, at times of the test's own."""

    def __init__(self, made: Plan, **inputs: Any) -> None:
        self.plan = made
        self.at = AT
        self.facts: list[Fact] = []
        decision = start(made, inputs=msgspec.Raw(msgspec.json.encode(inputs)))
        self.run = decision.run
        self.last = self._take(decision)

    def _take(self, decision: Decision) -> Decision:
        self.facts += decision.facts
        assert view_run(replay(self.plan, self.facts)) == view_run(self.run)
        return decision

    def tell(self, command: RunCommand, after_ms: int = 0) -> Decision:
        self.at += after_ms
        self.last = self._take(decide(self.run, command, self.at, Random(1)))
        return self.last

    @property
    def shown(self) -> tuple[str, str | None]:
        first = view_run(self.run).nodes[0]
        return first.status, None if first.waiting_for is None else first.waiting_for.kind

    @property
    def result(self) -> Any:
        raw = self.run.tasks[0].result
        return None if raw is None else msgspec.json.decode(raw)


def waiting(node_type: str, **fields: Any) -> Waiting:
    inputs = fields.pop("given", {})
    nodes = [node(1, node_type, label="wait", **fields), echo(2, "next")]
    declared: dict[str, Any] = {name: {} for name in inputs}
    return Waiting(plan(nodes, [edge(1, 2)], inputs=declared), **inputs)


class TestWaits:
    def test_a_wait_holds_nothing_and_ends_at_its_time(self) -> None:
        held = waiting("core.wait", wait={"seconds": 2.5})
        assert [type(fact) for fact in held.facts[1:]] == [RunStarted, TaskParked]
        assert held.last.consequences == [WatchParked(0, 2_500)]
        assert held.shown == ("waiting", "time")
        due = held.tell(EndWait(0), -3_600_000)  # the wall clock was set back meanwhile
        assert due.consequences == [EnqueueTask(1)]
        assert held.result == {"until": "2023-11-14T22:13:22.500Z"}
        assert held.tell(EndWait(0)).ignored == "task is not parked"

    @each_row(
        ("until", "given"),
        [
            ("2023-11-14T22:13:21Z", {}),
            ("=inputs.when", {"when": "2023-11-14T23:13:21+01:00"}),
            ("=inputs.when", {"when": AT / 1000 + 1}),
        ],
    )
    def test_a_time_is_written_or_computed(self, until: str, given: Any) -> None:
        held = waiting("core.wait", wait={"until": until}, given=given)
        assert held.last.consequences == [WatchParked(0, 1_000)]

    def test_a_time_of_day_is_waited_for_by_the_wall_clock(self) -> None:
        held = waiting("core.wait", wait={"until": "2023-11-14T22:13:21Z"})
        early = held.tell(EndWait(0), 400)
        assert (early.facts, early.consequences) == ([], [WatchParked(0, 600)])
        assert held.tell(EndWait(0), 600).consequences == [EnqueueTask(1)]

    @each_row(
        ("wait", "at", "left_ms"),
        [
            ({"seconds": 10}, AT + 4_000, 6_000),
            ({"seconds": 10}, AT - 90_000, 10_000),
            ({"seconds": 10}, AT + 90_000, 0),
            ({"until": "2023-11-14T22:13:30Z"}, AT - 90_000, 100_000),
        ],
    )
    def test_after_a_restart_the_wall_clock_says_what_is_left(
        self, wait: Any, at: int, left_ms: int
    ) -> None:
        state = waiting("core.wait", wait=wait).run.tasks[0].state
        assert isinstance(state, Parked)
        assert state.left_ms(at) == left_ms

    def test_what_has_no_deadline_is_waited_for(self) -> None:
        state = waiting("core.signal", signal={"name": "go"}).run.tasks[0].state
        assert isinstance(state, Parked)
        assert state.left_ms(AT) is None

    def test_what_is_over_is_not_waited_for(self) -> None:
        held = waiting("core.wait", wait={"until": "2020-01-01T00:00:00Z"})
        assert held.last.consequences == [EnqueueTask(1)]

    def test_a_value_that_is_no_time_fails_the_node(self) -> None:
        for value in ("soon", None, True, 10**12, [1]):
            held = waiting("core.wait", wait={"until": "=inputs.when"}, given={"when": value})
            assert held.run.status == "failed"
            assert held.run.error is not None
            assert held.run.error.message.startswith("wait/until: the value is neither")

    def test_a_cancel_ends_it_at_once(self) -> None:
        held = waiting("core.wait", wait={"seconds": 9})
        held.tell(Cancel("ann", 500))
        assert held.run.status == "cancelled"


class TestApprovals:
    def test_a_person_decides_once(self) -> None:
        asked = {"message": "=f'Ship {inputs.n}?'", "form": {"type": "object"}, "roles": ["editor"]}
        held = waiting("core.approval", approval=asked, given={"n": 3})
        assert held.shown == ("waiting", "approval")
        assert view_run(held.run).nodes[0].waiting_for is not None
        assert view_run(held.run).nodes[0].waiting_for.detail == "Ship 3?"  # type: ignore[union-attr]
        values = msgspec.Raw(b'{"size":"L"}')
        held.tell(Approve(0, True, "ann", "fine", values))
        expected = {"approved": True, "comment": "fine", "by": "ann", "values": {"size": "L"}}
        assert held.result == expected
        again = held.tell(Approve(0, False, "bob"))
        assert (again.facts, again.ignored) == ([], "nobody is asked")

    def test_a_refusal_is_a_result(self) -> None:
        held = waiting("core.approval")
        held.tell(Approve(0, False, "ann"))
        assert held.result["approved"] is False
        assert held.last.consequences == [EnqueueTask(1)]

    @each_row(("default", "approved"), [("approve", True), ("reject", False), (None, None)])
    def test_its_deadline_decides(self, default: str | None, approved: bool | None) -> None:
        held = waiting("core.approval", approval={"timeoutSeconds": 1, "default": default})
        held.tell(EndWait(0), 1_000)
        if approved is None:
            assert held.run.error is not None
            assert (held.run.error.code, held.run.error.category) == ("E.TIMEOUT", "TIMEOUT")
        else:
            assert (held.result["approved"], held.result["by"]) == (approved, None)

    def test_a_signal_is_no_approval(self) -> None:
        held = waiting("core.signal", signal={"name": "paid"})
        assert held.tell(Approve(0, True)).ignored == "nobody is asked"


class TestSignals:
    def test_a_message_is_taken_by_the_node_that_waits(self) -> None:
        held = waiting("core.signal", signal={"name": "=inputs.order"}, given={"order": "o-1"})
        assert held.tell(ReceiveSignal("o-2", msgspec.Raw(b"1"))).consequences == []
        taken = held.tell(ReceiveSignal("o-1", msgspec.Raw(b'{"sum":3}'), "shop"))
        assert [type(fact) for fact in taken.facts] == [SignalReceived, TaskDecided]
        assert held.result == {
            "name": "o-1",
            "payload": {"sum": 3},
            "receivedAt": "2023-11-14T22:13:20.000Z",
        }
        assert list(held.run.signals) == [0], "the one that nobody waited for is kept"

    def test_a_message_that_came_before_is_kept(self) -> None:
        nodes = [
            node(1, "core.wait", wait={"seconds": 1}),
            node(2, "core.signal", signal={"name": "go"}),
        ]
        held = Waiting(plan(nodes, [edge(1, 2)]))
        held.tell(ReceiveSignal("go", msgspec.Raw(b"1")))
        held.tell(ReceiveSignal("go", msgspec.Raw(b"2")))
        held.tell(EndWait(0), 1_000)
        raw = held.run.tasks[1].result
        assert raw is not None
        assert msgspec.json.decode(raw)["payload"] == 1, "the oldest"
        assert [fact.payload for fact in held.run.signals.values()] == [msgspec.Raw(b"2")]

    def test_a_message_is_taken_by_one_node(self) -> None:
        nodes = [node(number, "core.signal", signal={"name": "go"}) for number in (1, 2)]
        held = Waiting(plan(nodes))
        held.tell(ReceiveSignal("go"))
        assert [one.status for one in view_run(held.run).nodes] == ["succeeded", "waiting"]
        held.tell(ReceiveSignal("go"))
        assert held.run.status == "succeeded"

    def test_a_message_with_a_name_of_its_own_comes_once(self) -> None:
        nodes = [node(number, "core.signal", signal={"name": "go"}) for number in (1, 2)]
        held = Waiting(plan(nodes))
        held.tell(ReceiveSignal("go", signal_id="m-1"))
        again = held.tell(ReceiveSignal("go", signal_id="m-1"))
        assert (again.facts, again.ignored) == ([], "signal is known")

    def test_its_deadline_fails_the_node(self) -> None:
        held = waiting("core.signal", signal={"name": "go", "timeoutSeconds": 1})
        held.tell(EndWait(0), 1_000)
        assert held.run.error is not None
        assert held.run.error.message == "no signal came by 2023-11-14T22:13:21.000Z"

    def test_a_name_that_no_path_can_hold_fails_the_node(self) -> None:
        for name in ("", "a/b", "x" * 129, "line\n", 3):
            held = waiting("core.signal", signal={"name": "=inputs.n"}, given={"n": name})
            assert held.run.status == "failed", name
        assert found([node(1, "core.signal", signal={"name": "a/b"})]) == [
            ("/nodes/0/signal/name", "BAD_TEXT")
        ]

    def test_a_cancelled_run_takes_none(self) -> None:
        nodes = [echo(1, "a"), node(2, "core.signal", signal={"name": "go"})]
        held = Waiting(plan(nodes))
        held.tell(Cancel("ann", 500))
        assert held.tell(ReceiveSignal("go")).facts == []


def test_a_node_of_the_scheduler_has_no_middlewares() -> None:
    nodes = [node(1, "core.wait", wait={"seconds": 1}, middlewares=[node(2)["id"]]), node(2)]
    assert ("/nodes/0/middlewares", "INVALID") in found(nodes)
