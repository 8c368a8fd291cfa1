"""What is modelled and not executed: reported with every place that asks for it."""

from __future__ import annotations

from typing import Any

from astraflow.core import errors
from astraflow.core.workflow import refusal_of, validate
from astraflow.core.workflow.features import EXECUTED, Needs
from astraflow.core.workflow.limits import MAX_PROBLEMS
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import Problems
from tests.unit.core.workflow.drafts import CORE, definition, edge, node


def pointers(nodes: list[dict[str, Any]], edges: Any = (), **fields: Any) -> list[str]:
    found = validate(definition(nodes, edges, **fields), CORE)
    assert {one.code for one in found} <= {"E.WORKFLOW.UNSUPPORTED"}
    return [one.pointer for one in found]


def test_each_place_is_reported() -> None:
    nodes = [
        node(1, concurrencyKey="=run.id"),
        node(2, concurrencyKey="=run.id"),
        node(3, affinity={"key": "=run.id"}),
        node(4, join="any", when="true", parameters={"a": "=1"}),
    ]
    edges = [edge(1, 2, when="results.ok"), edge(2, 4), edge(3, 4)]
    assert pointers(nodes, edges, timeoutSeconds=3) == [
        "/nodes/0/concurrencyKey",
        "/nodes/1/concurrencyKey",
        "/nodes/2/affinity/key",
    ]


def test_what_is_executed_is_no_problem() -> None:
    nodes = [node(1, middlewares=[node(3)["id"]]), node(2, join="all_done"), node(3)]
    assert pointers(nodes, [edge("1.error", 2)]) == []


def test_every_feature_has_words_and_a_bounded_list_of_places() -> None:
    needs, problems = Needs(), Problems()
    for feature in Feature:
        for place in range(2 * MAX_PROBLEMS):
            needs.add(feature, f"/nodes/{place}")
    needs.report(problems)
    assert set(needs) == set(Feature)
    assert problems.count == MAX_PROBLEMS * len(set(Feature) - EXECUTED)
    assert len(problems.found()) == MAX_PROBLEMS


def test_a_refusal_says_whether_only_the_version_is_too_old() -> None:
    needs = validate(definition([node(1, concurrencyKey="=run.id")]), CORE)
    assert refusal_of(needs).code is errors.WORKFLOW_UNSUPPORTED
    both = validate(definition([node(1, "no.such", concurrencyKey="=run.id")]), CORE)
    assert refusal_of(both).code is errors.WORKFLOW_INVALID
    assert len(both) == 2
