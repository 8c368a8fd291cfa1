"""Keep objects between attempts (a browser, a model), and use objects that other attempts have kept."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from astraflow_sdk.current import current
from astraflow_sdk.handles import ResourceHandle, invalid


def keep(
    value: Any,
    *,
    type: str,
    close: Callable[[], Any] | None = None,
    resource_id: str | None = None,
    scope: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    size_bytes: int | None = None,
    ttl_seconds: float | None = None,
) -> ResourceHandle:
    """Keep an object in this host, for other nodes of the same package. Return `handle.ref()` to hand it on.

    `close` is called without arguments when it goes: when its run or session ends, its time is over, or its room is
    needed. It may be `async`.

    Raises:
        ResourceError: what was given makes no sense, or this package cannot keep objects.
    """
    registry = current().needed_registry()
    return registry.register(
        scope,
        resource_id or registry.new_id(type),
        type,
        metadata,
        value=value,
        close=close,
        size_bytes=size_bytes,
        ttl_seconds=ttl_seconds,
    )


def lease(ref_or_id: str | Mapping[str, Any] | ResourceHandle) -> ResourceHandle:
    """Use what a reference leads to: `value` of an object, `path` of a file. A `with` block releases it at its end.

    Raises:
        ResourceError: it is no reference, or what it leads to is not to be had.
    """
    if isinstance(ref_or_id, ResourceHandle):
        ref_or_id = ref_or_id.resource_id
    if isinstance(ref_or_id, str):
        return current().needed_registry().lease(ref_or_id)
    ref = ref_or_id.get("resourceRef", ref_or_id) if isinstance(ref_or_id, Mapping) else None
    if isinstance(ref, Mapping) and isinstance(ref.get("inline"), Mapping):
        return _inline(ref["inline"])
    found = (ref.get("resourceId") or ref.get("resource_id")) if isinstance(ref, Mapping) else None
    if not isinstance(found, str):
        raise invalid("this is no reference: {resourceRef: {resourceId, workerId, type}} is one")
    return current().needed_registry().lease(found)


def _inline(body: Mapping[str, Any]) -> ResourceHandle:
    """A small value that came with the parameters: nothing is leased."""
    try:
        content = base64.b64decode(str(body.get("base64")), validate=True)
    except (binascii.Error, ValueError) as problem:
        raise invalid("an inline value needs its bytes as base64") from problem
    metadata = {key: value for key, value in body.items() if key not in ("base64", "type")}
    return ResourceHandle(
        "",
        str(body.get("type") or "file"),
        current().worker_id,
        metadata=metadata,
        size_bytes=len(content),
        content=content,
    )
