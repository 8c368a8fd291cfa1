"""Amounts of a machine: sums are exact, and nothing asked for fits everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import InvalidDocument
from astraflow.core.workflow.amounts import NOTHING, Amounts
from tests.tables import each_row
from tests.unit.core.workflow.drafts import definition, node, plan, problems


def test_what_is_taken_and_given_back_leaves_nothing() -> None:
    reserved = NOTHING
    requests = [Amounts.of(cpu, 7, 1) for cpu in (0.1, 0.2, 0.3, 1.1, 4.35)]
    for one in requests:
        reserved += one
    for one in requests:
        reserved -= one
    assert reserved == NOTHING
    assert not reserved


@each_row(
    ("cpu", "milli"), [(0, 0), (0.5, 500), (2, 2_000), (0.29, 290), (1e-9, 1), (1e6, 1_000_000_000)]
)
def test_processors_are_counted_in_thousandths(cpu: float, milli: int) -> None:
    assert Amounts.of(cpu, 0, 0) == Amounts(milli)


@each_row(
    ("request", "fits"),
    [
        (Amounts(2_000, 8, 1), True),
        (Amounts(2_001), False),
        (Amounts(0, 9), False),
        (Amounts(0, 0, 2), False),
        (NOTHING, True),
    ],
)
def test_a_request_fits_if_each_amount_does(request: Amounts, fits: bool) -> None:
    assert request.fits_in(Amounts(2_000, 8, 1)) == fits


def test_nothing_asked_for_needs_nothing_free() -> None:
    assert Amounts(500).fits_in(Amounts(500, -4, -1))


def test_people_read_what_is_asked_for() -> None:
    assert Amounts(500, 1024, 2).describe() == "0.5 cpu, 1024 bytes of memory, 2 gpu"
    assert NOTHING.describe(Amounts(500)) == "0 cpu"
    assert NOTHING.describe() == "nothing"


def _resources(asked: Any) -> Amounts | None:
    return plan([node(1, resources=asked)]).nodes[0].resources


@each_row(
    ("asked", "planned"),
    [
        (None, None),
        ({}, None),
        ({"cpu": 0, "memoryBytes": 0, "gpu": 0}, None),
        ({"cpu": 0.25}, Amounts(250)),
        ({"memoryBytes": 2**53}, Amounts(0, 2**53)),
        ({"cpu": 1_000_000, "gpu": 1_000_000}, Amounts(1_000_000_000, 0, 1_000_000)),
        ({"gpu": 1, "colour": "red"}, Amounts(0, 0, 1)),
    ],
)
def test_a_plan_has_what_a_node_asks_for(asked: Any, planned: Amounts | None) -> None:
    assert _resources(asked) == planned


def test_equal_requests_are_one_object() -> None:
    nodes = plan([node(one, resources={"cpu": 1.5}) for one in range(1, 4)]).nodes
    assert nodes[0].resources is nodes[1].resources is nodes[2].resources


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"cpu": -1}, "/nodes/0/resources/cpu"),
        ({"cpu": 1e300}, "/nodes/0/resources/cpu"),
        ({"cpu": True}, "/nodes/0/resources/cpu"),
        ({"cpu": "2"}, "/nodes/0/resources/cpu"),
        ({"cpu": None}, "/nodes/0/resources/cpu"),
        ({"memoryBytes": 1.5}, "/nodes/0/resources/memoryBytes"),
        ({"memoryBytes": -1}, "/nodes/0/resources/memoryBytes"),
        ({"memoryBytes": 2**53 + 1}, "/nodes/0/resources/memoryBytes"),
        ({"memoryBytes": 2**70}, "/nodes/0/resources/memoryBytes"),
        ({"gpu": 0.5}, "/nodes/0/resources/gpu"),
        ({"gpu": False}, "/nodes/0/resources/gpu"),
        ([], "/nodes/0/resources"),
        (2, "/nodes/0/resources"),
    ],
    ids=repr,
)
def test_a_wrong_amount_is_refused_where_it_stands(asked: Any, pointer: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        definition([node(1, resources=asked)])
    assert [one.pointer for one in refused.value.problems] == [pointer]


def test_what_the_scheduler_does_itself_asks_for_nothing() -> None:
    wait = node(1, "core.wait", wait={"seconds": 1}, resources={"cpu": 1})
    assert [one.pointer for one in problems([wait])] == ["/nodes/0/resources"]


def test_a_container_asks_for_nothing() -> None:
    found = problems(
        [node(1, "core.container", resources={"cpu": 1}), node(2, parent=node(1)["id"])]
    )
    assert "/nodes/0/resources" in [one.pointer for one in found]


def test_the_node_asks_and_not_its_middleware() -> None:
    wrapped = node(1, middlewares=[node(2)["id"]], resources={"cpu": 1})
    middleware = node(2, resources={"cpu": 1})
    assert "/nodes/1/resources" in [one.pointer for one in problems([wrapped, middleware])]
