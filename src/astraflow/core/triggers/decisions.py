"""What becomes true of triggers: by a new version of a workflow, by a person, by an event, by the time.

Rule 1: a time is late when it is dealt with `LATE_MS` or more after it was due. What happens to late times is the
        catch-up policy: none is made up for, the last one, or all of them, but at most `maxCatchUp`.
Rule 2: the overlap policy counts the run of the schedule that is active and the fires that wait: with `skip` there is
        one of them at most, with `queue` two.
Rule 3: a fire that waits for longer than a key counts is given up: nobody knows any more whether it has a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from astraflow.core.errors import TRIGGER_LOOP, Code
from astraflow.core.timestamps import iso
from astraflow.core.triggers.fires import (
    SCHEDULED,
    Fire,
    FireCause,
    inputs_of,
    jitter_ms,
    slot_of,
)
from astraflow.core.triggers.loops import MAX_DEPTH
from astraflow.core.triggers.record import (
    FireRefused,
    FireTaken,
    SkipReason,
    SlotsSkipped,
    TriggerDeclared,
    TriggerFact,
    TriggerRecord,
    TriggerRedeclared,
    TriggerRemoved,
    fold,
)
from astraflow.core.workflow.definition import CronTrigger, TriggerSpec, WebhookTrigger
from astraflow.core.workflow.schedules import Schedule
from astraflow.core.workflow.trigger_rules import name_triggers

LATE_MS: Final = 60_000
"""A restart takes less: what was due meanwhile is on time."""
GIVE_UP_MS: Final = 23 * 3600 * 1000
"""An idempotency key counts for a day."""
MAX_PENDING: Final = 1_000
"""Fires of one trigger that wait. Beyond that a webhook is refused, and times wait."""
MAX_TAKEN: Final = 100
"""Times that are dealt with in one step."""
_ROOM: Final = {"skip": 1, "queue": 2}


def declare(
    known: Iterable[TriggerRecord],
    tenant: str,
    workflow_id: str,
    specs: list[TriggerSpec],
    *,
    at: int,
    events_seen: int,
    new_hook_id: Callable[[], str],
) -> list[TriggerFact]:
    """A workflow is saved with these triggers; `known` are those that it had."""
    before = {record.name: record for record in known}
    facts: list[TriggerFact] = []
    for name, spec in zip(name_triggers(specs), specs, strict=True):
        who = (tenant, at, workflow_id, name)
        record = before.pop(name, None)
        if record is not None and type(record.spec) is type(spec):
            if record.spec != spec:
                facts.append(_redeclare(record, spec, at, events_seen))
            continue
        if record is not None:
            facts.append(TriggerRemoved(*who))  # another thing of the same name
        made = TriggerRecord(
            tenant=tenant,
            workflow_id=workflow_id,
            name=name,
            spec=spec,
            state="disabled" if spec.disabled else "enabled",
            since=at,
            hook_id=new_hook_id() if isinstance(spec, WebhookTrigger) else "",
            events_seen=events_seen,
            created_at=at,
            updated_at=at,
        )
        facts.append(TriggerDeclared(*who, made))
    facts += [TriggerRemoved(tenant, at, workflow_id, name) for name in before]
    return facts


def _redeclare(
    record: TriggerRecord, spec: TriggerSpec, at: int, events_seen: int
) -> TriggerRedeclared:
    is_enabled = record.state == "enabled"
    if spec.disabled != record.spec.disabled:
        is_enabled = not spec.disabled
    # Times of another schedule, or from before it was enabled, do not count.
    is_same = is_enabled == (record.state == "enabled") and _times_of(spec) == _times_of(
        record.spec
    )
    return TriggerRedeclared(
        record.tenant,
        at,
        record.workflow_id,
        record.name,
        spec,
        is_enabled,
        record.since if is_same else at,
        record.events_seen if is_same else events_seen,
    )


def _times_of(spec: TriggerSpec) -> tuple[str, str] | None:
    return (spec.expression, spec.time_zone) if isinstance(spec, CronTrigger) else None


# -- fires ---------------------------------------------------------------------------------------


def take(
    record: TriggerRecord,
    cause: FireCause,
    what: str,
    event: Mapping[str, Any],
    *,
    at: int,
    by: str = "",
    given: Mapping[str, msgspec.Raw] | None = None,
    events_seen: int = 0,
    depth: int = 0,
) -> FireTaken:
    """An event, a request or a person wants a run. `given`: inputs that a person has named; `depth`: how many ends of
    runs led to this one."""
    inputs = inputs_of(record.spec, event)
    if given:
        named = msgspec.json.decode(inputs, type=dict[str, msgspec.Raw])
        inputs = msgspec.Raw(msgspec.json.encode({**named, **given}))
    fire = Fire(
        number=record.number + 1,
        slot=slot_of(cause, what),
        cause=cause,
        scheduled_at=at,
        taken_at=at,
        inputs=inputs,
        by=by,
        depth=depth,
    )
    return FireTaken(
        record.tenant, at, record.workflow_id, record.name, fire, record.since, events_seen
    )


def take_end(
    record: TriggerRecord,
    run_id: str,
    event: Mapping[str, Any],
    *,
    at: int,
    number: int,
    depth: int,
) -> list[TriggerFact]:
    """A run of another workflow has ended, at this event of its tenant. `depth`: that of the run."""
    taken = take(record, "workflow", run_id, event, at=at, events_seen=number, depth=depth + 1)
    if depth < MAX_DEPTH:
        return [taken]
    message = f"{depth} runs have started one another: the workflows start each other without end"
    refused = FireRefused(
        record.tenant,
        at,
        record.workflow_id,
        record.name,
        taken.fire,
        TRIGGER_LOOP.code,
        message,
    )
    return [taken, refused]


def next_due(record: TriggerRecord) -> int | None:
    """When the trigger is to be looked at next."""
    spec = record.spec
    if record.state != "enabled" or not isinstance(spec, CronTrigger):
        return None
    slot = Schedule(spec.expression, spec.time_zone).after(record.since)
    return None if slot is None else slot + _jitter(record, spec, slot)


def _jitter(record: TriggerRecord, spec: CronTrigger, slot: int) -> int:
    return jitter_ms(record.workflow_id, record.name, slot, spec.jitter_seconds)


def due(record: TriggerRecord, at: int, *, is_active: bool) -> list[TriggerFact]:
    """What the time makes of a trigger. `is_active`: the last run of its schedule is.

    At most `MAX_TAKEN` times are dealt with, beside those that are skipped: look again until there is nothing.
    """
    spec = record.spec
    if record.state != "enabled" or not isinstance(spec, CronTrigger):
        return []
    steps = _Steps(record, spec, at, is_active)
    schedule = Schedule(spec.expression, spec.time_zone)
    steps.catch_up(schedule)
    steps.go_on(schedule)
    return steps.facts


class _Steps:
    """The facts of one look at a schedule, each made after the one before."""

    def __init__(self, record: TriggerRecord, spec: CronTrigger, at: int, is_active: bool) -> None:
        self.facts: list[TriggerFact] = []
        self._record = record
        self._spec = spec
        self._at = at
        self._is_active = is_active

    def catch_up(self, schedule: Schedule) -> None:
        spec = self._spec
        bound = self._at - LATE_MS - int(spec.jitter_seconds * 1000)
        keep = {"none": 0, "last": 1, "all": spec.max_catch_up}[spec.catch_up]
        late = schedule.newest(self._record.since, bound, keep + 1)
        if len(late) > keep:
            self._skip(late[-keep - 1], "missed")
        for slot in late[len(late) - min(keep, len(late)) :]:
            self._take(slot, "catch_up")

    def go_on(self, schedule: Schedule) -> None:
        for slot in schedule.upcoming(self._record.since, MAX_TAKEN):
            is_full = len(self._record.pending) >= MAX_PENDING
            if is_full or slot + _jitter(self._record, self._spec, slot) > self._at:
                return
            self._take(slot, "schedule")

    def _take(self, slot: int, cause: FireCause) -> None:
        record = self._record
        waiting = sum(fire.cause in SCHEDULED for fire in record.pending)
        overlap = self._spec.overlap
        if overlap != "allow" and self._is_active + waiting >= _ROOM[overlap]:
            self._skip(slot, "overlap")
            return
        event = {"scheduledAt": iso(slot), "trigger": record.name}
        fire = Fire(
            number=record.number + 1,
            slot=slot_of(cause, slot),
            cause=cause,
            scheduled_at=slot,
            taken_at=self._at,
            inputs=inputs_of(self._spec, event),
        )
        self._add(FireTaken(*self._who, fire, slot, record.events_seen))

    def _skip(self, slot: int, reason: SkipReason) -> None:
        self._add(SlotsSkipped(*self._who, self._record.number + 1, slot, reason))

    @property
    def _who(self) -> tuple[str, int, str, str]:
        return self._record.tenant, self._at, self._record.workflow_id, self._record.name

    def _add(self, fact: TriggerFact) -> None:
        self.facts.append(fact)
        self._record = fold(self._record, fact)


def ready(record: TriggerRecord, *, is_active: bool) -> list[Fire]:
    """The fires whose runs may be started now. What the schedule has queued waits for the run before it."""
    spec = record.spec
    if not isinstance(spec, CronTrigger) or spec.overlap == "allow":
        return list(record.pending)
    scheduled = [fire for fire in record.pending if fire.cause in SCHEDULED]
    asked = [fire for fire in record.pending if fire.cause not in SCHEDULED]
    return asked if is_active else [*asked, *scheduled[:1]]


def give_up(record: TriggerRecord, at: int, code: Code) -> list[TriggerFact]:
    """The fires that have waited for too long."""
    message = f"it waited for longer than {GIVE_UP_MS // 3_600_000} hours"
    return [
        FireRefused(record.tenant, at, record.workflow_id, record.name, fire, code.code, message)
        for fire in record.pending
        if at - fire.taken_at > GIVE_UP_MS
    ]
