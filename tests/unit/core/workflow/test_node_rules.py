from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import StaticCatalog, core_manifest
from tests.tables import each_row
from tests.unit.core.workflow.drafts import edge, found, manifest, node, plan, problems

PORTS = {"inputPorts": [{"key": "in"}], "outputPorts": [{"key": "out"}]}


def test_ids_must_be_uuids() -> None:
    assert found([{"id": "n1", "type": "core.noop"}, node(2)]) == [("/nodes/0/id", "BAD_ID")]


def test_two_nodes_with_one_id_are_reported_at_the_second() -> None:
    assert found([node(1), node(2), node(1)]) == [("/nodes/2/id", "DUPLICATE_ID")]


def test_ids_that_differ_in_case_alone_are_the_same() -> None:
    upper = "0000000A-0000-4000-8000-00000000000B"
    nodes = [{"id": upper, "type": "core.noop"}, {"id": upper.lower(), "type": "core.noop"}]
    assert found(nodes) == [("/nodes/1/id", "DUPLICATE_ID")]
    assert found(nodes[:1]) == []


@pytest.mark.parametrize(
    ("label", "code"),
    [("x" * 10_000_000, "LIMIT"), ("pay\u202elap", "BAD_TEXT"), ("a\x07", "BAD_TEXT")],
)
def test_a_label_that_cannot_be_shown_is_a_problem(label: str, code: str) -> None:
    assert found([node(1, label=label)]) == [("/nodes/0/label", code)]


def test_a_label_may_have_lines() -> None:
    assert found([node(1, label="two\nlines")]) == []


@each_row(
    ("fields", "expected"),
    [
        ({"type": "no.such"}, ("/nodes/0/type", "UNKNOWN_TYPE")),
        ({"type": "no.such", "package": {"name": "core"}}, ("/nodes/0/type", "UNKNOWN_TYPE")),
        ({"package": {"name": "nope"}}, ("/nodes/0/package", "UNKNOWN_PACKAGE")),
        (
            {"package": {"name": "core", "version": "9.9"}},
            ("/nodes/0/package", "UNKNOWN_PACKAGE"),
        ),
        ({"package": {"name": "../x"}}, ("/nodes/0/package/name", "BAD_TEXT")),
        ({"package": {"name": "core", "version": "x"}}, ("/nodes/0/package/version", "BAD_TEXT")),
        ({"type": "a b"}, ("/nodes/0/type", "BAD_TEXT")),
        ({"type": "a" * 129}, ("/nodes/0/type", "BAD_TEXT")),
    ],
)
def test_what_cannot_be_resolved_is_reported(
    fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert found([node(1, **{"node_type": fields.pop("type", "core.noop"), **fields})]) == [
        expected
    ]


def test_an_unresolved_node_is_not_reported_again_by_its_edges() -> None:
    nodes = [node(1), node(2, "no.such")]
    assert found(nodes, [edge("1.done", "2.nope"), edge("2.nope", "1.trigger")]) == [
        ("/nodes/1/type", "UNKNOWN_TYPE")
    ]


def test_a_type_of_several_packages_needs_a_package() -> None:
    both = [manifest(name=name, nodes=[{"type": "x.y"}]) for name in ("one", "two")]
    catalog = StaticCatalog(both)
    (problem,) = problems([node(1, "x.y")], catalog=catalog)
    assert problem.pointer == "/nodes/0/type"
    assert "several packages" in problem.message
    assert found([node(1, "x.y", package={"name": "two"})], catalog=catalog) == []


def test_a_node_that_carries_its_ports_and_pins_its_package_needs_no_catalog() -> None:
    carried = node(1, "far.away", package={"name": "far", "version": "1.2"}, ui=PORTS)
    made = plan([carried, node(2, "core.echo")], [edge("1.out", "2.value")])
    assert made.nodes[0].package_version == "1.2"
    assert made.nodes[1].inputs[0].read == ("out",)


@pytest.mark.parametrize(
    "fields",
    [
        {"package": {"name": "far"}, "ui": PORTS},
        {"package": {"name": "far", "version": "1"}, "ui": {"widgets": []}},
        {"package": {"name": "far", "version": "1"}},
        {"ui": PORTS},
    ],
)
def test_a_node_that_leaves_something_open_needs_the_catalog(fields: dict[str, Any]) -> None:
    assert len(problems([node(1, "far.away", **fields)])) == 1


def test_a_known_package_without_the_type_is_a_problem_even_with_ports() -> None:
    pinned = node(1, "core.nope", package={"name": "core", "version": "1.0.0"}, ui=PORTS)
    assert found([pinned]) == [("/nodes/0/type", "UNKNOWN_TYPE")]


def test_ports_of_the_node_stand_in_front_of_those_of_the_type_side_by_side() -> None:
    own = {"inputPorts": [{"key": "mine", "binding": {"path": "parameters.value"}}]}
    nodes = [node(1, "core.echo"), node(2, "core.echo", ui=own), node(3, "core.echo")]
    edges = [edge("1.value", "2.mine"), edge("2.value", "3.value")]
    assert found(nodes, edges) == []
    assert found(nodes, [edge("1.value", "2.value")]) == [("/edges/0/target/port", "UNKNOWN_PORT")]


def test_the_hint_of_a_runtime_bounds_the_newest_version() -> None:
    catalog = StaticCatalog([manifest(version="1.0", nodes=[{"type": "ex.a"}]), core_manifest()])
    hints = {"python": {"workerHints": {"package": "example", "minVersion": "2.0"}}}
    nodes = [node(1, "ex.a", package={"name": "example"})]
    assert found(nodes, catalog=catalog, runtimes=hints) == [
        ("/nodes/0/package", "UNKNOWN_PACKAGE")
    ]
    hints["python"]["workerHints"]["minVersion"] = "1.0"
    assert found(nodes, catalog=catalog, runtimes={**hints, "other": {}}) == []
    own = [node(1, "ex.a", package={"name": "example"}, workerHints={"minVersion": "3"})]
    assert found(own, catalog=catalog) == [("/nodes/0/package", "UNKNOWN_PACKAGE")]


def test_the_hint_of_a_runtime_holds_for_nodes_that_name_no_package() -> None:
    rows = [manifest(version=version, nodes=[{"type": "ex.a"}]) for version in ("1.0", "2.0rc1")]
    catalog = StaticCatalog([*rows, core_manifest()])
    hints = {"python": {"workerHints": {"package": "example", "minVersion": "1.5"}}}
    assert plan([node(1, "ex.a")], catalog=catalog).nodes[0].package_version == "1.0"
    assert (
        plan([node(1, "ex.a")], catalog=catalog, runtimes=hints).nodes[0].package_version
        == "2.0rc1"
    )
    hints["python"]["workerHints"]["minVersion"] = "3.0"
    assert found([node(1, "ex.a")], catalog=catalog, runtimes=hints) == [
        ("/nodes/0/package", "UNKNOWN_PACKAGE")
    ]
    own = [node(1, "ex.a", workerHints={"minVersion": "3"})]
    assert found(own, catalog=catalog) == [("/nodes/0/package", "UNKNOWN_PACKAGE")]


def test_a_name_that_is_no_name_is_reported_once_however_many_nodes_bear_it() -> None:
    assert found([node(1, "a b"), node(2, "a b")]) == [("/nodes/0/type", "BAD_TEXT")]


def test_unknown_ids_are_not_echoed_at_length() -> None:
    (problem,) = problems([{"id": "x" * 5_000, "type": "core.noop"}])
    assert len(problem.message) < 200
