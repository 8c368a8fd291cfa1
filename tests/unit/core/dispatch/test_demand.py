"""What a task needs of a worker, from its node and the results of its upstream."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch.demand import Demand, bind_task, conflict_of, demand_of, lock_of
from astraflow.core.runs.commands import Call, LeaseTask, Report
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.plan import AffinityHint, ResourceRefValue
from tests.unit.plans import AT, make_plan, start, wrapped


def after_result(value: object, *refs: ResourceRefValue) -> RunRecord:
    """A run of two tasks of which the first has given `value` to the second, which refers to `refs` itself."""
    run = start(make_plan(2, [(0, 1)], reads=True, nodes={1: {"resource_refs": refs}})).run
    decide(run, LeaseTask(0, "w1", 1, 30_000), AT, Random(1))
    raw = msgspec.Raw(msgspec.json.encode({"v": value}))
    decide(run, Report(0, 1, "w1", "SUCCEEDED", raw), AT, Random(1))
    return run


def test_the_demand_is_everything_that_decides_where_a_task_can_go() -> None:
    node = {
        "runtime": "python3.11",
        "worker_labels": (("zone", "eu"),),
        "affinity": AffinityHint("model", "sticky"),
        "concurrency_key": "printer",
    }
    run = start(make_plan(1, nodes={0: node})).run
    refs = [ResourceRefValue("r0"), ResourceRefValue("r1", "w7")]
    common = ("acme", "pkg", "1.0", "t.node", "python3.11", (("zone", "eu"),))
    assert demand_of(run, 0, refs) == Demand(*common, "w7", needs_session=True)
    assert demand_of(run, 0, [], "w8") == Demand(*common, None, "w8", needs_session=True)
    assert [demand_of(run, 0, refs, "w8").only, demand_of(run, 0, [], "w8").only] == ["w7", "w8"]
    assert demand_of(run, 0, []).only is None


def test_tasks_that_need_the_same_have_equal_demands() -> None:
    run = start(make_plan(2)).run
    assert demand_of(run, 0, []) == demand_of(run, 1, [])
    assert hash(demand_of(run, 0, [])) == hash(demand_of(run, 1, []))
    assert demand_of(run, 0, []).pin is None


def test_parameters_are_bound_to_the_committed_results_of_upstream() -> None:
    run = after_result([1, "two"])
    assert msgspec.json.decode(bind_task(run, 1)[0]) == {"from0": [1, "two"]}


def test_a_result_that_is_not_there_yet_is_not_bound() -> None:
    run = start(make_plan(2, [(0, 1)], reads=True)).run
    assert msgspec.json.decode(bind_task(run, 1)[0]) == {}


def test_references_are_those_of_the_node_and_those_that_came_with_results() -> None:
    found = {"resourceRef": {"resourceId": "r2", "workerId": "w1"}}
    run = after_result(found)
    refs = bind_task(run, 1)[1]
    assert [(ref.resource_id, ref.worker_id) for ref in refs] == [("r2", "w1")]


def test_a_reference_that_is_named_twice_counts_once() -> None:
    ref = ResourceRefValue("r1", "w1")
    found = {"resourceRef": {"resourceId": "r1", "workerId": "w1"}}
    assert bind_task(after_result(found, ref), 1)[1] == [ref]
    assert bind_task(after_result("nothing", ref, ref), 1)[1] == [ref]


def test_resources_of_two_workers_conflict() -> None:
    refs = [ResourceRefValue("a", "w2"), ResourceRefValue("b", "w1"), ResourceRefValue("c")]
    assert conflict_of(refs) == TaskFailure(
        errors.RESOURCE_CONFLICT.code,
        "CONFIGURATION",
        "the task refers to resources of several workers: w1, w2",
    )


def test_resources_of_one_worker_or_of_none_do_not_conflict() -> None:
    assert conflict_of([ResourceRefValue("a", "w1"), ResourceRefValue("b", "w1")]) is None
    assert conflict_of([ResourceRefValue("a"), ResourceRefValue("b", "w1")]) is None
    assert conflict_of([]) is None


class TestCalls:
    """n1 wraps n0."""

    def called(self, payload: bytes = b"null", **fields: Any) -> RunRecord:
        """A run whose task 2 is a call of the host."""
        run = start(wrapped(1, **fields)).run
        decide(run, LeaseTask(0, "w1", 1, 30_000), AT, Random(1))
        decide(run, Call(0, 1, "w1", "a", 0, msgspec.Raw(payload)), AT, Random(1))
        return run

    def test_a_task_of_a_chain_needs_what_the_node_that_it_executes_needs(self) -> None:
        run = self.called(n0={"type": "t.host"}, n1={"type": "t.outer"})
        assert [demand_of(run, task, []).node_type for task in (0, 2)] == ["t.outer", "t.host"]

    def test_a_call_gets_the_parameters_of_its_node_unless_its_caller_gives_others(self) -> None:
        host = {"parameters": b'{"x":1}'}
        assert bind_task(self.called(n0=host), 2)[0] == b'{"x":1}'
        assert bind_task(self.called(b'{"x":2}', n0=host), 2)[0] == b'{"x":2}'

    def test_a_reference_in_what_the_caller_gives_is_found(self) -> None:
        payload = msgspec.json.encode({"m": {"resourceRef": {"resourceId": "r", "workerId": "w2"}}})
        run = self.called(payload)
        refs = bind_task(run, 2)[1]
        assert demand_of(run, 2, refs).pin == "w2"

    def test_a_call_with_a_key_borrows_it_of_its_chain_alone(self) -> None:
        key = {"concurrency_key": "printer"}
        run = self.called(n0=key, n1=key)
        assert lock_of(run, 0) == ("printer", None)
        assert lock_of(run, 2) == ("printer", "run1.0")

    def test_a_call_without_a_key_borrows_nothing(self) -> None:
        run = self.called(n1={"concurrency_key": "printer"})
        assert lock_of(run, 2) is None

    def test_a_call_whose_callers_have_another_key_or_none_borrows_nothing(self) -> None:
        run = self.called(n0={"concurrency_key": "printer"}, n1={"concurrency_key": "plotter"})
        assert lock_of(run, 2) == ("printer", None)
