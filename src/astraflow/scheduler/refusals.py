"""Refusals in the audit: the first ones of a minute in full, the rest as a count.

Anybody who can reach the port can be refused, as often as they like, under any tenant that they make up. What that
costs is bounded: so many rows a minute, and so many kinds that are counted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.store.rows import AuditRow

WINDOW_MS: Final = 60_000
IN_FULL: Final = 10
"""Of one kind in one window: tenant, action and code."""
MAX_KINDS: Final = 200
"""Beyond so many kinds in one window, the others are counted together, under no tenant."""

_Kind = tuple[str, str, str | None]


class Refusals:
    """Decides which refusals get a row."""

    def __init__(self) -> None:
        self._since = 0
        self._seen: dict[_Kind, int] = {}

    def take(self, row: AuditRow) -> list[AuditRow]:
        """The rows to write for this refusal, those of the window before among them."""
        due = self._close(row.at)
        kind: _Kind = (row.tenant, row.action, row.code)
        if kind not in self._seen and len(self._seen) >= MAX_KINDS:
            kind = ("", row.action, row.code)
        seen = self._seen.get(kind, 0) + 1
        self._seen[kind] = seen
        if seen <= IN_FULL and kind[0] == row.tenant:
            due.append(row)
        return due

    def _close(self, at: int) -> list[AuditRow]:
        """What was only counted, when the window is over. The wall clock may step either way."""
        if abs(at - self._since) < WINDOW_MS:
            return []
        seen, self._seen = self._seen, {}
        since, self._since = self._since, at
        rows = []
        for (tenant, action, code), count in seen.items():
            more = count - IN_FULL if tenant else count
            if more > 0:
                detail = msgspec.json.encode({"count": more, "since": since})
                rows.append(AuditRow(tenant, at, "", f"{action}.repeated", None, code, detail))
        return rows
