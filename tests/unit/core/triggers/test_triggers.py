from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.fleet.facts import NoTransition
from astraflow.core.timestamps import iso
from astraflow.core.triggers.decisions import (
    GIVE_UP_MS,
    LATE_MS,
    MAX_PENDING,
    declare,
    due,
    give_up,
    next_due,
    ready,
    take,
)
from astraflow.core.triggers.fires import Fire, inputs_of, jitter_ms, key_of, slot_of
from astraflow.core.triggers.record import (
    EventsSeen,
    FireRefused,
    FireStarted,
    FireTaken,
    SlotsSkipped,
    TriggerDeclared,
    TriggerDisabled,
    TriggerEnabled,
    TriggerFact,
    TriggerRecord,
    TriggerRedeclared,
    TriggerRemoved,
    fold,
)
from astraflow.core.workflow.definition import (
    CronTrigger,
    ManualTrigger,
    TriggerSpec,
    WebhookTrigger,
    WorkflowTrigger,
)
from tests.tables import each_row

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
HOUR = 3_600_000
HOURLY = CronTrigger("0 * * * *")
WHO = ("t", NOON, "w", "n")
FIRE = Fire(number=1, slot="time x", cause="schedule", scheduled_at=NOON, taken_at=NOON)


def trigger(spec: TriggerSpec = HOURLY, **fields: Any) -> TriggerRecord:
    given = {"since": NOON, "created_at": NOON, "updated_at": NOON, **fields}
    return TriggerRecord(tenant="t", workflow_id="w", name="n", spec=spec, **given)


def cron(**fields: Any) -> CronTrigger:
    return CronTrigger(**{"expression": "0 * * * *", **fields})


def folded(record: TriggerRecord | None, facts: list[TriggerFact]) -> TriggerRecord:
    for fact in facts:
        record = fold(record, fact)
    assert record is not None
    return record


def saved(
    known: list[TriggerRecord], specs: list[TriggerSpec], at: int = NOON
) -> list[TriggerFact]:
    ids = count(1)
    return declare(
        known, "t", "w", specs, at=at, events_seen=7, new_hook_id=lambda: f"hook-{next(ids)}"
    )


def slots(facts: list[TriggerFact]) -> list[tuple[str, str]]:
    """What becomes of which time."""
    found: list[tuple[str, str]] = []
    for fact in facts:
        if isinstance(fact, FireTaken):
            found.append((fact.fire.cause, iso(fact.fire.scheduled_at)[11:16]))
        elif isinstance(fact, SlotsSkipped):
            found.append((fact.reason, iso(fact.scheduled_at)[11:16]))
    return found


# -- declaring -----------------------------------------------------------------------------------


def test_the_triggers_of_a_first_version_are_declared() -> None:
    specs: list[TriggerSpec] = [HOURLY, WebhookTrigger(disabled=True), ManualTrigger(id="by-hand")]
    facts = saved([], specs)
    records = [fact.record for fact in facts if isinstance(fact, TriggerDeclared)]
    assert [(one.name, one.state, one.hook_id) for one in records] == [
        ("cron-1", "enabled", ""),
        ("webhook-1", "disabled", "hook-1"),
        ("by-hand", "enabled", ""),
    ]
    assert {one.since for one in records} == {NOON} and {one.events_seen for one in records} == {7}


def test_a_trigger_that_stays_the_same_stays_as_it_is() -> None:
    record = fold(None, saved([], [HOURLY])[0])
    assert saved([record], [HOURLY], NOON + HOUR) == []


def test_a_trigger_that_is_changed_keeps_its_history_and_state() -> None:
    known = trigger(number=9, pending=(FIRE,), state="disabled", last_run_id="r1")
    known = msgspec.structs.replace(known, name="cron-1")
    later = NOON + HOUR
    [fact] = saved([known], [cron(values={"a": msgspec.Raw(b"1")})], later)
    after = fold(known, fact)
    assert (after.number, after.state, after.pending) == (9, "disabled", (FIRE,))
    assert after.since == NOON, "its times are the same"
    [fact] = saved([known], [cron(expression="30 * * * *")], later)
    assert fold(known, fact).since == later, "times of another schedule do not count"


@each_row(
    ("was", "state", "now", "expected"),
    [
        (False, "enabled", True, "disabled"),
        (True, "disabled", False, "enabled"),
        (True, "enabled", True, "enabled"),
        (False, "disabled", False, "disabled"),
    ],
)
def test_what_a_person_switched_holds_until_the_definition_says_otherwise(
    was: bool, state: Any, now: bool, expected: str
) -> None:
    known = msgspec.structs.replace(trigger(cron(disabled=was), state=state), name="cron-1")
    [fact] = saved([known], [cron(disabled=now, jitter_seconds=1)], NOON + HOUR)
    after = fold(known, fact)
    assert after.state == expected
    assert after.since == (NOON if state == expected else NOON + HOUR)


