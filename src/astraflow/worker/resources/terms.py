"""The terms of a registration: what its creator requests, and what the worker grants."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.worker.resources.resource import (
    MAX_TTL_S,
    SESSION_PREFIX,
    Kind,
    LocalResource,
    Maker,
    check_id,
    check_metadata,
    check_type,
    refused,
)


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """As the worker's settings say (seed 003 §9)."""

    max_disk_bytes: int = 20 * 1024**3
    max_mem_bytes: int = 8 * 1024**3
    max_sessions: int = 1_000
    default_ttl_s: float = 3_600


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Optional fields of a registration. `expires_at`: wall-clock milliseconds."""

    scope: str | None = None
    metadata: dict[str, Any] | None = None
    size_bytes: int = 0
    ttl_s: float | None = None
    expires_at: int | None = None


def describe(
    resource_id: str,
    type: str,
    kind: Kind,
    maker: Maker,
    terms: Terms,
    default_ttl_s: float,
    now: int,
) -> LocalResource:
    """A resource as it will be written down, without its token and content.

    Raises:
        Refused: `E.RESOURCE.INVALID`.
    """
    check_id(resource_id)
    check_type(type)
    run_id = maker.lessee.run_id
    scope = terms.scope or run_id or f"{SESSION_PREFIX}worker"
    check_id(scope)
    is_session = scope.startswith(SESSION_PREFIX) and len(scope) > len(SESSION_PREFIX)
    if scope != run_id and not is_session:
        message = "the scope of a resource is its run or session:<name>"
        raise refused(errors.RESOURCE_INVALID, message, scope)
    ttl_s = default_ttl_s if terms.ttl_s is None else terms.ttl_s
    expires_at = expiry(ttl_s, terms.expires_at, now)
    return LocalResource(
        token="",
        resource_id=resource_id,
        type=type,
        kind=kind,
        worker_id="",
        scope=scope,
        run_id=run_id,
        node_id=maker.node_id,
        package=maker.package,
        lane=maker.lane,
        metadata=check_metadata(terms.metadata or {}),
        size_bytes=terms.size_bytes,
        created_at=now,
        used_at=now,
        expires_at=expires_at,
        ttl_ms=expires_at - now,
    )


def expiry(ttl_s: float, expires_at: int | None, now: int) -> int:
    """When it ends: at the time that was given, else after so many seconds.

    Raises:
        Refused: `E.RESOURCE.INVALID`, that is past or too far away.
    """
    if expires_at is None:
        if not 0 < ttl_s <= MAX_TTL_S:
            message = f"a resource lives more than 0 and at most {MAX_TTL_S} seconds"
            raise refused(errors.RESOURCE_INVALID, message, ttl_s)
        return now + max(1, int(ttl_s * 1000))
    if not now < expires_at <= now + MAX_TTL_S * 1000:
        message = f"a resource ends in the future, at most {MAX_TTL_S} seconds from now"
        raise refused(errors.RESOURCE_INVALID, message, expires_at)
    return expires_at
