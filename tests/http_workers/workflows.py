"""Workflows whose nodes go to one pool, and the pools themselves."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

from tests.http_workers.foreign import ForeignPool
from tests.processes.system import System


def node(pool: str, type: str = "core.noop", **more: Any) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "type": type,
        "label": "n",
        "parameters": {"text": "hello"},
        "workerHints": {"labels": {"pool": pool}},
        **more,
    }


def workflow(*nodes: dict[str, Any], edges: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "metadata": {"name": "pushed"},
        "nodes": list(nodes),
        "edges": edges or [],
    }


def put_pool(
    system: System, pool: ForeignPool, name: str | None = None, *, wanted: int = 200, **more: Any
) -> str:
    """Make a pool of the scheduler for a URL; its name."""
    name = name or f"p{uuid.uuid4().hex[:8]}"
    body = {"url": pool.url, "packages": [{"name": "core"}], **more}
    answer: httpx.Response = system.rest.http.put(f"/api/v1/pools/{name}", json=body)
    assert answer.status_code == wanted, answer.text
    return name