def test_what_a_version_lacks_is_removed_and_another_type_is_another_trigger() -> None:
    known = trigger(pending=(FIRE,))
    facts = saved([known], [WebhookTrigger(id="n")])
    assert [type(fact) for fact in facts] == [TriggerRemoved, TriggerDeclared]
    [gone] = saved([known], [])
    after = fold(known, gone)
    assert after.state == "removed" and not after.pending
    assert folded(None, facts[1:]).hook_id == "hook-1"


# -- transitions ---------------------------------------------------------------------------------


def test_enabling_forgets_what_was_before() -> None:
    record = fold(trigger(since=NOON - 5 * HOUR), TriggerDisabled(*WHO))
    assert record.state == "disabled" and next_due(record) is None
    assert due(record, NOON, is_active=False) == []
    record = fold(record, TriggerEnabled(*WHO, 12))
    assert (record.state, record.since, record.events_seen) == ("enabled", NOON, 12)


@each_row(
    ("state", "fact"),
    [
        ("enabled", TriggerEnabled(*WHO, 1)),
        ("disabled", TriggerDisabled(*WHO)),
        ("disabled", SlotsSkipped(*WHO, 1, NOON, "missed")),
        ("removed", FireStarted(*WHO, FIRE, "r")),
        ("enabled", TriggerDeclared(*WHO, trigger())),
    ],
)
def test_what_cannot_happen_is_a_bug(state: Any, fact: TriggerFact) -> None:
    with pytest.raises(NoTransition):
        fold(trigger(state=state), fact)


def test_a_trigger_never_goes_back() -> None:
    record = trigger(events_seen=9)
    assert fold(record, EventsSeen(*WHO, 5)).events_seen == 9
    assert fold(record, EventsSeen(*WHO, 15)).events_seen == 15
    assert fold(record, SlotsSkipped(*WHO, 1, NOON - 5, "missed")).since == NOON
    again = TriggerRedeclared(*WHO, HOURLY, True, NOON - 5, 2)
    assert (fold(record, again).since, fold(record, again).events_seen) == (NOON, 9)


def test_a_record_survives_as_json() -> None:
    for spec in (HOURLY, WebhookTrigger(inputs={"a": "body.a"}), WorkflowTrigger("x")):
        record = trigger(spec, pending=(FIRE,))
        raw = msgspec.json.encode(record)
        assert msgspec.json.encode(msgspec.json.decode(raw, type=TriggerRecord)) == raw


# -- times ---------------------------------------------------------------------------------------


def test_a_time_is_taken_when_it_is_due_and_then_dealt_with() -> None:
    record = trigger()
    assert next_due(record) == NOON + HOUR
    assert due(record, NOON + HOUR - 1, is_active=False) == []
    facts = due(record, NOON + HOUR, is_active=False)
    assert slots(facts) == [("schedule", "13:00")]
    record = folded(record, facts)
    assert record.since == NOON + HOUR and record.number == 1
    assert due(record, NOON + HOUR, is_active=False) == []
    assert ready(record, is_active=True) == list(record.pending)


@each_row(
    ("policy", "most", "expected"),
    [
        ("none", 100, [("missed", "15:00")]),
        ("last", 100, [("missed", "14:00"), ("catch_up", "15:00")]),
        ("all", 2, [("missed", "13:00"), ("catch_up", "14:00"), ("catch_up", "15:00")]),
        ("all", 3, [("catch_up", "13:00"), ("catch_up", "14:00"), ("catch_up", "15:00")]),
        ("all", 9, [("catch_up", "13:00"), ("catch_up", "14:00"), ("catch_up", "15:00")]),
    ],
)
def test_late_times_go_by_the_catch_up_policy(
    policy: Any, most: int, expected: list[tuple[str, str]]
) -> None:
    record = trigger(cron(catch_up=policy, max_catch_up=most))
    at = NOON + 4 * HOUR  # 16:00 is on time
    assert slots(due(record, at, is_active=False)) == [*expected, ("schedule", "16:00")]


def test_a_short_stop_makes_no_time_late() -> None:
    record = trigger(cron(catch_up="none"))
    at = NOON + HOUR + LATE_MS
    assert slots(due(record, at - 1, is_active=False)) == [("schedule", "13:00")]
    assert slots(due(record, at, is_active=False)) == [("missed", "13:00")]


