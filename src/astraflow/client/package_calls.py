"""The calls about packages, node types and resources, as values."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from astraflow.client.calls import JSON, Call, as_kind, as_nothing, given, part
from astraflow.client.models import (
    ArtifactLink,
    NodeType,
    Package,
    PackageSummary,
    PackageVersion,
    Page,
    Resource,
)

__all__ = [
    "activate_package",
    "artifact_path",
    "close_resource",
    "extend_resource",
    "get_node_type",
    "get_package",
    "get_package_version",
    "get_resource",
    "list_node_types",
    "list_packages",
    "list_resources",
    "list_rollouts",
    "publish_package",
    "roll_back",
    "share_artifact",
    "start_rollout",
    "unyank_package",
    "yank_package",
]

_PACKAGES: Final = "/api/v1/packages"
_package: Final = as_kind(Package)
_packages: Final = as_kind(Page[PackageSummary])
_version: Final = as_kind(PackageVersion)
_nodes: Final = as_kind(Page[NodeType])
_node: Final = as_kind(NodeType)
_resources: Final = as_kind(Page[Resource])
_resource: Final = as_kind(Resource)
_link: Final = as_kind(ArtifactLink)
_object: Final = as_kind(dict[str, Any])


def publish_package(path: Path, signature: str | None) -> Call[PackageVersion]:
    """It may be sent again: the same file is published once."""
    headers = {"content-type": "application/zip", "content-length": str(path.stat().st_size)}
    if signature is not None:
        headers["astra-signature"] = base64.b64encode(signature.encode()).decode()
    return Call("POST", _PACKAGES, _version, headers=headers, body=path)


def list_packages(limit: int | None, cursor: str | None) -> Call[Page[PackageSummary]]:
    return Call("GET", _PACKAGES, _packages, given(limit=limit, cursor=cursor))


def get_package(name: str) -> Call[Package]:
    return Call("GET", f"{_PACKAGES}/{part(name)}", _package)


def get_package_version(name: str, version: str) -> Call[PackageVersion]:
    return Call("GET", f"{_PACKAGES}/{part(name)}/{part(version)}", _version)


def yank_package(name: str, version: str, reason: str) -> Call[PackageVersion]:
    path = f"{_PACKAGES}/{part(name)}/{part(version)}/yank"
    return Call("POST", path, _version, headers=JSON, body=msgspec.json.encode({"reason": reason}))


def unyank_package(name: str, version: str) -> Call[PackageVersion]:
    return Call("POST", f"{_PACKAGES}/{part(name)}/{part(version)}/unyank", _version)


def activate_package(name: str, version: str) -> Call[dict[str, Any]]:
    body = msgspec.json.encode({"version": version})
    return Call("PUT", f"{_PACKAGES}/{part(name)}/active", _object, headers=JSON, body=body)


def start_rollout(name: str, request: dict[str, Any]) -> Call[dict[str, Any]]:
    path = f"{_PACKAGES}/{part(name)}/rollout"
    body = msgspec.json.encode(request)
    return Call("POST", path, _object, headers=JSON, body=body, again=False)


def list_rollouts(name: str) -> Call[dict[str, Any]]:
    return Call("GET", f"{_PACKAGES}/{part(name)}/rollout", _object)


def roll_back(name: str) -> Call[dict[str, Any]]:
    return Call("POST", f"{_PACKAGES}/{part(name)}/rollback", _object, again=False)


def list_node_types(
    q: str | None,
    category: str | None,
    package: str | None,
    limit: int | None,
    cursor: str | None,
) -> Call[Page[NodeType]]:
    params = given(q=q, category=category, package=package, limit=limit, cursor=cursor)
    return Call("GET", "/api/v1/catalog/nodes", _nodes, params)


def get_node_type(node_type: str, package: str | None) -> Call[NodeType]:
    path = f"/api/v1/catalog/nodes/{part(node_type)}"
    return Call("GET", path, _node, given(package=package))


def list_resources(
    limit: int | None,
    cursor: str | None,
    run_id: str | None,
    worker_id: str | None,
    kind: str | None,
    state: str | None,
) -> Call[Page[Resource]]:
    params = given(
        limit=limit, cursor=cursor, runId=run_id, workerId=worker_id, type=kind, state=state
    )
    return Call("GET", "/api/v1/resources", _resources, params)


def get_resource(resource_id: str, worker_id: str | None) -> Call[Resource]:
    return Call("GET", _resource_path(resource_id), _resource, given(workerId=worker_id))


def extend_resource(resource_id: str, worker_id: str | None, ttl_s: int) -> Call[Resource]:
    body = msgspec.json.encode({"ttlSeconds": ttl_s})
    path, params = _resource_path(resource_id), given(workerId=worker_id)
    return Call("PATCH", path, _resource, params, headers=JSON, body=body)


def close_resource(resource_id: str, worker_id: str | None) -> Call[None]:
    return Call("DELETE", _resource_path(resource_id), as_nothing, given(workerId=worker_id))


def share_artifact(resource_id: str, worker_id: str | None) -> Call[ArtifactLink]:
    return Call("POST", artifact_path(resource_id), _link, given(workerId=worker_id))


def artifact_path(resource_id: str) -> str:
    return f"/api/v1/artifacts/{quote(resource_id, safe='/')}"


def _resource_path(resource_id: str) -> str:
    return f"/api/v1/resources/{quote(resource_id, safe='/')}"
