"""The history of a trigger: an entry for each fire and each skip, made from the facts."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from astraflow.core.triggers.fires import Fire, FireCause, slot_of
from astraflow.core.triggers.record import (
    FireRefused,
    FireStarted,
    FireTaken,
    SlotsSkipped,
    TriggerFact,
)

FireOutcome = Literal["pending", "started", "refused", "skipped"]


class FireEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of a slot. Times are wall-clock milliseconds."""

    number: int
    slot: str
    cause: FireCause
    scheduled_at: int
    at: int
    outcome: FireOutcome
    run_id: str | None = None
    code: str | None = None
    reason: str | None = None
    by: str = ""


def entry_of(fact: TriggerFact) -> FireEntry | None:
    """The entry that a fact writes; a later one about the same fire replaces it."""
    match fact:
        case FireTaken():
            return _entry(fact.fire, fact.at, "pending")
        case FireStarted():
            return _entry(fact.fire, fact.at, "started", run_id=fact.run_id)
        case FireRefused():
            return _entry(fact.fire, fact.at, "refused", code=fact.code, reason=fact.message)
        case SlotsSkipped():
            return FireEntry(
                number=fact.number,
                slot=slot_of("schedule", fact.scheduled_at),
                cause="schedule",
                scheduled_at=fact.scheduled_at,
                at=fact.at,
                outcome="skipped",
                reason=_why(fact),
            )
        case _:
            return None


def _entry(
    fire: Fire,
    at: int,
    outcome: FireOutcome,
    *,
    run_id: str | None = None,
    code: str | None = None,
    reason: str | None = None,
) -> FireEntry:
    return FireEntry(
        number=fire.number,
        slot=fire.slot,
        cause=fire.cause,
        scheduled_at=fire.scheduled_at,
        at=at,
        outcome=outcome,
        run_id=run_id,
        code=code,
        reason=reason,
        by=fire.by,
    )


def _why(fact: SlotsSkipped) -> str:
    match fact.reason:
        case "overlap":
            return "overlap: the run before it was active"
        case "missed":
            return "missed: this time, and those before it, passed while nothing could run"
        case other:
            assert_never(other)
