"""The stored rows. A struct names its table, its key and its columns; nothing else repeats them.

A field is a column of the same name (`tables` makes the statements from it). Times are wall-clock milliseconds.

A run is the fold of its facts (`runs.facts`), and its facts are stored in *segments*: the facts of one transaction that
belong to one run, as JSON lines in one row. A segment carries the numbers of its first and last event, so that a reader
that resumes finds its place by an index. The row of a run repeats what lists are asked for; it is written in the same
transaction as the facts that it repeats.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from astraflow.core.contract.words import RunStatus
from astraflow.core.ids import RunId

ACTIVE_RUNS = frozenset({"queued", "running"})
"""What a run has not ended in. The queries name this set and those below: `{ENDED_ROLLOUTS}`."""
ENDED_RESOURCES = frozenset({"evicted", "released"})
ENDED_INTENTS = frozenset({"installed", "failed", "removed"})
ENDED_ROLLOUTS = frozenset({"succeeded", "failed", "rolled_back"})
"""The states that retention may remove rows in."""

WriteMode = Literal["insert", "ignore", "replace", "change"]
"""What a write does with a row whose key is stored: refuse, leave it, replace it. `change` updates the stored row."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """A row of `table`. Its fields are the columns."""

    table: ClassVar[str] = ""
    primary_key: ClassVar[tuple[str, ...]] = ()
    mode: ClassVar[WriteMode] = "insert"


class RunRow(Row, frozen=True, gc=False, kw_only=True):
    """A run as lists show it."""

    table = "runs"
    primary_key = ("run_id",)

    run_id: RunId
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
    submitted_by: str = ""
    trigger_name: str = ""
    """The trigger that submitted it; empty: none did."""
    lane: int = 0
    """The lane of its tenant that it is decided in, for as long as it is active."""
    attempt_floor: int = 0  # its attempts are numbered above this: what a restore has set (ADR 38)


class RunChange(Row, frozen=True, gc=False):
    """What a transaction changes in the row of a run: the whole of its changing half."""

    table = "runs"
    primary_key = ("run_id",)
    mode = "change"

    run_id: RunId
    status: RunStatus
    cancel_requested: bool
    started_at: int | None
    finished_at: int | None
    error: bytes | None


class PlanRow(Row, frozen=True, gc=False):
    """What runs execute; equal ones are one row. `definition` is as it was submitted."""

    table = "plans"
    primary_key = ("plan_id",)
    mode = "ignore"

    plan_id: str
    definition: bytes
    plan: bytes


class FactSegment(Row, frozen=True, gc=False):
    """Facts of one run in one transaction: JSON lines, events `first` … `last`."""

    table = "fact_segments"
    primary_key = ("run_id", "last")

    run_id: RunId
    first: int
    last: int
    body: bytes


class SubmissionRow(Row, frozen=True, gc=False):
    """Which run an idempotency key has made."""

    table = "submissions"
    primary_key = ("tenant", "key")
    mode = "replace"

    tenant: str
    key: str
    fingerprint: str | None
    run_id: RunId
    created_at: int
    lane: int = 0


class WorkerRow(Row, frozen=True, gc=False, kw_only=True):
    """A worker as a lane last saw it; `tenant` is the lane's name. `subject`: whose credential its identity needs."""

    table = "workers"
    primary_key = ("tenant", "worker_id")
    mode = "replace"

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
    """The drain that an operator ordered (`engine.batch.DrainWish` as JSON), until the order is withdrawn."""


class PoolRow(Row, frozen=True, gc=False):
    """An HTTP worker pool, as JSON (`core.fleet.pools.PoolRecord`)."""

    table = "pools"
    primary_key = ("tenant", "name")
    mode = "replace"

    tenant: str
    name: str
    body: bytes
    updated_at: int


class WorkflowRow(Row, frozen=True, gc=False, kw_only=True):
    """A saved workflow. `version` grows by one at each save; a save names the one it was made from."""

    table = "workflow_versions"
    primary_key = ("tenant", "workflow_id", "version")

    tenant: str
    workflow_id: str
    version: int
    name: str
    definition: bytes
    created_at: int
    updated_at: int
    updated_by: str = ""
    note: str = ""


class VersionRow(Row, frozen=True, gc=False):
    """A version of a saved workflow as its history shows it: without the definition, which may be large."""

    table = "workflow_versions"
    primary_key = ("tenant", "workflow_id", "version")

    tenant: str
    workflow_id: str
    version: int
    name: str
    updated_at: int
    updated_by: str
    note: str


class DraftRow(Row, frozen=True, gc=False, kw_only=True):
    """What is being worked on. `revision` grows by one at each save; `base_version` is the version it was made from."""

    table = "workflow_drafts"
    primary_key = ("tenant", "workflow_id")
    mode = "replace"

    tenant: str
    workflow_id: str
    revision: int
    base_version: int
    name: str
    definition: bytes
    updated_at: int
    updated_by: str = ""


