"""Refusals that come by the thousand cost a bounded number of rows, and their number is told."""

from __future__ import annotations

import json

import msgspec

from astraflow.core.engine.batch import Batch, FleetChange
from astraflow.core.fleet.facts import Audited
from astraflow.scheduler.refusals import IN_FULL, MAX_KINDS, WINDOW_MS
from astraflow.scheduler.row_writer import RowWriter
from astraflow.store.rows import AuditRow

AT = 1_760_000_000_000
DENIED = "E.AUTH.INVALID_TOKEN"


def login(tenant: str = "default", code: str | None = DENIED) -> Audited:
    return Audited(tenant, 0, "w", "login", "f", code, "w")


def audits(writer: RowWriter, at: int, *facts: Audited) -> list[AuditRow]:
    batch = Batch()
    batch.fleet.extend(FleetChange(msgspec.structs.replace(fact, at=at)) for fact in facts)
    return writer.changes_of(batch).audits


def test_twelve_thousand_failed_logins_are_a_handful_of_rows_and_a_count() -> None:
    writer = RowWriter([], [], {})
    rows = [row for number in range(12_000) for row in audits(writer, AT + number, login())]
    assert [row.action for row in rows] == ["login"] * IN_FULL
    later = audits(writer, AT + WINDOW_MS, login())
    assert [(row.tenant, row.action, row.code) for row in later] == [
        ("default", "login.repeated", DENIED),
        ("default", "login", DENIED),
    ]
    assert json.loads(later[0].detail) == {"count": 12_000 - IN_FULL, "since": AT}


def test_what_succeeds_is_never_left_out() -> None:
    writer = RowWriter([], [], {})
    rows = audits(writer, AT, *(login(code=None) for _ in range(100)))
    assert len(rows) == 100


def test_made_up_tenants_are_bounded_too() -> None:
    writer = RowWriter([], [], {})
    made_up = [login(f"tenant-{number}") for number in range(10_000)]
    rows = audits(writer, AT, *made_up)
    assert len(rows) == MAX_KINDS
    assert len(writer._refusals._seen) == MAX_KINDS + 1
    later = audits(writer, AT + WINDOW_MS, login())
    assert [(row.tenant, row.action) for row in later] == [
        ("", "login.repeated"),
        ("default", "login"),
    ]
    assert json.loads(later[0].detail)["count"] == 10_000 - MAX_KINDS


def test_a_clock_that_steps_back_ends_the_window() -> None:
    writer = RowWriter([], [], {})
    audits(writer, AT, *(login() for _ in range(IN_FULL + 1)))
    before = audits(writer, AT - 10 * WINDOW_MS, login())
    assert [row.action for row in before] == ["login.repeated", "login"]
