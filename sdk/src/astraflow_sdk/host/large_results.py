"""Large results: what does not fit into a result is stored as a file, and read again before the next handler runs.

The largest members of the result go first, each into a file of its own, until the rest fits; a reference stands in the
place of each. So small members stay readable for expressions. The worker uploads the files before it reports the
result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.handles import ResourceError, ResourceHandle
from astraflow_sdk.host.channel import encode_json

VALUE_TYPE = "astraflow.value"
"""The type of the resource that such a value is."""
MAX_VALUES = 64
"""In one result: a node that is given them all can refer to so many resources."""
LEAST_BYTES = 1024
"""A smaller member gains nothing by being stored."""
MIME = "application/json"


def allows_large(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The node types whose large results are stored, as the package or the node says."""
    by_default = manifest.get("largeResults")
    return frozenset(
        node["type"]
        for node in manifest.get("nodes") or ()
        if (node.get("largeResults") or by_default) == "reference"
    )


def store_members(ctx: Context, result: object, excess: int) -> dict[str, Any] | None:
    """The result with references in the place of its largest members; None if it cannot be made so much smaller.

    Raises:
        ResourceError, InfrastructureError: a file cannot be kept.
    """
    if not isinstance(result, dict):
        return None
    texts = {key: encode_json(value).encode() for key, value in result.items()}
    large = sorted(texts, key=lambda key: -len(texts[key]))
    chosen = []
    for key in large[:MAX_VALUES]:
        if excess <= 0 or len(texts[key]) < LEAST_BYTES:
            break
        chosen.append(key)
        excess -= len(texts[key]) - LEAST_BYTES  # a reference and its artifact take less
    if excess > 0:
        return None
    return {**result, **{key: _store(ctx, key, texts[key]) for key in chosen}}


def _store(ctx: Context, key: str, text: bytes) -> dict[str, Any]:
    registry = ctx.needed_registry()
    name = f"{key[:80]}.json"
    path = registry.fresh_path(name)
    path.write_bytes(text)
    handle = registry.register_file(
        registry.new_id(name),
        path,
        metadata={"mime": MIME, "name": name, "durable": True},
        type=VALUE_TYPE,
        name=name,
    )
    ctx.list_artifact(handle.artifact())
    ref = handle.ref()["resourceRef"]
    return {"resourceRef": {**ref, "sizeBytes": len(text), "sha256": handle.checksum}}


def has_values(ctx: Context) -> bool:
    """Whether something that came with the attempt stands for a stored value."""
    return any(one["type"] == VALUE_TYPE for one in ctx.told_leases)


def read_values(ctx: Context) -> None:
    """Put the stored values in the places of their references in the parameters.

    Raises:
        ResourceError: the file of one is gone or broken.
    """
    found = {
        resource_id: _read(handle)
        for resource_id, handle in ctx.leased_resources.items()
        if handle.type == VALUE_TYPE
    }
    ctx.parameters = _with_values(ctx.parameters, found)


def _read(handle: ResourceHandle) -> Any:
    try:
        return json.loads(handle.read_bytes())
    except (OSError, ValueError) as problem:
        raise ResourceError(
            f"the stored value cannot be read: {handle.resource_id}: {problem}",
            category="INFRASTRUCTURE",
            retryable=False,
            code="E.RESOURCE.LOST",
        ) from problem


def _with_values(value: Any, found: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        ref = value.get("resourceRef")
        if len(value) == 1 and isinstance(ref, dict) and ref.get("type") == VALUE_TYPE:
            return found.get(ref.get("resourceId", ""), value)
        return {key: _with_values(one, found) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_values(one, found) for one in value]
    return value
