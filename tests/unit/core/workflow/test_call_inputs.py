"""What the author of a call gives to the other workflow is held against what that declares."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import plan_workflow, validate
from astraflow.core.workflow.callees import Documents
from astraflow.core.workflow.problems import InvalidDocument
from tests.unit.core.workflow.drafts import CORE, definition, edge, node, uid

INPUTS = {
    "n": {"required": True, "schema": {"type": "integer", "minimum": 1}},
    "text": {"schema": {"type": "string"}},
    "who": {"schema": {"type": "object", "required": ["name"]}},
    "with": {"required": True, "default": 5},
    "any": {},
}
CALLEE = definition([node(11)], id=uid(9), inputs=INPUTS)
PORTS = {
    "inputPorts": [
        {"key": "all", "binding": {"path": "parameters.inputs"}},
        {"key": "n", "binding": {"path": "parameters.inputs.n"}},
        {"key": "name", "binding": {"path": "parameters.inputs.who.name"}},
    ]
}


def found(
    inputs: Any, port: str | None = None, *, omit: bool = False, **fields: Any
) -> dict[str, str]:
    """The problems of a call with these inputs, by pointer; with a port, an edge leads to that."""
    parameters = {} if omit else {"inputs": inputs}
    caller = definition(
        [
            node(1, "core.echo", label="up", parameters={"value": 1}),
            node(
                2,
                "core.call",
                call={"workflowId": uid(9)},
                parameters=parameters,
                ui=PORTS,
                **fields,
            ),
        ],
        [edge("1.value", f"2.{port}") if port else edge(1, 2)],
    )
    documents: Documents = {(uid(9), None): CALLEE}
    problems = validate(caller, CORE, documents)
    if problems:
        with pytest.raises(InvalidDocument) as refused:
            plan_workflow(caller, CORE, documents)
        assert list(refused.value.problems) == problems
    else:
        plan_workflow(caller, CORE, documents)
    return {one.pointer.removeprefix("/nodes/1/parameters"): one.message for one in problems}


@pytest.mark.parametrize(
    "inputs",
    [
        {"n": 1},
        {"n": 1, "text": "a", "who": {"name": 1}, "with": None, "any": [None]},
        {"n": "=1 + 1", "who": "={'name': 1}", "text": "=nodes.up.results.value"},
        {"n": 1, "who": {"name": "=1"}},
        {"n": {"resourceRef": {"resourceId": "r", "type": "astraflow.value"}}},
        "=nodes.up.results.value",
    ],
)
def test_what_fits_or_is_not_known_yet_is_no_problem(inputs: Any) -> None:
    assert found(inputs) == {}


@pytest.mark.parametrize(
    ("inputs", "pointer", "said"),
    [
        ({}, "/inputs/n", "required and missing"),
        ({"n": "1"}, "/inputs/n", "integer"),
        ({"n": None}, "/inputs/n", "integer"),
        ({"n": 0}, "/inputs/n", "minimum"),
        ({"n": 1, "texts": "a"}, "/inputs/texts", "did you mean 'text'?"),
        ({"n": 1, "who": {}}, "/inputs/who/name", "required and missing"),
        ({"n": 1, "a/b": 1}, "/inputs/a~1b", "declares no input"),
        ({"n": 1, "text": ["=1"]}, "/inputs/text", "string"),
    ],
)
def test_what_can_never_fit_is_a_problem_with_a_pointer(
    inputs: Any, pointer: str, said: str
) -> None:
    problems = found(inputs)
    assert problems.keys() == {pointer}
    assert said in problems[pointer]


def test_a_call_without_inputs_lacks_those_that_are_required() -> None:
    assert found(None, omit=True).keys() == {"/inputs/n"}


@pytest.mark.parametrize(
    ("port", "inputs", "pointers"),
    [
        ("n", {}, set()),
        ("n", {"n": "replaced"}, set()),
        ("n", {"m": 1}, {"/inputs/m"}),
        ("all", {"m": 1}, set()),
        ("name", {"n": 1, "who": {}}, set()),
        ("name", {"n": 1}, set()),
        ("name", {}, {"/inputs/n"}),
    ],
)
def test_what_an_edge_writes_is_not_held_against_the_author(
    port: str, inputs: Any, pointers: set[str]
) -> None:
    assert found(inputs, port).keys() == pointers


@pytest.mark.parametrize(
    ("over", "inputs", "pointers"),
    [
        ({"over": "inputs.n"}, {"n": [1, 2]}, set()),
        ({"over": "inputs.n"}, {"n": [1, 2], "m": 1}, {"/inputs/m"}),
        ({"over": "=[1, 2]", "item": "inputs"}, {}, {"item"}),
        ({"over": "=[1, 2]"}, {"n": "=item"}, set()),
        ({"over": "=[1, 2]"}, {"n": "item"}, {"/inputs/n"}),
    ],
)
def test_what_the_item_of_a_map_replaces_is_not_held_against_the_author(
    over: dict[str, Any], inputs: Any, pointers: set[str]
) -> None:
    problems = {one.removeprefix("/nodes/1/map/") for one in found(inputs, map=over)}
    assert problems == pointers


def test_a_workflow_that_calls_with_wrong_inputs_cannot_be_called() -> None:
    between = definition(
        [node(1, "core.call", call={"workflowId": uid(9)}, parameters={"inputs": {"n": 0}})],
        id=uid(8),
    )
    caller = definition([node(1, "core.call", call={"workflowId": uid(8)})])
    documents: Documents = {(uid(9), None): CALLEE, (uid(8), None): between}
    [problem] = validate(caller, CORE, documents)
    assert problem.pointer == "/nodes/0/call"
    assert "/nodes/0/parameters/inputs/n" in problem.message


def test_parameters_that_were_refused_are_reported_once() -> None:
    assert set(found([1])) == {"/inputs"}
    caller = definition([node(1, "core.call", call={"workflowId": uid(9)}, parameters=[1])])
    [problem] = validate(caller, CORE, {(uid(9), None): CALLEE})
    assert problem.pointer == "/nodes/0/parameters"


@pytest.mark.parametrize(
    ("kind", "parameters", "pointer"),
    [
        ("core.call", {"inputs": {"n": 1, "text": "=secrets.key"}}, "/inputs/text"),
        ("core.call", {"inputs": {"n": 1, "any": [{"secretRef": {"name": "k"}}]}}, "/inputs/any/0"),
        ("core.container", {"input": "=secrets.key"}, "/input"),
        ("core.switch", {"value": "=secrets.key", "cases": ["a"]}, "/value"),
    ],
)
def test_a_node_that_the_scheduler_carries_out_is_given_no_secret(
    kind: str, parameters: dict[str, Any], pointer: str
) -> None:
    fields = {"call": {"workflowId": uid(9)}} if kind == "core.call" else {}
    caller = definition([node(1, kind, parameters=parameters, **fields)])
    problems = validate(caller, CORE, {(uid(9), None): CALLEE})
    assert (f"/nodes/0/parameters{pointer}", "E.WORKFLOW.PARAMETER") in [
        (one.pointer, one.code) for one in problems
    ]
