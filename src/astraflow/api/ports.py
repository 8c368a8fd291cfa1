"""What the HTTP surface asks of a scheduler, and in which words.

The scheduler's facade fits `SchedulerPort` without knowing it. Everything that is not found is told as `NotFound`,
whether it is absent or another tenant's (P15); everything refused carries a row of the catalogue of errors.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from astraflow.core.dispatch.rollout import Rollout
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.errors import Code
from astraflow.core.runs.facts import RunStatus
from astraflow.core.runs.projections import Event
from astraflow.core.workflow.problems import Problem
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.depot import Depot
from astraflow.scheduler.orders import (
    Drain,
    InstallPackage,
    Rebind,
    Undrain,
    UninstallPackage,
    WorkerCommand,
)
from astraflow.scheduler.rollouts import RolloutRequest
from astraflow.scheduler.service import Accepted, Submission, WorkerView
from astraflow.store.rows import AuditRow, ResourceRow, RunRow, TenantEvent, WorkflowRow

__all__ = [
    "Drain",
    "InstallPackage",
    "Rebind",
    "ResourcePort",
    "RolloutPort",
    "SchedulerPort",
    "Undrain",
    "UninstallPackage",
    "WorkerCommand",
]


class RolloutPort(Protocol):
    """Versions on their way to all workers."""

    async def start(self, tenant: str, name: str, request: RolloutRequest, by: str) -> Rollout:
        """Raises: NotFound; Conflict, when one runs or the version was yanked; Refused."""

    async def of(self, tenant: str, name: str) -> list[Rollout]:
        """Newest first."""

    async def roll_back(self, tenant: str, name: str, by: str) -> str:
        """Go back to the version that was active before, and return it. Raises: NotFound; Conflict."""


class ResourcePort(Protocol):
    """What is asked about the resources of workers."""

    async def resources(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        """Newest first, by (created_at, worker_id, resource_id)."""

    async def resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> ResourceRow:
        """Raises: NotFound; Conflict, when several workers have one of this id and none is named."""

    async def close_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Tell its worker to let go of it. Raises: NotFound; Conflict; Unavailable."""

    async def extend_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, ttl_s: float, by: str
    ) -> ResourceRow:
        """Let it live for so long from now. Raises: NotFound; Conflict; Unavailable."""

    async def export_artifact(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Have its worker upload it, and wait until the copy is there. Raises: NotFound; Conflict; Unavailable."""


class SchedulerPort(ResourcePort, Protocol):
    """Use from the loop that the scheduler runs on."""

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

    async def cancel(self, tenant: str, run_id: str, by: str) -> None:
        """Fine if it is being or was cancelled.

        Raises: NotFound; Conflict, with its status, if it has succeeded or failed.
        """

    async def rebind(self, tenant: str, run_id: str, *, restart: bool, by: str) -> None:
        """Drop the run's bindings and affinity; `restart`: what runs is withdrawn and runs anew.

        Raises: NotFound; Conflict if it has ended.
        """

    async def view_run(
        self, tenant: str, run_id: str, *, with_nodes: bool = True
    ) -> dict[str, Any]:
        """The run as `runs.projections.view_run` shows it; everything in it is durable. Raises: NotFound."""

    async def view_node(self, tenant: str, run_id: str, node_id: str) -> dict[str, Any]:
        """One node of it. Raises: NotFound."""

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

    async def node_facts(self, tenant: str, run_id: str, node_id: str) -> list[NumberedFact]:
        """The facts about one node, in order: its task's, those of the calls in its chain, and cancels of the run.

        Raises: NotFound.
        """

    # -- streams ----------------------------------------------------------------------------

    async def last_event(self, tenant: str, run_id: str) -> tuple[int, bool]:
        """The number of the run's last event, and whether the run has ended."""

    def follow_run(self, tenant: str, run_id: str, after: int) -> AsyncGenerator[list[Event], None]:
        """Batches of events beyond `after`; ends after the terminal one, or when serving ends."""

    async def last_tenant_event(self, tenant: str) -> int: ...

    def follow_tenant(
        self, tenant: str, after: int | None
    ) -> AsyncGenerator[list[TenantEvent], None]:
        """As `follow_run`, without an end. None: from now on."""

    # -- workflows --------------------------------------------------------------------------

    def validate(self, tenant: str, definition: bytes) -> list[Problem]: ...

    async def save_workflow(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_version: int | None = None,
    ) -> WorkflowRow:
        """Save a new version, or a new workflow; 0 is the version of what is not there yet.

        Raises: InvalidDocument; Refused, if its id is not `workflow_id`; Conflict, if not at the expected version.
        """

    async def get_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow: ...

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        """Last updated first, by (updated_at, workflow_id)."""

    async def delete_workflow(self, tenant: str, workflow_id: str) -> None: ...

    # -- packages ---------------------------------------------------------------------------

    @property
    def catalogs(self) -> Catalogs: ...

    @property
    def depot(self) -> Depot:
        """Packages, and copies of artifacts. Raises: Unavailable."""

    @property
    def rollouts(self) -> RolloutPort:
        """Raises: Unavailable."""

    # -- workers, audit ---------------------------------------------------------------------

    def workers(self, tenant: str) -> Sequence[WorkerView]: ...

    def worker(self, tenant: str, worker_id: str) -> WorkerView: ...

    async def command(self, tenant: str, worker_id: str, command: WorkerCommand, by: str) -> str:
        """Give an order to a worker; returns the id of the order. Raises: NotFound; Unavailable."""

    def audit_refusal(self, tenant: str, by: str, action: str, code: Code) -> None:
        """Keep that somebody asked for what they may not do. Raises: Unavailable."""

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        """Newest first, each with its number."""
