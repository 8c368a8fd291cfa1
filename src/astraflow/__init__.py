"""AstraFlow: durable workflows of nodes, executed by workers on any number of machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astraflow.builder import Flow
    from astraflow.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "Flow", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded when asked for: no process of the engine needs a client, and it takes a tenth of a second.
    if name in ("AsyncClient", "Client"):
        from astraflow import client

        return getattr(client, name)
    if name == "Flow":
        from astraflow.builder import Flow

        return Flow
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
