from __future__ import annotations

from typing import Any

from astraflow.core.workflow import Feature
from astraflow.core.workflow.definition import Signal, WaitSpec
from astraflow.core.workflow.plan import ApprovalStep, ControlStep
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan
from tests.tables import each_row
from tests.unit.core.workflow.drafts import found, node, plan

REF = {"resourceId": "r"}


@each_row(
    ("fields", "features"),
    [
        ({"when": "run.id != null"}, {Feature.CONDITION}),
        ({"join": "any"}, {Feature.JOIN_ANY}),
        ({"join": "all_done"}, {Feature.JOIN_ALL_DONE}),
        ({"join": "all"}, set()),
        ({"concurrencyKey": "mail"}, set()),
        ({"concurrencyKey": "=run.workflowId"}, {Feature.KEY_EXPRESSION}),
        ({"affinity": {"key": "=run.id"}}, {Feature.KEY_EXPRESSION}),
        ({"parameters": {"a": ["=1 + 1"]}}, {Feature.EXPRESSION}),
        ({"map": {"over": "parameters.items"}}, {Feature.MAP}),
        ({"map": {"over": "=[1, 2]"}}, {Feature.MAP, Feature.EXPRESSION}),
        ({"node_type": "core.container"}, {Feature.SUBGRAPH}),
        ({"node_type": "core.wait", "wait": {"seconds": 0}}, {Feature.WAIT}),
        ({"node_type": "core.wait", "wait": {"until": "2026-01-01T00:00:00Z"}}, {Feature.WAIT}),
        (
            {"node_type": "core.wait", "wait": {"until": "=run.createdAt"}},
            {Feature.WAIT, Feature.EXPRESSION},
        ),
        ({"node_type": "core.approval"}, {Feature.APPROVAL}),
        (
            {"node_type": "core.approval", "approval": {"message": "?", "roles": ["operator"]}},
            {Feature.APPROVAL},
        ),
        ({"node_type": "core.signal", "signal": {"name": "paid"}}, {Feature.SIGNAL}),
        (
            {"node_type": "core.signal", "signal": {"name": "paid", "webhook": True}},
            {Feature.SIGNAL, Feature.SIGNAL_ADDRESS},
        ),
        ({"runtime": "python", "disabled": True, "priority": 3}, set()),
        ({"workerHints": {"package": "core", "minVersion": "1.0", "labels": {"a": "b"}}}, set()),
        ({"resourceRefs": [REF]}, set()),
    ],
)
def test_a_setting_is_taken_and_the_feature_it_needs_is_named(
    fields: dict[str, Any], features: set[Feature]
) -> None:
    assert plan([node(1, **fields)]).features == features


