"""Tenants: who shares this installation, how much each may use, and who is suspended.

Rule 1: a tenant that nobody has configured has the defaults: weight 1, and no quota of its own.
Rule 2: a suspended tenant gets nothing new: no run is accepted, no task is placed. What it has stays, and goes on
        when it is resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows

RELIEVED_BY_PCT: Final = 5.0
"""How far below the mark of its tenant a worker must come before it gets work again."""


class TenantPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tenant may use. None: there is no limit for it alone."""

    weight: float = 1.0
    max_runs: int | None = None
    """Active runs."""
    max_tasks: int | None = None
    """Tasks of active runs, whether they wait or run."""
    max_workers: int | None = None
    """Workers with a session."""
    max_disk_bytes: int | None = None
    """Files that its workers keep as resources."""
    max_memory_bytes: int | None = None
    """Objects that its workers keep in memory as resources."""
    requests_per_second: float | None = None
    drain_mem_pct: float | None = None
    """PROTOCOL §7, auto-drain: "per-tenant overrides"."""
    drain_disk_pct: float | None = None


class TenantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant as it is stored."""

    tenant: str
    is_suspended: bool = False
    policy: TenantPolicy = TenantPolicy()
    created_at: int
    created_by: str = ""
    updated_at: int


# -- facts ---------------------------------------------------------------------------------------


class TenantFact(FleetFact, frozen=True):
    """The base of all facts about one tenant."""


class TenantConfigured(TenantFact, frozen=True):
    """A tenant is there, and may use this much."""

    policy: TenantPolicy
    by: str = ""


class TenantSuspended(TenantFact, frozen=True):
    """Nothing new for the tenant."""


class TenantResumed(TenantFact, frozen=True):
    """The tenant goes on."""


def _configured(before: TenantRecord | None, fact: TenantConfigured) -> TenantRecord:
    if before is not None:
        return msgspec.structs.replace(before, policy=fact.policy, updated_at=fact.at)
    return TenantRecord(
        tenant=fact.tenant,
        policy=fact.policy,
        created_at=fact.at,
        created_by=fact.by,
        updated_at=fact.at,
    )


def _suspended(before: TenantRecord, fact: TenantSuspended) -> TenantRecord:
    return msgspec.structs.replace(before, is_suspended=True, updated_at=fact.at)


def _resumed(before: TenantRecord, fact: TenantResumed) -> TenantRecord:
    return msgspec.structs.replace(before, is_suspended=False, updated_at=fact.at)


TRANSITIONS: Final[Table] = {
    **rows((ABSENT,), TenantConfigured, _configured, "active"),
    **rows(("active", "suspended"), TenantConfigured, _configured),
    **rows(("active", "suspended"), TenantSuspended, _suspended, "suspended"),
    **rows(("active", "suspended"), TenantResumed, _resumed, "active"),
}

_DEFAULT: Final = TenantPolicy()


class TenantTable:
    """The tenants that somebody has configured."""

    def __init__(self) -> None:
        self._records: dict[str, TenantRecord] = {}
        self._suspended: set[str] = set()

    def __iter__(self) -> Iterator[TenantRecord]:
        return iter(self._records.values())

    def find(self, tenant: str) -> TenantRecord | None:
        return self._records.get(tenant)

    def policy(self, tenant: str) -> TenantPolicy:
        record = self._records.get(tenant)
        return _DEFAULT if record is None else record.policy

    def is_suspended(self, tenant: str) -> bool:
        return tenant in self._suspended

    def apply(self, fact: TenantFact) -> TenantRecord:
        """Fold a fact; returns the record after it."""
        before = self._records.get(fact.tenant)
        state = ABSENT if before is None else "suspended" if before.is_suspended else "active"
        after: TenantRecord = find_move(TRANSITIONS, state, fact).apply(before, fact)
        self.put(after)
        return after

    def put(self, record: TenantRecord) -> None:
        self._records[record.tenant] = record
        if record.is_suspended:
            self._suspended.add(record.tenant)
        else:
            self._suspended.discard(record.tenant)
