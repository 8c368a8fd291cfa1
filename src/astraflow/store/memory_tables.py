"""The tables of the store in memory: dictionaries, keyed as the structs of the rows say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from astraflow.store.rows import (
    AuditRow,
    FactSegment,
    PlanRow,
    Row,
    TenantEvent,
    submissions_of,
)
from astraflow.store.tables import REMOVED, WRITTEN, keys_to_remove, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astraflow.store.rows import Changes

R = TypeVar("R", bound=Row)


class MemoryTables:
    """Rows by the keys that their structs name. Segments, events and audits are lists: they are only added."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Any, Any]] = {
            kind.table: {} for kind in Row.__subclasses__() if kind.primary_key
        }
        self.segments: dict[str, list[FactSegment]] = {}
        self.events: dict[str, list[TenantEvent]] = {}
        self.audits: list[tuple[int, AuditRow]] = []
        self.audit_number = 0

    def of(self, kind: type[R]) -> dict[Any, R]:
        return self._rows[kind.table]

    def matching(self, kind: type[R], wanted: Mapping[str, Any]) -> list[R]:
        """The rows with these values."""
        rows = self.of(kind)
        if kind.primary_key and wanted.keys() >= set(kind.primary_key):
            key = tuple(wanted[name] for name in kind.primary_key)
            row = rows.get(key if len(key) > 1 else key[0])
            found = [] if row is None else [row]
        else:
            found = list(rows.values())
        return [row for row in found if all(getattr(row, k) == v for k, v in wanted.items())]

    def put(self, row: Row) -> bool:
        """Write a row as its mode says; False if one with its key is there and stays."""
        if isinstance(row, FactSegment):
            self.segments.setdefault(row.run_id, []).append(row)
        elif isinstance(row, TenantEvent):
            self.events.setdefault(row.tenant, []).append(row)
        elif isinstance(row, AuditRow):
            self.audit_number += 1
            self.audits.append((self.audit_number, row))
        else:
            return self._put_by_key(row)
        return True

    def _put_by_key(self, row: Row) -> bool:
        table = table_of(type(row))
        assert table.key_of is not None
        key, rows = table.key_of(row), self._rows[table.name]
        stored = rows.get(key)
        if stored is not None and row.mode == "ignore":
            return False
        if stored is not None and row.mode == "change":
            row = msgspec.structs.replace(stored, **msgspec.structs.asdict(row))
        rows[key] = row
        return True

    def write(self, changes: Changes) -> None:
        for name, kind in REMOVED.items():
            for key in keys_to_remove(changes, name):
                self.of(kind).pop(key, None)
        for name in WRITTEN:
            for row in getattr(changes, name):
                self.put(row)
        for submission in submissions_of(changes.runs):
            self.put(submission)

    def remove(self, kind: type[R], is_over: Callable[[R], bool]) -> int:
        rows = self.of(kind)
        gone = [key for key, row in rows.items() if is_over(row)]
        for key in gone:
            del rows[key]
        return len(gone)

    def remove_events(self, tenant: str, last: int) -> int:
        """From the front of a stream, so that what is left has no gap (P17)."""
        events = self.events[tenant]
        self.events[tenant] = [event for event in events if event.number > last]
        return len(events) - len(self.events[tenant])

    def keep_audits(self, is_kept: Callable[[int, int], bool]) -> int:
        """Keep those of whose number and time this is true; how many went."""
        before = len(self.audits)
        self.audits = [(number, row) for number, row in self.audits if is_kept(number, row.at)]
        return before - len(self.audits)

    def run_bytes(self, run_id: str) -> int:
        return sum(len(segment.body) for segment in self.segments.get(run_id, ()))

    def held_bytes(self) -> int:
        plans = sum(len(plan.definition) + len(plan.plan) for plan in self.of(PlanRow).values())
        return plans + sum(map(self.run_bytes, self.segments))
