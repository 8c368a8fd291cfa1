"""What a node was executed with."""

from __future__ import annotations

from random import Random

import msgspec

from astraflow.core.dispatch.execution import NodeExecution, execution_of
from astraflow.core.runs.commands import Call, LeaseTask, Report
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.definition import WaitSpec
from astraflow.core.workflow.plan import ControlStep, PlanExpression
from tests.unit.plans import AT, make_plan, start, wrapped


def lease(run: RunRecord, task: int) -> None:
    decide(run, LeaseTask(task, "w1", 1, 30_000), AT, Random(1))


def test_parameters_are_known_when_a_worker_was_given_them() -> None:
    run = start(make_plan(2, [(0, 1)], reads=True, nodes={0: {"parameters": b'{"a":1}'}})).run
    assert execution_of(run, 0) == NodeExecution("pkg", "1.0", None)
    lease(run, 0)
    assert execution_of(run, 0).parameters == b'{"a":1}'
    raw = msgspec.Raw(b'{"v":7}')
    decide(run, Report(0, 1, "w1", "SUCCEEDED", raw), AT, Random(1))
    assert execution_of(run, 1).parameters is None
    lease(run, 1)
    assert execution_of(run, 1).parameters == b'{"from0":7}'


def test_what_the_scheduler_carries_out_has_parameters_without_an_attempt() -> None:
    wait = ControlStep(wait=WaitSpec(seconds=5.0))
    run = start(make_plan(2, [(0, 1)], nodes={1: {"control": wait}})).run
    assert execution_of(run, 1).parameters is None
    lease(run, 0)
    decide(run, Report(0, 1, "w1", "SUCCEEDED", msgspec.Raw(b"{}")), AT, Random(1))
    assert execution_of(run, 1).parameters == b"{}"


def test_a_parameter_without_a_value_is_left_to_the_error_of_the_node() -> None:
    fields = {
        "control": ControlStep(choose="if"),
        "parameters": b'{"condition":"=1/0"}',
        "expressions": (PlanExpression(("condition",), "1/0"),),
    }
    run = start(make_plan(1, nodes={0: fields})).run
    assert run.status == "failed"
    assert execution_of(run, 0).parameters is None


def test_a_host_is_shown_with_what_its_middleware_gave_it() -> None:
    run = start(wrapped(1)).run
    lease(run, 0)
    payload = msgspec.Raw(b'{"other":true}')
    decide(run, Call(0, 1, "w1", "r1", 0, payload), AT, Random(1))
    call = len(run.tasks) - 1
    lease(run, call)
    assert execution_of(run, call).parameters == b'{"other":true}'
