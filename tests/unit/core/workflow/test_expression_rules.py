"""Expressions of a definition: what is wrong with them is told before anything runs."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.workflow import expression_rules
from astraflow.core.workflow.plan import InEdge, PlanExpression
from tests.tables import each_row
from tests.unit.core.workflow.drafts import edge, node, plan, problems, uid

LABELLED = [node(1, label="Fetch"), node(2, label="Use it"), node(3, label="Aside")]
CHAIN = [edge(1, 2)]


def told(text: Any, **fields: Any) -> list[tuple[str, str]]:
    nodes = [LABELLED[0], {**LABELLED[1], "parameters": {"a": [text]}}, LABELLED[2]]
    rows = problems(nodes, CHAIN, inputs={"name": {}, "number": {}}, **fields)
    assert all(row.code == "E.WORKFLOW.EXPRESSION" for row in rows)
    return [(row.pointer, row.message) for row in rows]


@each_row(
    "text",
    [
        "=1 + 1",
        "=inputs.name",
        "=inputs",
        "=default(inputs.name.first, 'x')",
        "=nodes.Fetch.results.a",
        '=nodes["Fetch"].error.code',
        f'=nodes["{uid(1)}"].state',
        "=nodes.Fetch",
        "=run.id + run.workflowId + run.createdAt",
        "=[x for x in [1] if x]",
        "=secrets.openai",
        " =not an expression",
        "",
    ],
)
def test_what_can_be_known_is_known(text: str) -> None:
    assert told(text) == []


@each_row(
    ("text", "message"),
    [
        ("=1 +", "syntax error: invalid syntax"),
        ("=", "syntax error: invalid syntax"),
        ("=input.name", "unknown name: input; did you mean 'inputs'?"),
        ("=results.a", "unknown name: results"),
        ("=inputs.nmae", "the workflow declares no input 'nmae'; did you mean 'name'?"),
        ("=default(inputs.other, 1)", "the workflow declares no input 'other'"),
        ("=run.status", "a run has id, workflowId, createdAt, signals, no 'status'"),
        ("=nodes", 'name the node: nodes.Label or nodes["Label"]'),
        ("=nodes[inputs.name]", 'name the node: nodes.Label or nodes["Label"]'),
        (
            "=nodes.Fetch.result.a",
            "a node has results, error, state, no 'result'; did you mean 'results'?",
        ),
        (
            "=nodes.Fetsh.results",
            "there is no node with this label or id: 'Fetsh'; did you mean 'Fetch'?",
        ),
        (
            "=nodes.Aside.results",
            "the node 'Aside' is not upstream: add an edge that leads from it to this one",
        ),
        (
            '=nodes["Use it"].results',
            "the node 'Use it' is not upstream: add an edge that leads from it to this one",
        ),
        (
            "='Bearer ' + secrets.openai",
            "a secret is a whole parameter: write =secrets.NAME and nothing else",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str) -> None:
    assert told(text) == [("/nodes/1/parameters/a/0", message)]


def test_a_label_that_two_nodes_have_is_no_name() -> None:
    nodes = [*LABELLED, node(4, label="Fetch")]
    nodes[1] = {**nodes[1], "parameters": {"a": "=nodes.Fetch.results"}}
    (row,) = problems(nodes, CHAIN)
    assert row.message == "several nodes have the label 'Fetch': write the id"


def test_the_conditions_of_an_edge_read_its_source() -> None:
    edges = [edge(1, 2, when="results.ok and nodes.Fetch.state == 'succeeded'"), edge(2, 3)]
    assert problems(LABELLED, edges) == []
    wrong = [edge(1, 2, when="nodes['Use it'].results"), edge(2, 3, when="=error.code")]
    (row,) = problems(LABELLED, wrong)
    assert (row.pointer, row.message[:22]) == ("/edges/0/when", "the node 'Use it' is n")


def test_the_condition_of_a_node_reads_what_is_upstream() -> None:
    nodes = [LABELLED[0], {**LABELLED[1], "when": "=nodes.Fetch.results.go"}, LABELLED[2]]
    made = plan(nodes, CHAIN)
    assert made.nodes[1].when == "nodes.Fetch.results.go"
    assert made.names == {"Fetch": 0}
    nodes[1] = {**LABELLED[1], "when": "results.go"}
    (row,) = problems(nodes, CHAIN)
    assert (row.pointer, row.message) == ("/nodes/1/when", "unknown name: results")


def test_what_is_upstream_of_a_host_is_upstream_of_its_middlewares() -> None:
    nodes = [*LABELLED, node(4, parameters={"a": "=nodes.Fetch.results"})]
    nodes[1] = {**nodes[1], "middlewares": [uid(4)]}
    assert problems(nodes, CHAIN) == []


def test_the_walk_upwards_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(expression_rules, "_MAX_WALK", 0)
    nodes = [
        *LABELLED,
        node(4, label="Last", parameters={"a": "=nodes.Aside.results"}),
    ]
    assert problems(nodes, [edge(1, 2), edge(2, 4)]) == []


def test_a_plan_holds_its_expressions_and_secrets() -> None:
    parameters = {"x/y": ["=1", {"b": "=inputs.name"}], "key": "=secrets.open-ai", "c": "plain"}
    made = plan([node(1, parameters=parameters)], inputs={"name": {}})
    (only,) = made.nodes
    assert only.expressions == (
        PlanExpression(("x/y", 0), "1"),
        PlanExpression(("x/y", 1, "b"), "inputs.name"),
    )
    assert only.secrets == ("open-ai",)
    assert msgspec.json.decode(only.parameters)["key"] == {"secretRef": {"name": "open-ai"}}


def test_a_node_has_a_bounded_number_of_expressions() -> None:
    many = ["=1"] * (expression_rules.MAX_EXPRESSIONS + 1)
    (row,) = problems([node(1, parameters={"a": many})])
    assert (row.pointer, row.code) == ("/nodes/0/parameters", "E.WORKFLOW.LIMIT")


def test_a_condition_is_written_with_or_without_a_sign() -> None:
    made = plan(LABELLED, [edge(1, 2, when="=results.a"), edge(1, 3, when="results.a")])
    assert made.nodes[1].edges_in == made.nodes[2].edges_in == (InEdge(0, "control", "results.a"),)
