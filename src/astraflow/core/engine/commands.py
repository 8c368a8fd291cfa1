"""Commands: what the API and the shells ask of an engine.

`SubmitRun` and `CancelRun` are answered by an effect, after the commit. The others are `OperatorCommand`s: they are
decided at once, or refused with an error that changes nothing, and audited.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.resources import ResourceKey
from astraflow.core.fleet.rollouts import RolloutRecord
from astraflow.core.fleet.tenants import TenantPolicy
from astraflow.core.fleet.workers import DrainIntent
from astraflow.core.ids import NodeId, RunId, TaskId
from astraflow.core.runs.accept import ReusedResults
from astraflow.core.runs.facts import RunTrace, SignalKey, TaskFailure
from astraflow.core.workflow.plan import Plan


class SubmitRun(msgspec.Struct, frozen=True):
    """A run to accept. `token` is whatever the shell needs to find its caller again.

    `plan_id`, `definition`, `plan_body`, `name` and `workflow_version` are for the rows of the run.
    """

    token: object
    tenant: str
    run_id: RunId
    plan: Plan
    inputs: msgspec.Raw = msgspec.Raw(b"{}")
    idempotency_key: str | None = None
    fingerprint: str | None = None
    deadline_s: float | None = None
    rerun_of: str | None = None
    kept: ReusedResults | None = None
    plan_id: str = ""
    definition: bytes = b""
    plan_body: bytes = b""
    name: str = ""
    workflow_version: int | None = None
    trace: RunTrace | None = None
    by: str = ""
    corr: str | None = None
    pinned: tuple[int, ...] = ()
    """Those of `kept` whose result is pinned."""
    signal_key: SignalKey | None = None
    depth: int = 0
    trigger: str = ""


class CancelRun(msgspec.Struct, frozen=True):
    """A run to stop."""

    token: object
    tenant: str
    run_id: RunId
    by: str = ""
    grace_ms: int | None = None


class OperatorCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The base of what operators ask for. `by`: who; `subject`: what it is about, for the audit log; `corr`: the id of
    the request."""

    action: ClassVar[str] = ""
    """The word for it in the audit log; empty: it is not kept there."""
    tenant: str
    by: str = ""
    subject: str = ""
    corr: str | None = None


class KeepAudit(OperatorCommand, frozen=True, kw_only=True):
    """Keep that somebody did something, or was refused it."""

    what: str
    code: str | None = None
    happened_at: int | None = None
    """When it was, if not now."""
    sent_id: str = ""
    """Under which the owner of another shard has sent it here; empty: nobody has."""


class WantPackage(OperatorCommand, frozen=True, kw_only=True):
    """Tasks of another lane of the tenant wait for a package."""

    name: str
    version: str


class GiveUpPackage(OperatorCommand, frozen=True, kw_only=True):
    """The home lane says that no worker can install a package that tasks of this lane wait for."""

    name: str
    version: str
    code: str
    message: str


class AnnounceChange(OperatorCommand, frozen=True, kw_only=True):
    """Tell the readers of the tenant's stream of a change that is stored already. `body`: as JSON."""

    kind: str
    body: bytes


# -- tenants -------------------------------------------------------------------------------------


class ConfigureTenant(OperatorCommand, frozen=True, kw_only=True):
    """Make a tenant, or change what it may use."""

    action: ClassVar[str] = "tenant.configure"
    policy: TenantPolicy
    is_new: bool = False


class SuspendTenant(OperatorCommand, frozen=True, kw_only=True):
    """Give a tenant nothing new."""

    action: ClassVar[str] = "tenant.suspend"


class ResumeTenant(OperatorCommand, frozen=True, kw_only=True):
    """Let a suspended tenant go on."""

    action: ClassVar[str] = "tenant.resume"


# -- runs ----------------------------------------------------------------------------------------


class RebindRun(OperatorCommand, frozen=True, kw_only=True):
    """Drop what binds the run to workers; with `restart`, running attempts are restarted."""

    action: ClassVar[str] = "rebind"
    run_id: RunId
    restart: bool = False


class SendSignal(OperatorCommand, frozen=True, kw_only=True):
    """A message for the nodes of a run that wait for it."""

    action: ClassVar[str] = "run.signal"
    run_id: RunId
    name: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    signal_id: str | None = None


