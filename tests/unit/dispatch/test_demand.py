"""What a task needs of a worker, from its node and the results of its upstream."""

from __future__ import annotations

from random import Random

import msgspec

from astraflow import errors
from astraflow.dispatch.demand import Demand, bound_parameters, conflict_of, demand_of, refs_of
from astraflow.runs.commands import Lease, Report
from astraflow.runs.decisions import decide
from astraflow.runs.facts import Problem
from astraflow.runs.run import Run
from astraflow.workflow.plan import AffinityHint, ResourceRefValue
from tests.unit.plans import AT, make_plan, start


def after_result(value: object) -> Run:
    """A run of two tasks of which the first has given `value` to the second."""
    run = start(make_plan(2, [(0, 1)], reads=True)).run
    decide(run, Lease(0, "w1", 1, 30_000), AT, Random(1))
    raw = msgspec.Raw(msgspec.json.encode({"v": value}))
    decide(run, Report(0, 1, "w1", "SUCCEEDED", raw), AT, Random(1))
    return run


def test_the_demand_is_everything_that_decides_where_a_task_can_go() -> None:
    hint = AffinityHint("model", "sticky")
    node = {
        "runtime": "python3.11",
        "worker_labels": (("zone", "eu"),),
        "affinity": hint,
        "concurrency_key": "printer",
    }
    run = start(make_plan(1, nodes={0: node})).run
    refs = [ResourceRefValue("r0"), ResourceRefValue("r1", "w7")]
    assert demand_of(run, 0, refs) == Demand(
        "acme", "pkg", "1.0", "t.node", "python3.11", (("zone", "eu"),), "w7", hint, "printer"
    )


def test_tasks_that_need_the_same_have_equal_demands() -> None:
    run = start(make_plan(2)).run
    assert demand_of(run, 0, []) == demand_of(run, 1, [])
    assert hash(demand_of(run, 0, [])) == hash(demand_of(run, 1, []))
    assert demand_of(run, 0, []).pin is None


def test_parameters_are_bound_to_the_committed_results_of_upstream() -> None:
    run = after_result([1, "two"])
    assert msgspec.json.decode(bound_parameters(run, 1)) == {"from0": [1, "two"]}


def test_a_result_that_is_not_there_yet_is_not_bound() -> None:
    run = start(make_plan(2, [(0, 1)], reads=True)).run
    assert msgspec.json.decode(bound_parameters(run, 1)) == {}


def test_references_are_those_of_the_node_and_those_that_came_with_results() -> None:
    found = {"resourceRef": {"resourceId": "r2", "workerId": "w1"}}
    run = after_result(found)
    refs = refs_of(run, 1, bound_parameters(run, 1))
    assert [(ref.resource_id, ref.worker_id) for ref in refs] == [("r2", "w1")]


def test_a_reference_that_is_named_twice_counts_once() -> None:
    ref = ResourceRefValue("r1", "w1")
    run = start(make_plan(1, nodes={0: {"resource_refs": (ref, ref)}})).run
    assert refs_of(run, 0, b"{}") == [ref]


def test_resources_of_two_workers_conflict() -> None:
    refs = [ResourceRefValue("a", "w2"), ResourceRefValue("b", "w1"), ResourceRefValue("c")]
    assert conflict_of(refs) == Problem(
        errors.RESOURCE_CONFLICT.code,
        "CONFIGURATION",
        "the task refers to resources of several workers: w1, w2",
    )


def test_resources_of_one_worker_or_of_none_do_not_conflict() -> None:
    assert conflict_of([ResourceRefValue("a", "w1"), ResourceRefValue("b", "w1")]) is None
    assert conflict_of([ResourceRefValue("a"), ResourceRefValue("b", "w1")]) is None
    assert conflict_of([]) is None