@each_row(
    ("fields", "pointer", "code"),
    [
        ({"when": ""}, "when", "BAD_TEXT"),
        ({"concurrencyKey": ""}, "concurrencyKey", "BAD_TEXT"),
        ({"concurrencyKey": "k" * 129}, "concurrencyKey", "LIMIT"),
        ({"concurrencyKey": "=" + "k" * 5_000}, "concurrencyKey", "LIMIT"),
        ({"affinity": {"key": ""}}, "affinity/key", "BAD_TEXT"),
        ({"runtime": ""}, "runtime", "BAD_TEXT"),
        ({"workerHints": {"minVersion": "x"}}, "workerHints/minVersion", "BAD_TEXT"),
        ({"workerHints": {"package": ""}}, "workerHints/package", "BAD_TEXT"),
        ({"workerHints": {"labels": {"": "x"}}}, "workerHints/labels", "BAD_TEXT"),
        (
            {"workerHints": {"labels": {str(n): "" for n in range(1_025)}}},
            "workerHints/labels",
            "LIMIT",
        ),
        ({"resourceRefs": [REF] * 65}, "resourceRefs", "LIMIT"),
        ({"resourceRefs": [REF, {"resourceId": ""}]}, "resourceRefs/1/resourceId", "BAD_TEXT"),
        ({"map": {"over": "a..b"}}, "map/over", "BAD_PATH"),
        ({"map": {"over": "=" + "x" * 5_000}}, "map/over", "LIMIT"),
        ({"map": {"over": "a", "item": ""}}, "map/item", "BAD_TEXT"),
        ({"map": {"over": "a", "item": "nodes"}}, "map/item", "BAD_TEXT"),
        ({"map": {"over": "a", "item": "a b"}}, "map/item", "BAD_TEXT"),
        ({"map": {"over": "a", "collect": "errors"}}, "map/collect", "BAD_TEXT"),
        ({"map": {"over": "a", "collect": "error"}}, "map/collect", "BAD_TEXT"),
        ({"map": {"over": "a", "collect": "done"}}, "map/collect", "BAD_TEXT"),
        ({"map": {"over": "=item"}}, "map/over", "EXPRESSION"),
        ({"node_type": "core.container", "retry": {"maxAttempts": 2}}, "retry", "INVALID"),
        ({"container": {"failurePolicy": "stop"}}, "container", "INVALID"),
        ({"node_type": "core.call", "call": {"workflowId": "w"}}, "call", "CALL"),
        ({"map": {"over": "a", "collect": ""}}, "map/collect", "BAD_TEXT"),
        ({"wait": {"seconds": 1}}, "wait", "INVALID"),
        ({"call": {"workflowId": "w"}}, "call", "INVALID"),
        ({"approval": {}}, "approval", "INVALID"),
        ({"signal": {"name": "s"}}, "signal", "INVALID"),
        ({"node_type": "core.wait"}, "", "INVALID"),
        ({"node_type": "core.wait", "wait": {}}, "wait", "INVALID"),
        ({"node_type": "core.wait", "wait": {"until": "soon"}}, "wait/until", "INVALID"),
        ({"node_type": "core.call", "call": {"workflowId": ""}}, "call/workflowId", "BAD_TEXT"),
        ({"node_type": "core.signal", "signal": {"name": ""}}, "signal/name", "BAD_TEXT"),
        (
            {"node_type": "core.signal", "signal": {"name": "=run.id", "webhook": True}},
            "signal/name",
            "INVALID",
        ),
        (
            {"node_type": "core.signal", "signal": {"name": "s", "secretRef": "k"}},
            "signal/secretRef",
            "INVALID",
        ),
        (
            {
                "node_type": "core.signal",
                "signal": {"name": "s", "webhook": True, "secretRef": "a b"},
            },
            "signal/secretRef",
            "BAD_TEXT",
        ),
        (
            {"node_type": "core.approval", "approval": {"message": "x" * 20_000}},
            "approval/message",
            "LIMIT",
        ),
        (
            {"node_type": "core.approval", "approval": {"roles": ["r"] * 1_025}},
            "approval/roles",
            "LIMIT",
        ),
        (
            {"node_type": "core.approval", "approval": {"roles": ["r", ""]}},
            "approval/roles/1",
            "BAD_TEXT",
        ),
    ],
)
def test_a_setting_that_cannot_be_kept_is_reported(
    fields: dict[str, Any], pointer: str, code: str
) -> None:
    assert found([node(1, **fields)]) == [(f"/nodes/0/{pointer}".rstrip("/"), code)]


def test_a_wait_for_both_a_time_and_a_duration_is_a_problem() -> None:
    wait = {"seconds": 1, "until": "2026-01-01T00:00:00Z"}
    assert found([node(1, "core.wait", wait=wait)]) == [("/nodes/0/wait", "INVALID")]


def test_middlewares_are_bounded() -> None:
    assert ("/nodes/0/middlewares", "LIMIT") in found([node(1, middlewares=["x"] * 17)])


def test_what_the_scheduler_does_itself_is_in_the_plan() -> None:
    made = plan(
        [
            node(1, "core.wait", wait={"seconds": 2}),
            node(3, "core.approval", approval={"message": "ok?"}),
            node(4, "core.signal", signal={"name": "s"}),
            node(5),
        ]
    )
    assert [row.control for row in made.nodes] == [
        ControlStep(wait=WaitSpec(seconds=2)),
        ControlStep(approval=ApprovalStep(message="ok?")),
        ControlStep(signal=Signal(name="s")),
        None,
    ]
    assert decode_plan(encode_plan(made)) == made


def test_an_expression_names_the_address_of_a_signal_that_is_waited_for() -> None:
    waits = node(1, "core.signal", signal={"name": "paid", "webhook": True})
    other = node(2, "core.signal", signal={"name": "other"})

    def reading(expression: str) -> list[tuple[str, str]]:
        return found([waits, other, node(3, "core.echo", parameters={"value": expression})])

    for good in ("=run.signals.paid", "=run.signals['paid']", "=run.signals"):
        assert reading(good) == []
    for bad in ("=run.signals.payd", "=run.signals.other"):
        assert reading(bad) == [("/nodes/2/parameters/value", "EXPRESSION")]
