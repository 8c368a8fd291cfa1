"""Workflow definitions as JSON, for whatever asks a scheduler from outside."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

__all__ = ["link", "node", "workflow"]

Json = dict[str, Any]


def node(kind: str, label: str = "", **fields: Any) -> Json:
    named = {"label": label} if label else {}
    return {"id": str(uuid.uuid4()), "type": kind, **named, **fields}


def link(source: Json, target: Json, port: str | None = None) -> Json:
    """An edge; with a port, from and to the one of this name."""
    named = {} if port is None else {"port": port}
    return {"source": {"node": source["id"], **named}, "target": {"node": target["id"], **named}}


def workflow(*nodes: Json, edges: Iterable[Json] = (), **fields: Any) -> Json:
    return {"id": str(uuid.uuid4()), "nodes": list(nodes), "edges": list(edges), **fields}
