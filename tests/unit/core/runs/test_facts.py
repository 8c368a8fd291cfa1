"""Facts: what is stored of a run keeps its form for ever."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from astraflow.core.ids import RunId
from astraflow.core.runs.facts import (
    AnyFact,
    ArtifactRef,
    AttemptFailed,
    AttemptProgressed,
    AttemptStarted,
    Chunk,
    Fact,
    RunAccepted,
    RunFinished,
    TaskFact,
    TaskFailure,
    TaskLeased,
    TaskReused,
    TaskSucceeded,
    decode_fact,
    encode_fact,
    width,
)
from astraflow.core.runs.projections import events_of
from tests.tables import each_row
from tests.unit.core.runs.examples import ARTIFACT, ERROR, FULL_FACTS, places
from tests.unit.plans import AT

REQUIRED = {
    "run.accepted": ("at", "run_id", "tenant", "workflow_id"),
    "run.started": ("at",),
    "run.cancel_requested": ("at",),
    "run.compensation_began": ("at", "kind", "branches"),
    "run.finished": ("at", "status"),
    "call.opened": (
        "at",
        "task",
        "call_id",
        "parent",
        "parent_attempt",
        "request_id",
        "chain_index",
    ),
    "scope.opened": ("at", "task", "first", "count"),
    "scope.closing": ("at", "task"),
    "edges.decided": ("at", "task", "source"),
    "task.passed": ("at", "task"),
    "run.signal_received": ("at", "name"),
    "task.parked": ("at", "task", "waiting_for"),
    "task.decided": ("at", "task"),
    "task.waiting": ("at", "task", "waiting_for"),
    "task.leased": ("at", "task", "attempt", "worker", "incarnation", "ttl_ms"),
    "attempt.started": ("at", "task", "attempt"),
    "attempt.progressed": ("at", "task", "attempt"),
    "attempt.stop_requested": ("at", "task", "attempt", "why", "grace_ms"),
    "attempt.refused": ("at", "task", "attempt", "code", "delay_s"),
    "attempt.lost": ("at", "task", "attempt", "cause", "delay_s"),
    "attempt.failed": ("at", "task", "attempt", "error", "delay_s"),
    "task.succeeded": ("at", "task", "attempt"),
    "task.reused": ("at", "task", "from_run"),
    "task.rebuilt": ("at", "task", "resource_id", "cause", "again"),
    "task.failed": ("at", "task", "attempt", "error"),
    "task.skipped": ("at", "task", "code"),
    "task.cancelled": ("at", "task", "attempt"),
}
"""Fields that every stored fact of a tag has. A released row only ever stays as it is."""

OPTIONAL = {
    "run.accepted": (
        "inputs",
        "idempotency_key",
        "fingerprint",
        "deadline_s",
        "rerun_of",
        "trace",
        "by",
        "corr",
        "pinned",
        "signal_key",
        "depth",
        "name",
        "version",
        "trigger",
    ),
    "run.started": (),
    "run.cancel_requested": ("by", "reason"),
    "run.compensation_began": (),
    "run.finished": ("error",),
    "call.opened": ("payload", "timeout_ms"),
    "scope.opened": ("parameters", "items", "until", "for_ms"),
    "scope.closing": ("error",),
    "edges.decided": ("dead", "is_taken"),
    "task.passed": ("result",),
    "run.signal_received": ("payload", "by", "signal_id"),
    "task.parked": ("for_ms",),
    "task.decided": ("result", "by", "signal"),
    "task.waiting": (),
    "task.leased": ("key", "affinity_key"),
    "attempt.started": ("by", "ttl_ms"),
    "attempt.progressed": ("progress", "message", "stage", "chunks", "dropped", "metrics"),
    "attempt.stop_requested": (),
    "attempt.refused": ("message", "counted"),
    "attempt.lost": (),
    "attempt.failed": ("output", "failure", "allowed"),
    "task.succeeded": ("result", "artifacts", "duration_ms"),
    "task.reused": ("result", "artifacts"),
    "task.rebuilt": ("stale",),
    "task.failed": ("confirmed", "output"),
    "task.skipped": ("because", "attempt"),
    "task.cancelled": ("confirmed", "phase", "partial"),
}
"""Fields that a stored fact may lack; a newer release may add to them, and to nothing else."""

KINDS = {kind.__struct_config__.tag: kind for kind in get_args(AnyFact)}


def test_every_kind_of_fact_has_a_tag_of_its_own() -> None:
    assert len(KINDS) == len(get_args(AnyFact))
    assert set(KINDS) == set(REQUIRED) == set(OPTIONAL)


@each_row("tag", sorted(REQUIRED))
def test_a_tag_keeps_the_fields_that_were_released_with_it(tag: str) -> None:
    fields = msgspec.structs.fields(KINDS[tag])
    assert tuple(one.encode_name for one in fields if one.required) == REQUIRED[tag]
    assert tuple(one.encode_name for one in fields if not one.required) == OPTIONAL[tag]


def test_the_examples_are_of_every_kind_with_no_field_left_at_its_default() -> None:
    assert [type(fact) for fact in FULL_FACTS] == list(KINDS.values())
    for fact in FULL_FACTS:
        stored = msgspec.json.decode(encode_fact(fact))
        assert set(stored) == {"fact", *fact.__struct_fields__}


@each_row("fact", FULL_FACTS)
def test_a_fact_is_read_as_it_was_written(fact: AnyFact) -> None:
    stored = encode_fact(fact)
    assert decode_fact(stored) == fact
    assert encode_fact(decode_fact(stored)) == stored


def test_what_has_its_default_is_not_stored() -> None:
    stored = encode_fact(AttemptStarted(AT, 4, 1))
    assert stored == b'{"fact":"attempt.started","at":1700000000000,"task":4,"attempt":1}'


def test_a_fact_with_only_what_is_required_is_read_with_defaults() -> None:
    raw = b'{"fact":"run.accepted","at":1,"run_id":"r","tenant":"t","workflow_id":"w"}'
    assert decode_fact(raw) == RunAccepted(1, RunId("r"), "t", "w")


def test_a_field_of_a_later_release_is_passed_over() -> None:
    raw = b'{"fact":"attempt.started","at":1,"task":0,"attempt":1,"later":{"x":[]}}'
    assert decode_fact(raw) == AttemptStarted(1, 0, 1)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"at":1,"task":0,"attempt":1}',
        b'{"fact":"task.vanished","at":1,"task":0}',
        b'{"fact":"attempt.started","at":1,"task":0}',
        b'{"fact":"run.finished","at":1,"status":"done"}',
    ],
)
def test_what_no_release_wrote_is_not_read(raw: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_fact(raw)


@each_row("fact", FULL_FACTS)
def test_a_fact_cannot_be_changed(fact: Fact) -> None:
    with pytest.raises(AttributeError):
        fact.at = 0  # type: ignore[misc]


def other(resource_id: str) -> ArtifactRef:
    return ArtifactRef(resource_id, "w1", "file")


@each_row(
    ("fact", "expected"),
    [
        (TaskLeased(AT, 0, 1, "w1", 1, 1), 1),
        (RunFinished(AT, "failed", ERROR), 1),
        (AttemptFailed(AT, 0, 1, ERROR, 0.0), 2),
        (TaskSucceeded(AT, 0, 1), 2),
        (TaskSucceeded(AT, 0, 1, artifacts=(ARTIFACT, other("r2"))), 4),
        (TaskReused(AT, 0, "run0"), 2),
        (TaskReused(AT, 0, "run0", artifacts=(ARTIFACT,)), 3),
        (AttemptProgressed(AT, 0, 1), 1),
        (AttemptProgressed(AT, 0, 1, 0.5), 1),
        (AttemptProgressed(AT, 0, 1, message=""), 1),
        (AttemptProgressed(AT, 0, 1, stage="load"), 1),
        (AttemptProgressed(AT, 0, 1, dropped=1), 1),
        (AttemptProgressed(AT, 0, 1, chunks=(Chunk("log", 0, "a"),)), 1),
        (AttemptProgressed(AT, 0, 1, chunks=(Chunk("log", 0, "a"), Chunk("log", 1, "b"))), 2),
        (AttemptProgressed(AT, 0, 1, 0.0, chunks=(Chunk("log", 0, "a"),)), 2),
        (AttemptProgressed(AT, 0, 1, dropped=3, chunks=(Chunk("log", 0, "a"),)), 2),
        (AttemptProgressed(AT, 0, 1, metrics={"loss": 0.5}), 1),
        (AttemptProgressed(AT, 0, 1, 0.5, metrics={"loss": 0.5}), 2),
        (AttemptProgressed(AT, 0, 1, metrics={"a": 1}, chunks=(Chunk("log", 0, "a"),)), 2),
    ],
)
def test_the_width_of_a_fact_is_the_number_of_its_events(fact: Fact, expected: int) -> None:
    assert width(fact) == expected
    assert len(events_of(fact, 1, places())) == expected


@each_row("fact", FULL_FACTS)
def test_every_kind_is_as_wide_as_it_is_shown(fact: Fact) -> None:
    assert len(events_of(fact, 1, places())) == width(fact)


def test_a_fact_of_a_task_is_stored_with_its_place() -> None:
    of_tasks = [kind for kind in KINDS.values() if issubclass(kind, TaskFact)]
    assert len(of_tasks) == 21
    assert all("task" in kind.__struct_fields__ for kind in of_tasks)


def test_a_problem_says_no_more_than_it_was_given() -> None:
    raw = msgspec.json.encode(TaskFailure("E.TIMEOUT", "TIMEOUT"))
    assert raw == b'{"code":"E.TIMEOUT","category":"TIMEOUT"}'
