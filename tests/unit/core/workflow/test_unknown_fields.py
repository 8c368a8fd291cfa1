"""Fields that mean nothing are warned of."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import validate
from astraflow.core.workflow.limits import MAX_PROBLEMS
from astraflow.core.workflow.unknown_fields import find_warnings
from tests.unit.core.workflow.drafts import CORE, definition, edge, node, uid


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("retries", "retry"),
        ("timeout", "timeoutSeconds"),
        ("concurency_key", "concurrencyKey"),
        ("zzz", None),
    ],
)
def test_a_field_that_means_nothing_is_warned_of(name: str, meant: str | None) -> None:
    made = definition([node(1), {**node(2), name: 3, "x-own": 1}])
    assert validate(made, CORE) == []
    (warning,) = find_warnings(made.raw)
    assert (warning.pointer, warning.code) == (f"/nodes/1/{name}", "E.WORKFLOW.UNKNOWN_FIELD")
    assert warning.message.endswith(f"did you mean {meant!r}?" if meant else f"{name!r}")


@pytest.mark.parametrize(
    ("fields", "pointer", "said"),
    [
        ({"map": {"over": "=[1]", "concurency": 2}}, "map/concurency", "'concurrency'"),
        ({"call": {"workflowId": "x", "workflow": "y"}}, "call/workflow", "'workflowId'"),
        ({"container": {"failurPolicy": "stop"}}, "container/failurPolicy", "'failurePolicy'"),
        ({"retry": {"maxAttempt": 2}}, "retry/maxAttempt", "'maxAttempts'"),
        ({"retry": {"backoff": {"facto": 2}}}, "retry/backoff/facto", "'factor'"),
        ({"affinity": {"key": "k", "mod": "sticky"}}, "affinity/mod", "'mode'"),
        ({"wait": {"second": 1}}, "wait/second", "'seconds'"),
        ({"approval": {"role": ["admin"]}}, "approval/role", "'roles'"),
        ({"signal": {"name": "s", "webhok": True}}, "signal/webhok", "'webhook'"),
        ({"resources": {"memory": 1}}, "resources/memory", "'memoryBytes'"),
        ({"workerHints": {"label": {}}}, "workerHints/label", "'labels'"),
        ({"package": {"name": "p", "versions": "1"}}, "package/versions", "'version'"),
        (
            {"resourceRefs": [{"resourceId": "r"}, {"resourceId": "r", "worker": "w"}]},
            "resourceRefs/1/worker",
            "'workerId'",
        ),
        (
            {"ui": {"inputPorts": [{"key": "k", "binding": {"path": "x", "mde": "read"}}]}},
            "ui/inputPorts/0/binding/mde",
            "'mode'",
        ),
    ],
)
def test_a_field_inside_of_a_field_that_means_nothing_is_warned_of(
    fields: dict[str, Any], pointer: str, said: str
) -> None:
    (warning,) = find_warnings(definition([node(1), {**node(2), **fields}]).raw)
    assert warning.pointer == f"/nodes/1/{pointer}"
    assert warning.message.endswith(f"did you mean {said}?")


def test_edges_inputs_outputs_and_triggers_are_looked_at() -> None:
    cron = {"type": "cron", "expression": "0 0 * * *", "timezone": "Europe/Paris"}
    made = definition(
        [node(1), node(2)],
        [{**edge(1, 2), "condition": "=true"}],
        inputs={"a/b": {"requird": True}},
        outputs={"sum": {"source": {"node": uid(1), "prt": "value"}}},
        triggers=[{"type": "manual"}, cron],
    )
    assert {one.pointer: one.message.rpartition("; ")[2] for one in find_warnings(made.raw)} == {
        "/edges/0/condition": "an edge has no field of this name: 'condition'",
        "/inputs/a~1b/requird": "did you mean 'required'?",
        "/outputs/sum/source/prt": "did you mean 'port'?",
        "/triggers/1/timezone": "did you mean 'timeZone'?",
    }


def test_what_belongs_to_the_author_and_the_editor_is_left_alone() -> None:
    fields = {
        "parameters": {"retrys": 1},
        "position": {"x": 1, "y": 2, "z": 3},
        "ui": {"widgets": [{"key": "w", "width": 4}]},
        "schema": {"parameters": {"tpe": "object"}},
        "retry": None,
        "map": {"over": "=[1]", "x-note": "mine"},
    }
    assert find_warnings(definition([{**node(1), **fields}]).raw) == []


def test_warnings_are_bounded() -> None:
    fields = {f"field{number}": 1 for number in range(3 * MAX_PROBLEMS)}
    found = find_warnings(definition([{**node(1), **fields}]).raw)
    assert len(found) == MAX_PROBLEMS
    assert found[-1].message == f"and {2 * MAX_PROBLEMS + 1} more"


def test_a_node_with_known_fields_has_no_warning() -> None:
    assert find_warnings(definition([node(1, label="a", retry={"maxAttempts": 2})]).raw) == []
