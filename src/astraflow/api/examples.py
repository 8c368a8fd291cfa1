"""The examples in the description of the API. They are real: the tests send and receive them."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "ACCEPTED",
    "DEFINITION",
    "EVENTS",
    "NODE",
    "NODE_DETAIL",
    "NODE_TYPE",
    "PACKAGE",
    "PACKAGE_SUMMARY",
    "PACKAGE_VERSION",
    "PROBLEM",
    "RESOURCE",
    "ROLLOUT",
    "RUN",
    "RUN_REQUEST",
    "SUMMARY",
    "WORKER",
    "WORKFLOW_SUMMARY",
    "page",
]

Example = dict[str, Any]

_RUN_ID: Final = "01JCQ6Z0M3V8R6T2XK9D4HB7WN"
_NODE_ID: Final = "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"
_WORKER_ID: Final = "01JCQ6YV2E5N3A8P7S1F0GKM4C"
_AT: Final = "2026-01-15T10:00:00.000Z"

DEFINITION: Final[Example] = {
    "id": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
    "metadata": {"name": "Say hello"},
    "nodes": [
        {"id": _NODE_ID, "type": "core.echo", "parameters": {"value": "hello"}},
    ],
    "edges": [],
}
RUN_REQUEST: Final[Example] = {"workflow": DEFINITION, "inputs": {}}
ACCEPTED: Final[Example] = {"runId": _RUN_ID, "status": "queued", "createdAt": _AT}
NODE: Final[Example] = {
    "nodeId": _NODE_ID,
    "type": "core.echo",
    "label": "",
    "status": "succeeded",
    "attempt": 1,
    "failures": 0,
    "workerId": _WORKER_ID,
    "waitingFor": None,
    "result": {"value": "hello"},
    "error": None,
    "progress": None,
    "message": None,
    "startedAt": "2026-01-15T10:00:00.004Z",
    "finishedAt": "2026-01-15T10:00:00.005Z",
    "pendingAck": False,
    "dispatchId": None,
    "ackDeadline": None,
    "artifacts": [],
}
RUN: Final[Example] = {
    "runId": _RUN_ID,
    "workflowId": DEFINITION["id"],
    "status": "succeeded",
    "createdAt": _AT,
    "startedAt": "2026-01-15T10:00:00.002Z",
    "finishedAt": "2026-01-15T10:00:00.005Z",
    "cancelRequested": False,
    "lastEvent": 6,
    "nodes": [NODE],
    "artifacts": [],
}
SUMMARY: Final[Example] = {
    "runId": _RUN_ID,
    "workflowId": DEFINITION["id"],
    "workflowVersion": None,
    "name": "Say hello",
    "status": "succeeded",
    "cancelRequested": False,
    "createdAt": _AT,
    "startedAt": "2026-01-15T10:00:00.002Z",
    "finishedAt": "2026-01-15T10:00:00.005Z",
}
NODE_DETAIL: Final[Example] = {
    **NODE,
    "attempts": [
        {
            "attempt": 1,
            "workerId": _WORKER_ID,
            "incarnation": 1,
            "status": "succeeded",
            "dispatchedAt": "2026-01-15T10:00:00.002Z",
            "startedAt": "2026-01-15T10:00:00.004Z",
            "finishedAt": "2026-01-15T10:00:00.005Z",
        }
    ],
    "story": [
        f"2026-01-15T10:00:00.002Z attempt 1 was leased to {_WORKER_ID} (boot 1)",
        "2026-01-15T10:00:00.004Z attempt 1 was taken by its worker",
        "2026-01-15T10:00:00.005Z succeeded with attempt 1",
    ],
}
WORKFLOW_SUMMARY: Final[Example] = {
    "id": DEFINITION["id"],
    "name": "Say hello",
    "version": 3,
    "createdAt": _AT,
    "updatedAt": "2026-01-15T10:20:00.000Z",
    "updatedBy": "bootstrap",
}
WORKER: Final[Example] = {
    "workerId": _WORKER_ID,
    "name": "otter",
    "tenant": "default",
    "status": "online",
    "version": "0.1.0",
    "hostname": "build-7",
    "maxParallel": 16,
    "inflight": 2,
    "packages": [{"name": "core", "version": "1.0.0", "status": "installed"}],
    "labels": {"gpu": "no"},
    "lastHeartbeatAt": _AT,
}
PROBLEM: Final[Example] = {
    "type": "urn:astraflow:error:E.RUN.NOT_FOUND",
    "title": "there is no such run, or none that you may see",
    "status": 404,
    "detail": f"no such run: {_RUN_ID}",
    "code": "E.RUN.NOT_FOUND",
}
EVENTS: Final = (
    "id: 1\nevent: run.status\n"
    f'data: {{"id":1,"type":"run.status","occurredAt":"{_AT}","scope":{{}},"data":{{"status":"queued"}}}}\n\n'
)


def page(item: Example) -> Example:
    """A last page with one item."""
    return {"items": [item], "nextCursor": None}


PACKAGE_VERSION: Final[Example] = {
    "name": "acme.texts",
    "version": "1.2.0",
    "active": True,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sizeBytes": 20_480,
    "publishedAt": _AT,
    "publishedBy": "ann",
    "signedBy": "acme",
    "yankedAt": None,
    "yankedReason": "",
    "nodes": 3,
}
PACKAGE_SUMMARY: Final[Example] = {
    "name": "acme.texts",
    "active": "1.2.0",
    "pinned": False,
    "versions": ["1.2.0"],
    "nodes": 3,
    "description": "Texts, split and joined",
    "publishedAt": _AT,
}
PACKAGE: Final[Example] = {
    **PACKAGE_SUMMARY,
    "versions": [{**PACKAGE_VERSION, "workers": [_WORKER_ID]}],
}
ROLLOUT: Final[Example] = {
    "rolloutId": "01JCQ70R2MB4E6V9N8T3K5XW1D",
    "name": "acme.texts",
    "version": "1.2.0",
    "previous": "1.1.0",
    "state": "running",
    "waves": [10, 50, 100],
    "wave": 0,
    "soakSeconds": 30.0,
    "maxFailedPercent": 10.0,
    "startedAt": _AT,
    "updatedAt": _AT,
    "startedBy": "ann",
    "error": "",
}
NODE_TYPE: Final[Example] = {
    "type": "acme.split",
    "package": {"name": "acme.texts", "version": "1.2.0"},
    "published": True,
    "label": "Split a text",
    "category": "text",
    "description": "",
    "tags": ["text"],
    "schema": {},
    "ui": {},
    "runtimes": {},
    "status": "published",
}
RESOURCE: Final[Example] = {
    "resourceId": f"{_RUN_ID}/report",
    "workerId": _WORKER_ID,
    "type": "file",
    "state": "ready",
    "scope": _RUN_ID,
    "runId": _RUN_ID,
    "nodeId": _NODE_ID,
    "package": "",
    "sizeBytes": 1_048_576,
    "createdAt": _AT,
    "expiresAt": "2026-01-15T11:00:00.000Z",
    "isArtifact": True,
    "hasCopy": False,
    "metadata": {"mime": "application/pdf"},
}
