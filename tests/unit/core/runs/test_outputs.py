"""The declared outputs of a run."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from astraflow.core.runs.commands import LeaseTask, Report
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.outputs import MAX_OUTPUTS_BYTES, outputs_of
from astraflow.core.runs.projections import view_head
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.plan import PlanOutput
from tests.unit.plans import AT, make_plan, start

DECLARED = (
    PlanOutput("all", 0, ()),
    PlanOutput("deep", 0, ("page", "title")),
    PlanOutput("none", 0, ("nothing", "here")),
    PlanOutput("done", 0, None),
    PlanOutput("bare", 0, ("page",), "title"),
    PlanOutput("other", 1, ()),
)


def run_with(result: Any, outputs: tuple[PlanOutput, ...] = DECLARED) -> RunRecord:
    plan = msgspec.structs.replace(
        make_plan(2, [(0, 1)], nodes={1: {"disabled": True}}), outputs=outputs
    )
    run = start(plan, inputs=msgspec.Raw(b'{"a": 1}')).run
    assert outputs_of(run) is None
    decide(run, LeaseTask(0, "w", 1, 1000), AT, Random(1))
    raw = msgspec.Raw(msgspec.json.encode(result))
    decide(run, Report(0, 1, "w", "SUCCEEDED", raw), AT, Random(1))
    return run


def test_every_declared_output_is_there_when_the_run_has_succeeded() -> None:
    head = msgspec.json.decode(msgspec.json.encode(view_head(run_with({"page": {"title": "t"}}))))
    assert head["inputs"] == {"a": 1}
    assert head["outputs"] == {
        "all": {"page": {"title": "t"}},
        "deep": "t",
        "none": None,
        "done": True,
        "bare": "t",
        "other": None,
    }
    assert "outputsTruncated" not in head


def test_outputs_that_are_too_large_together_are_left_to_their_nodes() -> None:
    outputs = (
        PlanOutput("a", 0, ("text",)),
        PlanOutput("b", 0, ("text",)),
        PlanOutput("c", 0, ("n",)),
    )
    found = outputs_of(run_with({"text": "x" * (MAX_OUTPUTS_BYTES // 2), "n": 1}, outputs))
    assert found is not None
    assert found.is_truncated
    assert (bytes(found.values["b"]), bytes(found.values["c"])) == (b"null", b"1")


def test_a_workflow_without_outputs_has_none() -> None:
    run = run_with({}, ())
    assert run.status == "succeeded"
    assert outputs_of(run) is None
    assert view_head(run).outputs is None
