"""What is stored, as plain rows. Times are wall-clock milliseconds.

A run is the fold of its facts (`runs.facts`), and its facts are stored in *pages*: the facts of one transaction that
belong to one run, as JSON lines in one row. A page carries the numbers of its first and last event, so that a reader
that resumes finds its place by an index. The row of a run repeats what lists are asked for; it is written in the same
transaction as the facts that it repeats.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from astraflow.core.runs.facts import RunStatus

__all__ = [
    "ENDED_RESOURCES",
    "ENDED_ROLLOUTS",
    "ENDED_WISHES",
    "ActiveRow",
    "AffinityRow",
    "AuditRow",
    "Changes",
    "FactPage",
    "PackageRow",
    "PlanRow",
    "ResourceRow",
    "RolloutRow",
    "RunChange",
    "RunRow",
    "Submission",
    "TenantEvent",
    "WishRow",
    "WorkerRow",
    "WorkflowRow",
]

ENDED_RESOURCES = frozenset({"evicted", "released"})
ENDED_WISHES = frozenset({"installed", "failed", "removed"})
ENDED_ROLLOUTS = frozenset({"succeeded", "failed", "rolled_back"})
"""The states that retention may remove rows in; the queries of the databases repeat them."""


class RunRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A run as lists show it."""

    run_id: str
    tenant: str
    workflow_id: str
    workflow_version: int | None = None
    name: str = ""
    plan_id: str
    status: RunStatus = "queued"
    cancel_requested: bool = False
    created_at: int
    started_at: int | None = None
    finished_at: int | None = None
    error: bytes | None = None
    """A `runs.facts.Problem` as JSON."""
    idempotency_key: str | None = None
    fingerprint: str | None = None
    rerun_of: str | None = None


class RunChange(msgspec.Struct, frozen=True, gc=False):
    """What a transaction changes in the row of a run: the whole of its changing half."""

    run_id: str
    status: RunStatus
    cancel_requested: bool
    started_at: int | None
    finished_at: int | None
    error: bytes | None


class PlanRow(msgspec.Struct, frozen=True, gc=False):
    """What runs execute; equal ones are one row. `definition` is as it was submitted."""

    plan_id: str
    definition: bytes
    plan: bytes


class FactPage(msgspec.Struct, frozen=True, gc=False):
    """Facts of one run in one transaction: JSON lines, events `first` … `last`."""

    run_id: str
    first: int
    last: int
    body: bytes


class Submission(msgspec.Struct, frozen=True, gc=False):
    """Which run an idempotency key has made."""

    tenant: str
    key: str
    fingerprint: str | None
    run_id: str
    created_at: int


class WorkerRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A worker instance as it was last seen. `subject` is the credential its identity is bound to."""

    tenant: str
    worker_id: str
    subject: str
    name: str = ""
    incarnation: int = 0
    version: str = ""
    hostname: str = ""
    max_parallel: int = 0
    labels: bytes = b"{}"
    packages: bytes = b"[]"
    status: str = "offline"
    seen_at: int = 0
    drain: bytes | None = None
    """What an operator wishes of it (`engine.batch.DrainWish` as JSON), until it is taken back."""


class WorkflowRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A saved workflow. `version` grows by one at each save; a save names the one it was made from."""

    tenant: str
    workflow_id: str
    version: int
    name: str
    definition: bytes
    created_at: int
    updated_at: int
    updated_by: str = ""


class TenantEvent(msgspec.Struct, frozen=True, gc=False):
    """An event of a tenant's own stream: workers, packages, run statuses. Numbered from 1 without gaps."""

    tenant: str
    number: int
    at: int
    type: str
    body: bytes


class AuditRow(msgspec.Struct, frozen=True, gc=False):
    """Who did what, and what came of it (PROTOCOL §6)."""

    tenant: str
    at: int
    who: str
    action: str
    corr: str | None = None
    code: str | None = None
    detail: bytes = b"{}"


class PackageRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A published version of a package. Its archive is a blob named by its digest."""

    tenant: str
    name: str
    version: str
    sha256: str
    size_bytes: int
    manifest: bytes
    """As it stands in the archive."""
    manifest_sha256: str
    signature: bytes | None = None
    """The detached signature as JSON (`packages.signing.Signature`)."""
    signed_by: str = ""
    """The name of the trusted key that signed it; empty: none that is trusted here."""
    published_at: int
    published_by: str = ""
    yanked_at: int | None = None
    yanked_reason: str = ""


class ActiveRow(msgspec.Struct, frozen=True, gc=False):
    """The version of a package that nodes without one get, and the one before it, for a rollback."""

    tenant: str
    name: str
    version: str
    previous: str | None
    updated_at: int
    updated_by: str = ""


class RolloutRow(msgspec.Struct, frozen=True, gc=False):
    """A rollout of a version, as JSON (`scheduler.rollouts`). One that has ended is kept for its story."""

    tenant: str
    rollout_id: str
    name: str
    state: str
    body: bytes
    updated_at: int


class WishRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is wished of a worker about a version of a package, and how far it has come."""

    tenant: str
    worker_id: str
    name: str
    version: str
    wish: Literal["installed", "removed"]
    state: Literal["wanted", "downloading", "installing", "installed", "failed", "removed"]
    why: str = ""
    """Who wishes it: `command`, `demand`, or the id of a rollout."""
    tries: int = 0
    error: bytes | None = None
    """Of the last failure: `{code, message}` as JSON."""
    updated_at: int


class ResourceRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A resource that a worker holds, or the exported copy of one."""

    tenant: str
    worker_id: str
    resource_id: str
    type: str
    state: Literal["ready", "evicting", "evicted", "released"]
    scope: str = ""
    """The run or the session that it belongs to."""
    run_id: str | None = None
    node_id: str | None = None
    package: str = ""
    """`name version` of the package that holds it in memory; empty for a file."""
    size_bytes: int | None = None
    created_at: int
    expires_at: int | None = None
    is_artifact: bool = False
    """A result has listed it: it outlives its run."""
    metadata: bytes = b"{}"
    blob: str | None = None
    """Where the exported copy is, if there is one."""


class AffinityRow(msgspec.Struct, frozen=True, gc=False):
    """Which worker an affinity key belongs to."""

    tenant: str
    key: str
    worker_id: str
    acquired_at: int
    expires_at: int


class Changes:
    """One transaction's worth of rows. Filled by the scheduler, written by a store whole or not at all."""

    __slots__ = (
        "affinities",
        "affinities_gone",
        "audits",
        "events",
        "pages",
        "plans",
        "resources",
        "resources_gone",
        "run_changes",
        "runs",
        "wishes",
        "wishes_gone",
        "workers",
        "workers_gone",
    )

    def __init__(self) -> None:
        self.plans: list[PlanRow] = []
        self.runs: list[RunRow] = []
        self.run_changes: list[RunChange] = []
        self.pages: list[FactPage] = []
        self.workers: list[WorkerRow] = []
        """Put: a row with the same tenant and worker id is replaced. `workers_gone` as with resources."""
        self.workers_gone: list[tuple[str, str]] = []
        self.events: list[TenantEvent] = []
        self.audits: list[AuditRow] = []
        self.resources: list[ResourceRow] = []
        """Put, by tenant, worker and resource id. Their `…_gone` are keys of rows to remove; what is put stays."""
        self.resources_gone: list[tuple[str, str, str]] = []
        self.affinities: list[AffinityRow] = []
        self.affinities_gone: list[tuple[str, str]] = []
        self.wishes: list[WishRow] = []
        self.wishes_gone: list[tuple[str, str, str, str]] = []