@each_row(
    ("policy", "is_active", "expected"),
    [
        ("allow", True, ["catch_up", "catch_up", "catch_up"]),
        ("skip", True, ["overlap", "overlap", "overlap"]),
        ("skip", False, ["catch_up", "overlap", "overlap"]),
        ("queue", True, ["catch_up", "overlap", "overlap"]),
        ("queue", False, ["catch_up", "catch_up", "overlap"]),
    ],
)
def test_times_that_overlap_go_by_their_policy(
    policy: Any, is_active: bool, expected: list[str]
) -> None:
    record = trigger(cron(overlap=policy, catch_up="all"))
    facts = due(record, NOON + 3 * HOUR + LATE_MS, is_active=is_active)
    assert [what for what, _ in slots(facts)] == expected


def test_what_is_queued_waits_for_the_run_before_it() -> None:
    record = trigger(cron(overlap="queue", catch_up="all"))
    record = folded(record, due(record, NOON + 3 * HOUR + LATE_MS, is_active=False))
    first, second = record.pending
    asked = take(record, "manual", "x", {}, at=NOON, by="ann")
    record = fold(record, asked)
    assert ready(record, is_active=True) == [asked.fire]
    assert ready(record, is_active=False) == [asked.fire, first]
    record = fold(record, FireStarted(*WHO, first, "run-1"))
    assert record.last_run_id == "run-1" and record.pending == (second, asked.fire)
    record = fold(record, FireStarted(*WHO, asked.fire, "run-2"))
    assert record.last_run_id == "run-1", "of the schedule"
    assert ready(record, is_active=False) == [second]


def test_jitter_is_the_same_for_the_same_time_and_spreads() -> None:
    delays = {jitter_ms("w", "n", NOON + n, 60) for n in range(100)}
    assert len(delays) > 90 and all(0 <= one < 60_000 for one in delays)
    assert jitter_ms("w", "n", NOON, 60) == jitter_ms("w", "n", NOON, 60)
    record = trigger(cron(jitter_seconds=600))
    looked = next_due(record)
    assert looked == NOON + HOUR + jitter_ms("w", "n", NOON + HOUR, 600)
    assert due(record, looked - 1, is_active=False) == []
    assert slots(due(record, looked, is_active=False)) == [("schedule", "13:00")]


def test_a_trigger_with_too_much_waiting_takes_no_time() -> None:
    many = tuple(msgspec.structs.replace(FIRE, number=n) for n in range(MAX_PENDING))
    assert due(trigger(pending=many), NOON + HOUR, is_active=False) == []


def test_only_a_schedule_has_times() -> None:
    record = trigger(WebhookTrigger())
    assert next_due(record) is None and due(record, NOON + HOUR, is_active=False) == []


def test_a_fire_that_waits_too_long_is_given_up() -> None:
    record = trigger(pending=(FIRE,))
    assert give_up(record, NOON + GIVE_UP_MS, errors.TRIGGER_LOST) == []
    [fact] = give_up(record, NOON + GIVE_UP_MS + 1, errors.TRIGGER_LOST)
    assert isinstance(fact, FireRefused) and fact.code == "E.TRIGGER.LOST"
    assert not fold(record, fact).pending


# -- inputs and keys -----------------------------------------------------------------------------


def test_inputs_are_the_values_and_what_the_paths_lead_to() -> None:
    event = {"body": {"a": {"b": [1, {"c": None}]}}, "headers": {"x-kind": "push"}}
    spec = WebhookTrigger(
        inputs={"c": "/body/a/b/1/c", "kind": "headers.x-kind", "none": "body.nothing"},
        values={"fixed": msgspec.Raw(b"[1]"), "kind": msgspec.Raw(b'"other"')},
    )
    assert msgspec.json.decode(inputs_of(spec, event)) == {"c": None, "kind": "push", "fixed": [1]}
    assert bytes(inputs_of(ManualTrigger(), event)) == b"{}"
    given = {"kind": msgspec.Raw(b"5")}
    fact = take(trigger(spec), "manual", "x", event, at=NOON, by="ann", given=given)
    assert msgspec.json.decode(fact.fire.inputs)["kind"] == 5
    scheduled = due(trigger(cron(inputs={"at": "scheduledAt"})), NOON + HOUR, is_active=False)
    assert isinstance(scheduled[0], FireTaken)
    assert bytes(scheduled[0].fire.inputs) == b'{"at":"2026-01-01T13:00:00.000Z"}'


def test_a_key_belongs_to_one_slot_of_one_trigger_and_is_none_of_a_request() -> None:
    slot = slot_of("schedule", NOON)
    assert slot == slot_of("catch_up", NOON), "whether it is late or not"
    keys = {
        key_of("w", "n", slot),
        key_of("w", "m", slot),
        key_of("v", "n", slot),
        key_of("w", "n", slot_of("manual", "1")),
        key_of("w", "n", slot_of("webhook", "1")),
    }
    assert len(keys) == 5 and all(" " in key for key in keys)
