"""The shapes of REST, as JSON Schema 2020-12: what the description of the API refers to by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from astraflow.core.runs.facts import Category, RunStatus
from astraflow.core.security.policy import Role

__all__ = ["SCHEMAS"]

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}
_MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
_ANY_OBJECT: Final[Schema] = {"type": "object"}
_NODE_STATUSES: Final = (
    "pending", "ready", "dispatched", "running", "retrying", "waiting",
    "succeeded", "failed", "skipped", "cancelled",
)  # fmt: skip
_WORKER_STATUSES: Final = ("online", "degraded", "draining", "lost", "offline")


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(words: tuple[str, ...]) -> Schema:
    return {"type": "string", "enum": list(words)}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _closed(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {**_object(required, optional), "additionalProperties": False}


def _page(name: str) -> Schema:
    return _object({"items": _list(_ref(name)), "nextCursor": _or_null(_TEXT)})


_NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 256}

_TASK_ERROR = _object(
    {"code": _TEXT},
    {"category": _one_of(get_args(Category)), "message": _TEXT, "stack": _TEXT},
)
_ARTIFACT = _object(
    {"resourceId": _TEXT, "workerId": _TEXT, "type": _TEXT, "inline": _FLAG},
    {"sizeBytes": _or_null(_COUNT), "expiresAt": _or_null(_TEXT), "metadata": {}},
)
_NODE = _object(
    {
        "nodeId": _TEXT,
        "type": _TEXT,
        "label": _or_null(_TEXT),
        "status": _one_of(_NODE_STATUSES),
        "attempt": _COUNT,
        "failures": _COUNT,
        "workerId": _or_null(_TEXT),
        "waitingFor": _or_null(_ref("WaitingFor")),
        "result": {},
        "error": _or_null(_ref("TaskError")),
        "progress": _or_null({"type": "number"}),
        "message": _or_null(_TEXT),
        "startedAt": _or_null(_MOMENT),
        "finishedAt": _or_null(_MOMENT),
        "pendingAck": _FLAG,
        "dispatchId": _or_null(_TEXT),
        "ackDeadline": _or_null(_MOMENT),
        "artifacts": _list(_ref("Artifact")),
    },
    {
        "resultTruncated": _FLAG,
        "middlewares": _list(_TEXT),
        "hostNodeId": _TEXT,
        "chainIndex": _COUNT,
        "calls": _COUNT,
    },
)
_RUN_HEAD: Final[Mapping[str, Schema]] = {
    "runId": _TEXT,
    "workflowId": _TEXT,
    "status": _one_of(get_args(RunStatus)),
    "cancelRequested": _FLAG,
    "createdAt": _MOMENT,
    "startedAt": _or_null(_MOMENT),
    "finishedAt": _or_null(_MOMENT),
}
_PACKAGE: Final[Mapping[str, Schema]] = {
    "name": _TEXT,
    "active": _or_null(_TEXT),
    "pinned": _FLAG,
    "nodes": _COUNT,
    "description": _TEXT,
    "publishedAt": _MOMENT,
}
_COMMANDS: Final[Schema] = {
    "oneOf": [
        _closed(
            {"type": {"const": "drain"}},
            {
                "reason": _or_null(_NAME),
                "deadlineMs": _or_null({"type": "integer", "minimum": 0, "maximum": 604_800_000}),
            },
        ),
        _closed({"type": {"const": "undrain"}}),
        _closed({"type": {"const": "rebind"}}),
        _closed({"type": {"const": "pkg.install"}, "name": _NAME, "version": _NAME}),
        _closed({"type": {"const": "pkg.uninstall"}, "name": _NAME, "version": _NAME}),
    ]
}

SCHEMAS: Final[Mapping[str, Schema]] = MappingProxyType(
    {
        "Accepted": _object(
            {"runId": _TEXT, "status": _one_of(get_args(RunStatus)), "createdAt": _MOMENT}
        ),
        "Artifact": _ARTIFACT,
        "ArtifactPage": _page("Artifact"),
        "Attempt": _object(
            {
                "attempt": _COUNT,
                "workerId": _TEXT,
                "incarnation": _COUNT,
                "status": _TEXT,
                "dispatchedAt": _MOMENT,
                "startedAt": _or_null(_MOMENT),
                "finishedAt": _or_null(_MOMENT),
            },
            {"error": _ref("TaskError")},
        ),
        "AuditEntry": _object(
            {
                "id": _COUNT,
                "occurredAt": _MOMENT,
                "who": _TEXT,
                "action": _TEXT,
                "corr": _or_null(_TEXT),
                "code": _or_null(_TEXT),
                "detail": {},
            }
        ),
        "AuditPage": _page("AuditEntry"),
        "Command": _COMMANDS,
        "CommandAccepted": _object({"commandId": _TEXT, "workerId": _TEXT, "type": _TEXT}),
        "Definition": {
            **_object({"id": _TEXT, "nodes": _list(_ANY_OBJECT)}, {"edges": _list(_ANY_OBJECT)}),
            "description": "A workflow: `schemas/workflow.schema.json` is its exact form.",
        },
        "LogLine": _object(
            {
                "id": _COUNT,
                "occurredAt": _MOMENT,
                "nodeId": _TEXT,
                "attempt": _COUNT,
                "channel": _TEXT,
                "index": _COUNT,
                "mimeType": _TEXT,
            },
            {"text": _TEXT, "dataBase64": _TEXT, "metadata": _ANY_OBJECT},
        ),
        "LogPage": _page("LogLine"),
        "Me": _object(
            {
                "tenant": _TEXT,
                "subject": _TEXT,
                "role": _one_of(tuple(Role)),
                "expiresAt": _or_null(_MOMENT),
            }
        ),
        "Node": _NODE,
        "NodeDetail": {
            **_NODE,
            "properties": {
                **_NODE["properties"],
                "attempts": _list(_ref("Attempt")),
                "story": _list(_TEXT),
            },
            "required": [*_NODE["required"], "attempts", "story"],
        },
        "NodeType": _object(
            {
                "type": _TEXT,
                "package": _object({"name": _TEXT, "version": _TEXT}),
                "published": _FLAG,
                "label": _TEXT,
                "category": _TEXT,
                "description": _TEXT,
                "tags": _list(_TEXT),
                "schema": _ANY_OBJECT,
                "ui": _ANY_OBJECT,
                "runtimes": _ANY_OBJECT,
                "status": _TEXT,
            },
            {"alsoIn": _list(_object({"name": _TEXT, "version": _TEXT}))},
        ),
        "NodeTypePage": _page("NodeType"),
        "ActiveVersion": _object({"name": _TEXT, "version": _TEXT, "previous": _or_null(_TEXT)}),
        "ActivateRequest": _closed({"version": {**_NAME, "maxLength": 64}}),
        "ArtifactLink": _object(
            {
                "url": _TEXT,
                "expiresAt": _MOMENT,
                "sizeBytes": _COUNT,
                "sha256": _TEXT,
                "mime": _TEXT,
            }
        ),
        "Extension": _closed(
            {"ttlSeconds": {"type": "integer", "minimum": 1, "maximum": 31_622_400}}
        ),
        "Package": {
            **_object({**_PACKAGE, "versions": _list(_ref("PackageVersion"))}),
            "description": "With its versions, newest first, and the workers that have each.",
        },
        "PackagePage": _page("PackageSummary"),
        "PackageSummary": _object({**_PACKAGE, "versions": _list(_TEXT)}),
        "PackageVersion": _object(
            {
                "name": _TEXT,
                "version": _TEXT,
                "active": _FLAG,
                "sha256": _TEXT,
                "sizeBytes": _COUNT,
                "publishedAt": _MOMENT,
                "publishedBy": _TEXT,
                "signedBy": _or_null(_TEXT),
                "yankedAt": _or_null(_MOMENT),
                "yankedReason": _TEXT,
                "nodes": _COUNT,
            },
            {
                "workers": _list(_TEXT),
                "manifest": _ANY_OBJECT,
                "signature": _or_null(_ANY_OBJECT),
            },
        ),
        "Resource": _object(
            {
                "resourceId": _TEXT,
                "workerId": _TEXT,
                "type": _TEXT,
                "state": _one_of(("ready", "evicting", "evicted", "released")),
                "scope": _TEXT,
                "runId": _or_null(_TEXT),
                "nodeId": _or_null(_TEXT),
                "package": _TEXT,
                "sizeBytes": _or_null(_COUNT),
                "createdAt": _MOMENT,
                "expiresAt": _or_null(_MOMENT),
                "isArtifact": _FLAG,
                "hasCopy": _FLAG,
                "metadata": {},
            }
        ),
        "ResourcePage": _page("Resource"),
        "Rollout": _object(
            {
                "rolloutId": _TEXT,
                "name": _TEXT,
                "version": _TEXT,
                "previous": _or_null(_TEXT),
                "state": _one_of(("running", "succeeded", "failed", "rolled_back")),
                "waves": _list(_COUNT),
                "wave": _COUNT,
                "soakSeconds": {"type": "number"},
                "maxFailedPercent": {"type": "number"},
                "startedAt": _MOMENT,
                "updatedAt": _MOMENT,
                "startedBy": _TEXT,
                "error": _TEXT,
            }
        ),
        "RolloutPage": _page("Rollout"),
        "RolloutRequest": _closed(
            {"version": {**_NAME, "maxLength": 128}},
            {
                "waves": {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 1, "maximum": 100},
                    "minItems": 1,
                    "maxItems": 20,
                },
                "soakSeconds": {"type": "number", "minimum": 0, "maximum": 86_400},
                "maxFailedPercent": {"type": "number", "minimum": 0, "maximum": 100},
            },
        ),
        "Uploaded": _object({"resourceId": _TEXT, "sha256": _TEXT}),
        "YankRequest": _closed({}, {"reason": {"type": "string", "maxLength": 1_024}}),
        "Problem": _object(
            {
                "type": _TEXT,
                "title": _TEXT,
                "status": {"type": "integer", "minimum": 400, "maximum": 599},
                "detail": _TEXT,
                "code": {**_TEXT, "description": "docs/reference/errors.md lists all of them"},
            },
            {"errors": _list(_object({"pointer": _TEXT, "message": _TEXT}, {"code": _TEXT}))},
        ),
        "RebindRequest": _closed({}, {"running": _one_of(("keep", "restart"))}),
        "Rebound": _object({"runId": _TEXT, "running": _TEXT}),
        "Run": _object(
            {**_RUN_HEAD, "lastEvent": _COUNT},
            {
                "error": _ref("TaskError"),
                "outputs": _ANY_OBJECT,
                "nodes": _list(_ref("Node")),
                "artifacts": _list(_ref("Artifact")),
            },
        ),
        "RunPage": _page("RunSummary"),
        "RunInputs": _ANY_OBJECT,
        "RunOfDefinition": _closed({"workflow": _ref("Definition")}, {"inputs": _ref("RunInputs")}),
        "RunOfWorkflow": _closed(
            {"workflowId": _NAME},
            {
                "version": _or_null({"type": "integer", "minimum": 1}),
                "inputs": _ref("RunInputs"),
            },
        ),
        # Each with a name: generators give both cases of an inline `oneOf` the same one.
        "RunRequest": {"oneOf": [_ref("RunOfDefinition"), _ref("RunOfWorkflow")]},
        "RunSummary": _object(
            {**_RUN_HEAD, "workflowVersion": _or_null(_COUNT), "name": _TEXT},
            {"error": _ref("TaskError"), "rerunOf": _TEXT},
        ),
        "Status": _object({"status": _TEXT}),
        "TaskError": _TASK_ERROR,
        "Validity": _object({"valid": {"const": True}, "errors": _list(_ANY_OBJECT)}),
        "WaitingFor": _object(
            {"kind": _TEXT, "detail": _TEXT},
            {
                "until": _MOMENT,
                "retryAt": _MOMENT,
                "heldBy": _object({"runId": _TEXT, "nodeId": _TEXT}),
            },
        ),
        "Worker": _object(
            {
                "workerId": _TEXT,
                "name": _TEXT,
                "tenant": _TEXT,
                "status": _one_of(_WORKER_STATUSES),
                "version": _TEXT,
                "hostname": _TEXT,
                "maxParallel": _COUNT,
                "inflight": _COUNT,
                "packages": _list(_object({"name": _TEXT, "version": _TEXT}, {"status": _TEXT})),
                "labels": {"type": "object", "additionalProperties": _TEXT},
                "lastHeartbeatAt": _or_null(_MOMENT),
            },
            {
                "resources": _ANY_OBJECT,
                "inventoryDrift": {"type": "boolean"},
                "drainRequested": {"type": "boolean"},
            },
        ),
        "WorkerPage": _page("Worker"),
        "WorkflowPage": _page("WorkflowSummary"),
        "WorkflowSummary": _object(
            {
                "id": _TEXT,
                "name": _TEXT,
                "version": _COUNT,
                "createdAt": _MOMENT,
                "updatedAt": _MOMENT,
                "updatedBy": _TEXT,
            }
        ),
    }
)
"""By name. Objects may have more members than are listed: readers must ignore what they do not know."""
