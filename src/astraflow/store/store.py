"""The store protocol: what survives every crash, behind one interface with three implementations.

Rule 1: one writer. Every write carries the epoch of the claim it is made under; a lower epoch cannot write (R11).
Rule 2: `commit` returns when the rows are durable: flushed, not only written (P1). It is whole or it is not at all.
Rule 3: commits are numbered by the writer, 1, 2, … within an epoch. The number is stored in the same transaction,
        so that a commit whose outcome is unknown is resolved by reading it back, never by guessing (R16).
Rule 4: reads never wait for a write, and see only what is committed.
Rule 5: text with U+0000, lone surrogates and integers beyond 64 bits are refused the same way everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from astraflow.core.contract.words import RunStatus
from astraflow.store.rows import (
    ActiveRow,
    AffinityRow,
    AuditRow,
    Changes,
    FactSegment,
    InstallIntentRow,
    PackageRow,
    PlanRow,
    ResourceRow,
    RolloutRow,
    RunRow,
    SubmissionRow,
    TenantEvent,
    WorkerRow,
    WorkflowRow,
)

if TYPE_CHECKING:
    from collections.abc import Collection


class Claim(msgspec.Struct, frozen=True):
    """The right to write a shard, until a higher epoch is claimed. `ttl_s` None: held by a lock of the system."""

    owner: str
    epoch: int
    ttl_s: float | None
    shard: int = 0
    """A store has one shard today; every statement of a claim names it."""


class Retention(msgspec.Struct, frozen=True):
    """How long finished runs and what belongs to them are kept. None: for ever."""

    finished_runs_s: float | None = 30 * 24 * 3600.0
    finished_runs: int | None = 100_000
    """At most so many finished runs; the oldest go first."""
    max_bytes: int | None = 10 * 1024**3
    """At most so many bytes in all; the oldest finished runs go first."""
    tenant_events_s: float | None = 7 * 24 * 3600.0
    tenant_events: int | None = 1_000_000
    """At most so many, of all tenants together; those of the longest streams go first."""
    audit_s: float | None = 365 * 24 * 3600.0
    audits: int | None = 1_000_000
    workers_s: float | None = 30 * 24 * 3600.0
    """Since a worker was last there."""
    workflow_versions: int | None = 100
    """At most so many of each saved workflow; the oldest go when another is saved."""


class Swept(msgspec.Struct, frozen=True):
    """What one sweep removed. `more`: there is more to remove, sweep again."""

    runs: int = 0
    events: int = 0
    audits: int = 0
    more: bool = False


class Usage(msgspec.Struct, frozen=True):
    """What the store holds."""

    bytes: int
    runs: int
    active_runs: int
    schema_version: int


class Store(Protocol):
    """Use from one asyncio loop. `open` first, `close` last."""

    async def open(self) -> None:
        """Connect, and migrate the schema forward behind a lock.

        Raises:
            StoreError: not a store of ours, a newer schema, locked by another scheduler, unreachable.
        """

    async def close(self) -> None: ...

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        """Take the right to write with a new, higher epoch; None while another's claim is good."""

    async def owner(self) -> str:
        """Who claimed last; empty if nobody has."""

    async def renew(self, claim: Claim) -> bool:
        """Prolong the claim; False if a higher epoch has been claimed."""

    async def release(self, claim: Claim) -> None:
        """Give the claim up, so that another may have it at once."""

    # -- writing ----------------------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        """Write one transaction. Its number must be above that of every commit under this claim.

        Raises:
            StoreError: nothing was written. Its code says why: fenced, full, unavailable, or refused for its content.
                When it is broken or damaged, stop: the next start reads back what the disk has.
            OutcomeUnknown: nobody knows; ask `is_committed` when the store answers again.
        """

    async def is_committed(self, claim: Claim, number: int) -> bool:
        """Whether the commit with this number, the last one tried, was written under this claim (R16).

        An answer is final: what was still under way when it was asked can no longer be written.

        Raises:
            StoreError: a higher epoch has been claimed, or the store does not answer.
        """

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        """Save version `row.version`: 1 creates, n + 1 follows the stored version n. Of the versions that are stored
        then, the newest `keep` stay.

        Raises:
            Conflict: the stored version is not the one before it.
        """

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool: ...

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        """Add a version of a package; False if this very archive is stored already.

        Raises:
            Conflict: the version is stored with another digest.
        """

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        """Mark the version as yanked, or as not with `at` None; False if there is no such version."""

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        """Keep something that is true of all schedulers of this store."""

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        """Remove a bounded piece of what is past its retention. Active runs are never touched."""

    # -- reading ----------------------------------------------------------------------------

    async def find_site(self, name: str) -> str | None: ...

    async def active_runs(self) -> list[RunRow]: ...

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None: ...

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        """Newest first, by (created_at, run_id); `before` is the last one of the page before."""

    async def find_plan(self, plan_id: str) -> PlanRow | None: ...

    async def read_segments(
        self, run_id: str, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactSegment]:
        """Segments whose last event is beyond `after`, in order, at least one if there is any.

        Read on from the last one until none comes.
        """

    async def submissions(self, since_ms: int) -> list[SubmissionRow]:
        """Idempotency keys used since then, oldest first, by (created_at, tenant, key).

        A key is kept for a day even if its run has been removed before.
        """

    async def find_submission(self, tenant: str, key: str) -> SubmissionRow | None:
        """The last use of an idempotency key, for as long as it is kept."""

    async def workers(self) -> list[WorkerRow]: ...

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        """The newest version, or the one named."""

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        """The newest version of each, last updated first, by (updated_at, workflow_id)."""

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        """By (tenant, name, version as text)."""

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None: ...

    async def active_versions(self) -> list[ActiveRow]: ...

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        """Last updated last."""

    async def intents(self) -> list[InstallIntentRow]: ...

    async def resources(
        self,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        """Newest first, by (created_at, worker_id, resource_id); `before` is the last one of the page before.

        Without a tenant: those of all, tenant by tenant; then nothing but a limit may be asked for.
        """

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        """The resource on this worker, or on every worker that has one of this id."""

    async def blobs_of_resources(self) -> set[str]:
        """Every copy that a stored resource has."""

    async def affinities(self) -> list[AffinityRow]: ...

    async def event_heads(self) -> dict[str, int]:
        """The number of the last event of each tenant's stream."""

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]: ...

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        """Newest first, each with its number; `before` is the last number of the page before."""

    async def usage(self) -> Usage: ...
