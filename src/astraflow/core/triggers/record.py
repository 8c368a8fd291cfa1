"""The record of a trigger, what can become true of it, and what that does.

Rule 1: `since` only grows. Times up to it are dealt with: each was taken, or skipped, and none comes again.
Rule 2: a fire that was taken is in `pending` until its run is started or refused. Both is kept in one transaction: that
        the time is dealt with, and that the run is owed.
Rule 3: a trigger that a new version of its workflow has keeps its history, its address and its state.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows
from astraflow.core.triggers.fires import SCHEDULED, Fire
from astraflow.core.workflow.definition import TriggerSpec

TriggerState = Literal["enabled", "disabled", "removed"]
SkipReason = Literal["overlap", "missed"]
TriggerKey = tuple[str, str, str]


class TriggerRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A trigger of a saved workflow. Times are wall-clock milliseconds."""

    tenant: str
    workflow_id: str
    name: str
    """Its id in the definition, or the one made from its type and place."""
    spec: TriggerSpec
    state: TriggerState = "enabled"
    since: int
    hook_id: str = ""
    """What the address of a webhook ends with."""
    events_seen: int = 0
    """The last event of the tenant that was looked at, for a trigger on another workflow."""
    number: int = 0
    """Of the newest entry of its history."""
    pending: tuple[Fire, ...] = ()
    last_run_id: str | None = None
    """Of the newest run that the schedule started."""
    created_at: int
    updated_at: int

    @property
    def key(self) -> TriggerKey:
        return self.tenant, self.workflow_id, self.name


# -- facts ---------------------------------------------------------------------------------------


class TriggerFact(FleetFact, frozen=True):
    """The base of all facts about one trigger."""

    workflow_id: str
    name: str

    @property
    def key(self) -> TriggerKey:
        return self.tenant, self.workflow_id, self.name


class TriggerDeclared(TriggerFact, frozen=True):
    """A version of a workflow has a trigger that there was not."""

    record: TriggerRecord


class TriggerRedeclared(TriggerFact, frozen=True):
    """A new version of the workflow has the trigger, too. `since`: where its schedule goes on."""

    spec: TriggerSpec
    is_enabled: bool
    since: int
    events_seen: int


class TriggerEnabled(TriggerFact, frozen=True):
    """Somebody has enabled it. What happened before does not count."""

    events_seen: int


class TriggerDisabled(TriggerFact, frozen=True):
    """Somebody has disabled it. What was taken is still started."""


class TriggerRemoved(TriggerFact, frozen=True):
    """The workflow has it no more, or is gone."""


class FireTaken(TriggerFact, frozen=True):
    """A run is owed for a slot. `since` and `events_seen`: how far the trigger has come with it."""

    fire: Fire
    since: int
    events_seen: int


class SlotsSkipped(TriggerFact, frozen=True):
    """No run is started for the times up to this one, beyond those that were dealt with."""

    number: int
    scheduled_at: int
    reason: SkipReason


class EventsSeen(TriggerFact, frozen=True):
    """None of the events up to this one was for the trigger."""

    events_seen: int


class FireStarted(TriggerFact, frozen=True):
    """The run of a slot exists."""

    fire: Fire
    run_id: str


class FireRefused(TriggerFact, frozen=True):
    """The run of a slot cannot be started, and will not be."""

    fire: Fire
    code: str
    message: str


# -- transitions -----------------------------------------------------------------------------------


def _declared(_: TriggerRecord | None, fact: TriggerDeclared) -> TriggerRecord:
    return fact.record


def _redeclared(record: TriggerRecord, fact: TriggerRedeclared) -> TriggerRecord:
    return msgspec.structs.replace(
        record,
        spec=fact.spec,
        state="enabled" if fact.is_enabled else "disabled",
        since=max(record.since, fact.since),
        events_seen=max(record.events_seen, fact.events_seen),
        updated_at=fact.at,
    )


def _enabled(record: TriggerRecord, fact: TriggerEnabled) -> TriggerRecord:
    return msgspec.structs.replace(
        record,
        state="enabled",
        since=max(record.since, fact.at),
        events_seen=max(record.events_seen, fact.events_seen),
        updated_at=fact.at,
    )


def _disabled(record: TriggerRecord, fact: TriggerDisabled) -> TriggerRecord:
    return msgspec.structs.replace(record, state="disabled", updated_at=fact.at)


def _removed(record: TriggerRecord, fact: TriggerRemoved) -> TriggerRecord:
    return msgspec.structs.replace(record, state="removed", pending=(), updated_at=fact.at)


def _taken(record: TriggerRecord, fact: FireTaken) -> TriggerRecord:
    return msgspec.structs.replace(
        record,
        since=max(record.since, fact.since),
        events_seen=max(record.events_seen, fact.events_seen),
        number=fact.fire.number,
        pending=(*record.pending, fact.fire),
    )


def _skipped(record: TriggerRecord, fact: SlotsSkipped) -> TriggerRecord:
    since = max(record.since, fact.scheduled_at)
    return msgspec.structs.replace(record, since=since, number=fact.number)


def _seen(record: TriggerRecord, fact: EventsSeen) -> TriggerRecord:
    return msgspec.structs.replace(record, events_seen=max(record.events_seen, fact.events_seen))


def _started(record: TriggerRecord, fact: FireStarted) -> TriggerRecord:
    is_scheduled = fact.fire.cause in SCHEDULED
    last = fact.run_id if is_scheduled else record.last_run_id
    return msgspec.structs.replace(record, pending=_without(record, fact.fire), last_run_id=last)


def _refused(record: TriggerRecord, fact: FireRefused) -> TriggerRecord:
    return msgspec.structs.replace(record, pending=_without(record, fact.fire))


def _without(record: TriggerRecord, fire: Fire) -> tuple[Fire, ...]:
    return tuple(one for one in record.pending if one.number != fire.number)


_KNOWN: Final = ("enabled", "disabled")

TRANSITIONS: Final[Table] = {
    **rows((ABSENT,), TriggerDeclared, _declared, "enabled", "disabled"),
    **rows(_KNOWN, TriggerRedeclared, _redeclared, "enabled", "disabled"),
    **rows(("disabled",), TriggerEnabled, _enabled, "enabled"),
    **rows(("enabled",), TriggerDisabled, _disabled, "disabled"),
    **rows(_KNOWN, TriggerRemoved, _removed, "removed"),
    **rows(_KNOWN, FireTaken, _taken),
    **rows(("enabled",), SlotsSkipped, _skipped),
    **rows(_KNOWN, EventsSeen, _seen),
    **rows(_KNOWN, FireStarted, _started),
    **rows(_KNOWN, FireRefused, _refused),
}


def fold(record: TriggerRecord | None, fact: TriggerFact) -> TriggerRecord:
    """The trigger after a fact. Raises: NoTransition."""
    state = ABSENT if record is None else record.state
    move = find_move(TRANSITIONS, state, fact)
    after: TriggerRecord = move.apply(record, fact)
    assert after.state in move.to
    return after
