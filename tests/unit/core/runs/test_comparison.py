from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.contract.reruns import NodeSide
from astraflow.core.runs.comparison import ComparedNode, ComparedRun, compare_runs, side_of
from tests.unit.core.runs.test_rerun import CHAIN, finished


def node(parameters: Any = None, result: Any = None, **fields: Any) -> ComparedNode:
    given = {"status": "succeeded", "attempt": 1, "package": "p", "package_version": "1", **fields}
    raw = None if result is None else msgspec.json.encode(result)
    return ComparedNode("L", "t", NodeSide(**given), msgspec.json.encode(parameters or {}), raw)


def run(inputs: bytes = b"{}", **nodes: ComparedNode) -> ComparedRun:
    return ComparedRun("r", "succeeded", inputs, nodes)


def test_a_run_is_equal_to_itself_also_when_it_is_read_twice() -> None:
    failed = side_of(finished(CHAIN, failing=1))
    found = compare_runs(failed, side_of(finished(CHAIN, failing=1)))
    assert all(one.is_equal for one in found.nodes)
    assert [one.result for one in found.nodes] == ["equal", "none", "none"]
    assert [one.first and one.first.status for one in found.nodes] == [
        "succeeded",
        "failed",
        "skipped",
    ]
    assert failed.size > 0


def test_each_thing_that_differs_makes_a_node_differ() -> None:
    usual = node({"a": 1}, {"v": 1})
    for other, word in (
        (node({"a": 2}, {"v": 1}), "equal"),
        (node({"a": 1}, {"v": 2}), "changed"),
        (node({"a": 1}, {"v": 1}, package_version="2"), "equal"),
        (node({"a": 1}, {"v": 1}, status="failed"), "equal"),
        (node({"a": 1}), "only_first"),
    ):
        (found,) = compare_runs(run(n=usual), run(n=other)).nodes
        assert (found.is_equal, found.result) == (False, word)
    (turned,) = compare_runs(run(n=node()), run(n=usual)).nodes
    assert turned.result == "only_second"


def test_spelling_workers_and_times_make_no_difference() -> None:
    one = msgspec.structs.replace(node({}, {}), result=b'{"a": 1, "b": 2.0}')
    two = node({}, {"b": 2, "a": 1}, worker_id="other", duration_ms=9, attempt=3)
    (found,) = compare_runs(run(n=one), run(n=two)).nodes
    assert (found.is_equal, found.result) == (True, "equal")


def test_a_node_that_one_run_does_not_have_has_one_side() -> None:
    found = compare_runs(run(b'{"i": 1}', a=node()), run(b'{"i": 2}', b=node(result=1)))
    first, second = found.nodes
    assert (first.node_id, first.second, first.is_equal) == ("a", None, False)
    assert (second.node_id, second.first, second.result) == ("b", None, "only_second")
    assert [one.pointer for one in found.inputs] == ["/i"]


def test_the_number_of_differences_is_bounded_and_says_so() -> None:
    one, two = node(result=[0] * 9), node(result=[1] * 9)
    found = compare_runs(run(n=one), run(n=two), limit=4)
    assert len(found.nodes[0].result_changes) == 4
    assert found.is_truncated