class DecideApproval(OperatorCommand, frozen=True, kw_only=True):
    """A person's decision at a node that waits for one. `role`: that of the person."""

    action: ClassVar[str] = "run.approval"
    run_id: RunId
    node_id: NodeId
    scope_path: str | None = None
    approved: bool
    role: str
    comment: str = ""
    values: msgspec.Raw = msgspec.Raw(b"{}")


# -- workers -------------------------------------------------------------------------------------


class WorkerCommand(OperatorCommand, frozen=True, kw_only=True):
    """The base of commands about one worker."""

    worker_id: str


class DrainWorker(WorkerCommand, frozen=True, kw_only=True):
    """Give the worker nothing new, and tell it, now or when it is back."""

    action: ClassVar[str] = "drain"
    intent: DrainIntent = DrainIntent()


class UndrainWorker(WorkerCommand, frozen=True, kw_only=True):
    """Take a drain back."""

    action: ClassVar[str] = "undrain"


class RebindWorker(WorkerCommand, frozen=True, kw_only=True):
    """Drop every binding and every affinity key of the worker."""

    action: ClassVar[str] = "rebind"


class RequestInstall(WorkerCommand, frozen=True, kw_only=True):
    """Have the worker install a version."""

    action: ClassVar[str] = "pkg.install"
    name: str
    version: str


class RequestRemoval(WorkerCommand, frozen=True, kw_only=True):
    """Have the worker remove a version, when its last attempt has ended."""

    action: ClassVar[str] = "pkg.uninstall"
    name: str
    version: str


class ForgetWorker(WorkerCommand, frozen=True, kw_only=True):
    """Note that a worker is still there; forget one that is not in use and was not seen for too long (`is_stale`)."""

    is_stale: bool = True


# -- HTTP pools ----------------------------------------------------------------------------------


class ConfigurePool(OperatorCommand, frozen=True, kw_only=True):
    """Make an HTTP pool, or change it."""

    action: ClassVar[str] = "pool.configure"
    pool: PoolRecord


class RemovePool(OperatorCommand, frozen=True, kw_only=True):
    """Remove an HTTP pool that holds no attempt."""

    action: ClassVar[str] = "pool.remove"
    name: str


class RefusePush(OperatorCommand, frozen=True, kw_only=True):
    """Nobody took a push, and it is known that nothing of it runs."""

    task_id: TaskId
    attempt: int
    code: str
    message: str


# -- resources -----------------------------------------------------------------------------------


class ResourceCommand(OperatorCommand, frozen=True, kw_only=True):
    """The base of commands about one resource."""

    worker_id: str
    resource_id: str

    @property
    def key(self) -> ResourceKey:
        return self.tenant, self.worker_id, self.resource_id


class CloseResource(ResourceCommand, frozen=True, kw_only=True):
    """Have its worker remove it; a worker that is away gets the command when it is back."""

    action: ClassVar[str] = "resource.close"


class ExtendResource(ResourceCommand, frozen=True, kw_only=True):
    """Let it live until then (wall clock, milliseconds)."""

    action: ClassVar[str] = "resource.extend"
    expires_at: int


class ExportResource(ResourceCommand, frozen=True, kw_only=True):
    """Have its worker upload its bytes."""

    action: ClassVar[str] = "resource.export"


class NoteCopy(ResourceCommand, frozen=True, kw_only=True):
    """Its bytes are in the blob store."""

    blob: str


class NoteValue(OperatorCommand, frozen=True, kw_only=True):
    """What a map has collected is in the blob store, or cannot be stored: then there is no `blob`."""

    run_id: RunId
    task: int
    size_bytes: int
    blob: str | None
    problem: str = ""


class NoteList(OperatorCommand, frozen=True, kw_only=True):
    """The stored list of a map has been read, or cannot be: then there is a `failure`."""

    run_id: RunId
    task: int
    resource_id: str
    items: bytes = b""
    failure: TaskFailure | None = None


# -- packages ------------------------------------------------------------------------------------


class ActivateVersion(OperatorCommand, frozen=True, kw_only=True):
    """Make a version the one that nodes without a version get."""

    action: ClassVar[str] = "pkg.activate"
    name: str
    version: str


class StartRollout(OperatorCommand, frozen=True, kw_only=True):
    """Bring a version to all workers."""

    action: ClassVar[str] = "pkg.rollout"
    rollout: RolloutRecord


class RollBack(OperatorCommand, frozen=True, kw_only=True):
    """End the rollout that runs; if none does, go back to the version that was active before."""

    action: ClassVar[str] = "pkg.rollback"
    name: str