class PinnedResultRow(Row, frozen=True, gc=False, kw_only=True):
    """A result, as JSON, that stands in for that of a node in runs that ask for it. `from_run`: where it is from."""

    table = "pinned_results"
    primary_key = ("tenant", "workflow_id", "node_id")
    mode = "replace"

    tenant: str
    workflow_id: str
    node_id: str
    result: bytes
    updated_at: int
    from_run: str | None = None
    updated_by: str = ""


class TriggerRow(Row, frozen=True, gc=False):
    """A trigger of a saved workflow, as JSON (`core.triggers.record.TriggerRecord`)."""

    table = "triggers"
    primary_key = ("tenant", "workflow_id", "name")
    mode = "replace"

    tenant: str
    workflow_id: str
    name: str
    body: bytes
    updated_at: int


class TriggerFireRow(Row, frozen=True, gc=False):
    """An entry of the history of a trigger, as JSON (`core.triggers.history.FireEntry`)."""

    table = "trigger_fires"
    primary_key = ("tenant", "workflow_id", "name", "number")
    mode = "replace"

    tenant: str
    workflow_id: str
    name: str
    number: int
    slot: str
    outcome: Literal["pending", "started", "refused", "skipped"]
    body: bytes
    at: int


class TenantEvent(Row, frozen=True, gc=False):
    """An event of the stream of a lane: workers, run statuses. From 1 without gaps. `tenant` is the lane's name."""

    table = "tenant_events"
    primary_key = ("tenant", "number")

    tenant: str
    number: int
    at: int
    type: str
    body: bytes


class AuditRow(Row, frozen=True, gc=False):
    """Who did what, and what came of it (PROTOCOL §6): a link of its tenant's chain (`core.security.audit_chain`)."""

    table = "audits"

    tenant: str
    at: int
    who: str
    action: str
    corr: str | None = None
    code: str | None = None
    detail: bytes = b"{}"
    worker: str = ""
    chain_number: int | None = None
    """From 1 without gaps in its tenant; None: it is older than the chain. So are the two hashes."""
    previous: bytes | None = None
    hash: bytes | None = None


class AuditHeadRow(Row, frozen=True, gc=False):
    """Where the audit chain of a tenant ends. What retention has removed is noted beside it, by retention alone."""

    table = "audit_heads"
    primary_key = ("tenant",)
    mode = "replace"

    tenant: str
    number: int
    hash: bytes


class SentAuditRow(Row, frozen=True, gc=False):
    """What an admin of the site did in another shard, until the owner of the site's shard has it in its chain."""

    table = "sent_audits"
    primary_key = ("sent_id",)
    mode = "ignore"

    sent_id: str
    tenant: str
    at: int
    who: str
    action: str
    corr: str | None = None
    code: str | None = None
    subject: str = ""


class PackageRow(Row, frozen=True, gc=False, kw_only=True):
    """A published version of a package. Its archive is a blob named by its digest."""

    table = "packages"
    primary_key = ("tenant", "name", "version")
    mode = "ignore"

    tenant: str
    name: str
    version: str
    sha256: str
    size_bytes: int
    manifest: bytes
    """As it stands in the archive."""
    manifest_sha256: str
    signature: bytes | None = None
    """The detached signature as JSON (`packages.signing.PackageSignature`)."""
    signed_by: str = ""
    """The name of the trusted key that signed it; empty: none that is trusted here."""
    published_at: int
    published_by: str = ""
    yanked_at: int | None = None
    yanked_reason: str = ""


class ActiveRow(Row, frozen=True, gc=False):
    """The version of a package that nodes without one get, and the one before it, for a rollback."""

    table = "active_versions"
    primary_key = ("tenant", "name")
    mode = "replace"

    tenant: str
    name: str
    version: str
    previous: str | None
    updated_at: int
    updated_by: str = ""


class RolloutRow(Row, frozen=True, gc=False):
    """A rollout of a version, as JSON (`scheduler.rollouts`). One that has ended is kept for its history."""

    table = "rollouts"
    primary_key = ("tenant", "rollout_id")
    mode = "replace"

    tenant: str
    rollout_id: str
    name: str
    state: str
    body: bytes
    updated_at: int


class InstallIntentRow(Row, frozen=True, gc=False, kw_only=True):
    """Whether a version of a package shall be on a worker or not, and how far that has come."""

    table = "install_intents"
    primary_key = ("tenant", "worker_id", "name", "version")
    mode = "replace"

    tenant: str
    worker_id: str
    name: str
    version: str
    intent: Literal["installed", "removed"]
    state: Literal["wanted", "downloading", "installing", "installed", "failed", "removed"]
    why: str = ""
    """The origin of the intent: `command`, `demand`, or the id of a rollout."""
    tries: int = 0
    error: bytes | None = None
    """Of the last failure: `{code, message}` as JSON."""
    updated_at: int


