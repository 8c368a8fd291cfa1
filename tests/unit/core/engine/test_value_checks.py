"""What a task is given and what it returns, against the schemas of its plan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.runs.facts import (
    AttemptProgressed,
    AttemptStarted,
    Fact,
    RunFinished,
    TaskFailed,
    TaskFailure,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.workflow.plan import Feature, InputEdge, Plan
from tests.unit.core.engine.rig import Rig, Worker
from tests.unit.plans import make_plan, retrying

TEXT = b'{"properties": {"from0": {"type": "string"}}, "required": ["from0"]}'
NUMBER = b'{"properties": {"v": {"type": "number"}}}'


def told(rig: Rig) -> list[Fact]:
    """What is new beside the start of attempts."""
    return [fact for fact in rig.new_facts() if not isinstance(fact, AttemptStarted)]


def chain(**fields: Any) -> Plan:
    """n0 → n1, which takes a text."""
    return make_plan(
        2, [(0, 1)], reads=True, nodes={1: {"parameters_schema": 0}}, schemas=(TEXT,), **fields
    )


def test_what_fits_is_dispatched(rig: Rig, worker: Worker) -> None:
    rig.submit(chain())
    worker.finish(value="text")
    assert worker.tasks() == [("run1.0", 1), ("run1.1", 1)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, '/from0: the value is not of type "string"'),
        (None, "/from0: it is required and missing"),
    ],
)
def test_what_does_not_fit_fails_the_task_and_goes_to_no_worker(
    rig: Rig, worker: Worker, value: object, says: str
) -> None:
    rig.submit(chain())
    rig.new_facts()
    worker.finish(value=value)
    failed, finished = told(rig)[-2:]
    message = f"the parameters do not fit the schema of the node: {says}"
    error = TaskFailure(errors.TASK_INPUT_INVALID.code, "CONFIGURATION", message, retryable=False)
    assert failed == TaskFailed(0, 1, 0, error)
    assert finished == RunFinished(0, "failed", error)
    assert worker.tasks() == [("run1.0", 1)]


def test_the_failure_is_replayed_with_the_run(rig: Rig, worker: Worker) -> None:
    rig.submit(
        make_plan(
            3, [(0, 1), (1, 2)], reads=True, nodes={1: {"parameters_schema": 0}}, schemas=(TEXT,)
        )
    )
    rig.submit(chain(), "run2")
    rig.restart()
    rig.wait(3.0)
    worker.finish(0, value=5)
    assert [type(fact) for fact in rig.facts("run1")][-3:] == [TaskFailed, TaskSkipped, RunFinished]


def test_a_value_that_comes_after_the_task_was_queued_is_checked_too(rig: Rig) -> None:
    """A join that waits for one edge only: the other one writes while the task has no place yet."""
    inputs = (InputEdge(0, ("v",), ("from0",)), InputEdge(1, ("v",), ("from0",)))
    nodes: dict[int, dict[str, Any]] = {
        0: {"package_name": "a"},
        1: {"package_name": "a"},
        2: {"join": "any", "inputs": inputs, "parameters_schema": 0},
    }
    plan = make_plan(
        3, [(0, 2), (1, 2)], nodes=nodes, features=frozenset({Feature.JOIN_ANY}), schemas=(TEXT,)
    )
    first = rig.worker("w1", packages={"a": "1.0"})
    rig.submit(plan)
    first.finish(0, value="text")
    assert not rig.task(2).is_terminal
    first.finish(1, value=5)
    rig.worker("w2")
    assert isinstance(rig.facts()[-2], TaskFailed)
    assert rig.workers["acme/w2"].tasks() == []


def results(policy: str, **fields: Any) -> tuple[Rig, Worker]:
    rig = Rig(result_schemas=policy)
    worker = rig.worker()
    rig.submit(make_plan(1, nodes={0: {"results_schema": 0, **fields}}, schemas=(NUMBER,)))
    rig.new_facts()
    return rig, worker


@pytest.mark.parametrize("policy", ["off", "warn", "fail"])
def test_a_result_that_fits_counts(policy: str) -> None:
    rig, worker = results(policy)
    worker.finish(value=5)
    assert [type(fact) for fact in told(rig)] == [TaskSucceeded, RunFinished]


def test_a_result_that_does_not_fit_counts_with_a_warning() -> None:
    rig, worker = results("warn")
    worker.finish(value="text")
    warned, done, _ = told(rig)
    assert isinstance(done, TaskSucceeded)
    assert isinstance(warned, AttemptProgressed)
    (line,) = warned.chunks
    assert (line.channel, line.text) == ("schema", '/v: the value is not of type "number"')
    assert msgspec.json.decode(line.metadata) == {"level": "warning"}
    assert rig.counted("result does not fit its schema") == 1


def test_a_result_that_does_not_fit_counts_when_nobody_looks() -> None:
    rig, worker = results("off")
    worker.finish(value="text")
    assert [type(fact) for fact in told(rig)] == [TaskSucceeded, RunFinished]


def test_a_result_that_does_not_fit_fails_the_attempt_by_policy() -> None:
    rig, worker = results("fail", **retrying(2))
    worker.finish(value="text")
    failed, _ = told(rig)
    assert isinstance(failed, TaskFailed)  # PROTOCOL §9: another attempt makes no better data
    assert (failed.error.code, failed.error.category) == (errors.RESULT_SCHEMA.code, "DATA_QUALITY")
    assert failed.error.message.endswith('/v: the value is not of type "number"')
