"""Workflows that start each other: found when one is saved, stopped when they run."""

from __future__ import annotations

from astraflow.core.triggers.decisions import take_end
from astraflow.core.triggers.loops import MAX_DEPTH, find_loop
from astraflow.core.triggers.record import FireRefused, FireTaken, TriggerRecord, TriggerState, fold
from astraflow.core.workflow.definition import ManualTrigger, TriggerSpec, WorkflowTrigger


def starts(own: str, other: str, state: TriggerState = "enabled") -> TriggerRecord:
    spec = WorkflowTrigger(workflow_id=other)
    return TriggerRecord(
        tenant="acme",
        workflow_id=own,
        name="after",
        spec=spec,
        state=state,
        since=0,
        created_at=0,
        updated_at=0,
    )


def loop(own: str, source: str, *known: TriggerRecord) -> list[str] | None:
    specs: list[TriggerSpec] = [ManualTrigger(), WorkflowTrigger(workflow_id=source)]
    return find_loop(own, source, specs, known)


def test_a_loop_is_found_over_any_number_of_workflows() -> None:
    assert loop("a", "b", starts("b", "a")) == ["a", "b", "a"]
    chain = [starts("b", "a"), starts("c", "b"), starts("d", "b"), starts("d", "c")]
    assert loop("a", "d", *chain) == ["a", "b", "d", "a"]
    assert loop("a", "a") == ["a", "a"]


def test_what_starts_nothing_is_no_loop() -> None:
    assert loop("a", "b") is None
    assert loop("a", "b", starts("b", "a", "disabled")) is None
    assert loop("a", "b", starts("c", "a"), starts("b", "d")) is None
    assert loop("a", "b", starts("a", "x")) is None, "its own triggers are those of the definition"


def test_a_run_that_is_too_deep_is_refused_with_its_reason() -> None:
    record = starts("a", "b")
    (taken,) = take_end(record, "r", {}, at=1, number=5, depth=MAX_DEPTH - 1)
    assert isinstance(taken, FireTaken) and taken.fire.depth == MAX_DEPTH
    taken, refused = take_end(record, "r", {}, at=1, number=5, depth=MAX_DEPTH)
    assert isinstance(refused, FireRefused) and refused.code == "E.TRIGGER.LOOP"
    after = fold(fold(record, taken), refused)
    assert (after.pending, after.events_seen) == ((), 5)