class ResourceRow(Row, frozen=True, gc=False, kw_only=True):
    """A resource that a worker holds, or the exported copy of one."""

    table = "resources"
    primary_key = ("tenant", "worker_id", "resource_id")
    mode = "replace"

    tenant: str
    worker_id: str
    resource_id: str
    type: str
    state: Literal["ready", "evicting", "evicted", "released"]
    scope: str = ""
    """The run or the session that it belongs to."""
    run_id: RunId | None = None
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
    lane: int = 0


class AffinityRow(Row, frozen=True, gc=False):
    """Which worker an affinity key belongs to."""

    table = "affinities"
    primary_key = ("tenant", "key")
    mode = "replace"

    tenant: str
    key: str
    worker_id: str
    acquired_at: int
    expires_at: int


class LaneRow(Row, frozen=True, gc=False):
    """The shard that a lane lives in. One without a row lives in shard 0; only an open one gets new runs."""

    table = "lanes"
    primary_key = ("tenant", "lane")
    mode = "ignore"

    tenant: str
    lane: int
    shard: int
    name: str
    state: Literal["opening", "open", "closing"] = "open"


class SiteRow(Row, frozen=True, gc=False):
    """A value that holds for all schedulers of this store."""

    table = "site"
    primary_key = ("name",)
    mode = "replace"

    name: str
    value: str


class TenantRow(Row, frozen=True, gc=False):
    """A tenant; `policy` is what it may use (`fleet.tenants.TenantPolicy` as JSON)."""

    table = "tenants"
    primary_key = ("tenant",)
    mode = "replace"

    tenant: str
    is_suspended: bool
    policy: bytes
    created_at: int
    created_by: str
    updated_at: int


class UserRow(Row, frozen=True, gc=False, kw_only=True):
    """Somebody who logs in, here with a password or at an issuer of logins."""

    table = "users"
    primary_key = ("tenant", "name")
    mode = "replace"

    tenant: str
    name: str
    role: str
    password_hash: str
    """Of Argon2, with its parameters and its salt."""
    is_disabled: bool = False
    created_at: int
    created_by: str = ""
    updated_at: int
    issuer: str = ""
    """The URL of the issuer; empty: none, or not known yet."""


class TokenRow(Row, frozen=True, gc=False, kw_only=True):
    """A bearer text that opens something: an API token, the cookie of a browser session, the code of a login link."""

    table = "tokens"
    primary_key = ("token_id",)

    token_id: str
    tenant: str
    kind: Literal["api", "session", "link"] = "api"
    digest: bytes
    """SHA-256 of the text, which is kept nowhere."""
    subject: str
    user_name: str | None = None
    role: str
    label: str = ""
    family: str
    created_at: int
    created_by: str = ""
    expires_at: int | None = None
    idle_ms: int | None = None
    used_at: int | None = None
    """Roughly: not every use is written."""
    revoked_at: int | None = None
    revoked_by: str = ""


class DataKeyRow(Row, frozen=True, gc=False, kw_only=True):
    """The data key of a tenant, encrypted with the master key `master_id`."""

    table = "data_keys"
    mode = "replace"
    primary_key = ("key_id",)

    key_id: str
    tenant: str
    master_id: str
    wrapped: bytes
    created_at: int


class SecretRow(Row, frozen=True, gc=False, kw_only=True):
    """A secret, encrypted with a data key of its tenant. `packages`: a JSON list of names; empty: all."""

    table = "secrets"
    mode = "replace"
    primary_key = ("tenant", "name")

    tenant: str
    name: str
    version: int
    key_id: str
    sealed: bytes
    packages: bytes
    created_at: int
    updated_at: int
    updated_by: str


class Changes(msgspec.Struct):
    """One transaction's worth of rows, in the order of their references. A store writes all of them or none.

    A list `x_gone` holds keys of rows of the list `x` to remove. A key that is both removed and put is put.
    """

    plans: list[PlanRow] = []
    runs: list[RunRow] = []
    run_changes: list[RunChange] = []
    segments: list[FactSegment] = []
    workers: list[WorkerRow] = []
    workers_gone: list[tuple[str, str]] = []
    pools: list[PoolRow] = []
    pools_gone: list[tuple[str, str]] = []
    events: list[TenantEvent] = []
    resources: list[ResourceRow] = []
    resources_gone: list[tuple[str, str, str]] = []
    affinities: list[AffinityRow] = []
    affinities_gone: list[tuple[str, str]] = []
    intents: list[InstallIntentRow] = []
    intents_gone: list[tuple[str, str, str, str]] = []
    rollouts: list[RolloutRow] = []
    active_versions: list[ActiveRow] = []
    site: list[SiteRow] = []
    tenants: list[TenantRow] = []
    audit_heads: list[AuditHeadRow] = []
    audits: list[AuditRow] = []
    sent_audits: list[SentAuditRow] = []
    sent_audits_gone: list[tuple[str]] = []
