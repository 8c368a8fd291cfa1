"""Rows to store."""

from __future__ import annotations

from typing import Any

from astraflow.store.rows import (
    AuditRow,
    DraftRow,
    FactSegment,
    InstallIntentRow,
    PackageRow,
    PinnedResultRow,
    PlanRow,
    ResourceRow,
    RunChange,
    RunRow,
    TenantEvent,
    WorkerRow,
    WorkflowRow,
)
from astraflow.store.statements import load_migrations

NEWEST = len(load_migrations("sqlite"))
"""The version of the schema."""
DAY_MS = 24 * 3600 * 1000
NOW_MS = 1_800_000_000_000
PLAN = PlanRow("plan-1", b'{"nodes":[]}', b"\x00\xff plan")


def run(number: int, **fields: Any) -> RunRow:
    """The run with this number; a later one is newer."""
    given = {
        "run_id": f"run-{number:04}",
        "tenant": "default",
        "workflow_id": "flow",
        "plan_id": PLAN.plan_id,
        "created_at": 1_000 + number,
    }
    return RunRow(**{**given, **fields})


def finished(number: int, at: int, **fields: Any) -> RunRow:
    return run(number, status="succeeded", started_at=at - 1, finished_at=at, **fields)


def change(row: RunRow, **fields: Any) -> RunChange:
    given = {
        "status": row.status,
        "cancel_requested": row.cancel_requested,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": row.error,
    }
    return RunChange(row.run_id, **{**given, **fields})


def segment(row: RunRow, first: int, last: int, body: bytes = b"{}\n") -> FactSegment:
    return FactSegment(row.run_id, first, last, body)


def event(number: int, tenant: str = "default", at: int = NOW_MS) -> TenantEvent:
    return TenantEvent(tenant, number, at, "worker.online", b'{"n":1}')


def audit(number: int, tenant: str = "default", at: int = NOW_MS) -> AuditRow:
    return AuditRow(tenant, at, "ann", f"run.cancel {number}", "corr", None, b'{"run":1}')


def worker(worker_id: str, **fields: Any) -> WorkerRow:
    return WorkerRow(**{"tenant": "default", "worker_id": worker_id, "subject": "key-1", **fields})


def workflow(workflow_id: str, version: int, **fields: Any) -> WorkflowRow:
    given = {
        "tenant": "default",
        "workflow_id": workflow_id,
        "version": version,
        "name": f"{workflow_id} {version}",
        "definition": b'{"nodes":[]}',
        "created_at": 1,
        "updated_at": version,
        "updated_by": "ann",
    }
    return WorkflowRow(**{**given, **fields})


def draft(workflow_id: str, revision: int, **fields: Any) -> DraftRow:
    given = {
        "tenant": "default",
        "workflow_id": workflow_id,
        "revision": revision,
        "base_version": 0,
        "name": f"{workflow_id} {revision}",
        "definition": b'{"nodes":5}',
        "updated_at": revision,
        "updated_by": "ann",
    }
    return DraftRow(**{**given, **fields})


def pin(node_id: str, workflow_id: str = "a", **fields: Any) -> PinnedResultRow:
    given = {
        "tenant": "default",
        "workflow_id": workflow_id,
        "node_id": node_id,
        "result": b'{"value":1}',
        "updated_at": 5,
        "updated_by": "ann",
    }
    return PinnedResultRow(**{**given, **fields})


def package(version: str, name: str = "acme.texts", **fields: Any) -> PackageRow:
    given = {
        "tenant": "default",
        "name": name,
        "version": version,
        "sha256": f"digest of {name} {version}",
        "size_bytes": 7,
        "manifest": b'{"name":"acme.texts"}',
        "manifest_sha256": "digest of the manifest",
        "published_at": NOW_MS,
    }
    return PackageRow(**{**given, **fields})


def intent(worker_id: str, version: str = "1.0.0", **fields: Any) -> InstallIntentRow:
    given = {
        "tenant": "default",
        "worker_id": worker_id,
        "name": "acme.texts",
        "version": version,
        "intent": "installed",
        "state": "wanted",
        "updated_at": NOW_MS,
    }
    return InstallIntentRow(**{**given, **fields})


def resource(number: int, worker_id: str = "w-1", **fields: Any) -> ResourceRow:
    """The resource with this number; a later one is newer."""
    given = {
        "tenant": "default",
        "worker_id": worker_id,
        "resource_id": f"res-{number}",
        "type": "file",
        "state": "ready",
        "created_at": 1_000 + number,
    }
    return ResourceRow(**{**given, **fields})
