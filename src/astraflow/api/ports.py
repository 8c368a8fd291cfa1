"""What the HTTP surface asks of a scheduler, and in which words.

The scheduler's facade fits `SchedulerPort` without knowing it. Everything that is not found is told as `NotFound`,
whether it is absent or another tenant's (P15); everything refused carries a row of the catalogue of errors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec import Raw, Struct

from astraflow.engine.batch import NumberedFact
from astraflow.errors import Code
from astraflow.observe.metrics import Metrics
from astraflow.runs.facts import RunStatus
from astraflow.runs.projections import Event
from astraflow.runs.run import Run
from astraflow.security.bearer import TokenRecord
from astraflow.store.rows import AuditRow, RunRow, TenantEvent, WorkflowRow
from astraflow.workflow.problems import Problem

__all__ = [
    "Accepted",
    "Drain",
    "InstallPackage",
    "PackageView",
    "Rebind",
    "SchedulerPort",
    "Submission",
    "Undrain",
    "UninstallPackage",
    "WorkerCommand",
    "WorkerView",
]


class Submission(Struct, frozen=True, kw_only=True):
    """A run to be made: of a definition, or of a saved workflow (the newest version if none is named)."""

    tenant: str
    by: str
    definition: bytes | None = None
    workflow_id: str | None = None
    version: int | None = None
    inputs: Raw = Raw(b"{}")
    idempotency_key: str | None = None
    fingerprint: str | None = None


class Accepted(Struct, frozen=True):
    """A run that exists. `is_new` is False if an earlier submission with the same key made it."""

    run_id: str
    status: RunStatus
    created_at: int
    is_new: bool = True


class PackageView(Struct, frozen=True):
    """A package on a worker."""

    name: str
    version: str
    status: str = "installed"


class WorkerView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A worker as people see it. Times are wall-clock milliseconds."""

    worker_id: str
    name: str
    tenant: str
    status: str
    version: str = ""
    hostname: str = ""
    max_parallel: int = 0
    inflight: int = 0
    packages: list[PackageView] = []
    labels: dict[str, str] = {}
    last_heartbeat_at: int | None = None
    resources: dict[str, float] | None = None


class Drain(Struct, frozen=True, tag="drain", rename="camel", forbid_unknown_fields=True):
    """Take nothing new, finish what runs; at the deadline stop it."""

    reason: str | None = None
    deadline_ms: int | None = None


class Undrain(Struct, frozen=True, tag="undrain", forbid_unknown_fields=True):
    """Take work again."""


class Rebind(Struct, frozen=True, tag="rebind", forbid_unknown_fields=True):
    """Forget what binds runs to this worker."""


class InstallPackage(Struct, frozen=True, tag="pkg.install", forbid_unknown_fields=True):
    name: str
    version: str


class UninstallPackage(Struct, frozen=True, tag="pkg.uninstall", forbid_unknown_fields=True):
    name: str
    version: str


WorkerCommand = Drain | Undrain | Rebind | InstallPackage | UninstallPackage


class SchedulerPort(Protocol):
    """Use from the loop that the scheduler runs on."""

    @property
    def metrics(self) -> Metrics: ...

    def authenticate(self, token: str) -> TokenRecord | Code: ...

    def is_ready(self) -> bool: ...

    def problem(self) -> str | None:
        """Why it is not ready, for people; None if it is."""

    # -- runs -------------------------------------------------------------------------------

    async def submit(self, submission: Submission) -> Accepted:
        """Returns when the run is durable (P1).

        Raises:
            InvalidDocument: with all problems of the definition.
            Conflict: the idempotency key was used with another body; resources contradict each other.
            NotFound: no such saved workflow.
            Unavailable: not now.
        """

    async def cancel(self, tenant: str, run_id: str, by: str) -> Run:
        """Raises: NotFound; Conflict, with its state, if it has succeeded or failed."""

    async def rebind(self, tenant: str, run_id: str, *, restart: bool, by: str) -> None:
        """Drop the run's bindings and affinity; `restart`: what runs is withdrawn and runs anew.

        Raises: NotFound; Conflict if it has ended.
        """

    async def get_run(self, tenant: str, run_id: str) -> tuple[RunRow, Run]: ...

    async def get_definition(self, tenant: str, run_id: str) -> bytes: ...

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        """Newest first, by (created_at, run_id)."""

    async def read_facts(
        self, tenant: str, run_id: str, after: int, limit: int
    ) -> list[NumberedFact]:
        """Facts whose last event is beyond `after`, in order, at most `limit`."""

    def ack_deadline(self, run_id: str, task: int) -> int | None:
        """When a dispatch that its worker has not taken yet is withdrawn: wall-clock milliseconds."""

    # -- streams ----------------------------------------------------------------------------

    async def last_event(self, tenant: str, run_id: str) -> tuple[int, bool]:
        """The number of the run's last event, and whether the run has ended."""

    def follow_run(self, tenant: str, run_id: str, after: int) -> AsyncIterator[list[Event]]:
        """Batches of events beyond `after`; ends after the terminal one, or when serving ends."""

    async def last_tenant_event(self, tenant: str) -> int: ...

    def follow_tenant(self, tenant: str, after: int | None) -> AsyncIterator[list[TenantEvent]]:
        """As `follow_run`, without an end. None: from now on."""

    # -- workflows --------------------------------------------------------------------------

    def validate(self, definition: bytes) -> list[Problem]: ...

    async def save_workflow(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_version: int | None = None,
    ) -> WorkflowRow:
        """`workflow_id` None creates.

        Raises: InvalidDocument; NotFound; Conflict if it exists, or is not at the expected version.
        """

    async def get_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow: ...

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        """Last updated first, by (updated_at, workflow_id)."""

    async def delete_workflow(
        self, tenant: str, workflow_id: str, *, by: str, expected_version: int | None = None
    ) -> None: ...

    # -- workers, audit ---------------------------------------------------------------------

    def workers(self, tenant: str) -> list[WorkerView]: ...

    def worker(self, tenant: str, worker_id: str) -> WorkerView: ...

    async def command(self, tenant: str, worker_id: str, command: WorkerCommand, by: str) -> str:
        """Give an order to a worker; returns the id of the order. Raises: NotFound; Unavailable."""

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        """Newest first, each with its number."""
