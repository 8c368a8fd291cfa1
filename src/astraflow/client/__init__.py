"""The Python client: `Client` and `AsyncClient`, typed, with streams that resume by themselves."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient
    from astraflow.client.blocking import Client
    from astraflow.client.endpoint import Endpoint, find_endpoint
    from astraflow.client.handles import AsyncRunHandle, RunFailed, RunHandle
    from astraflow.client.models import (
        Artifact,
        ArtifactLink,
        Event,
        LogLine,
        Me,
        Node,
        NodeDetail,
        NodeType,
        Package,
        PackageSummary,
        PackageVersion,
        Page,
        Resource,
        Run,
        RunSummary,
        TaskError,
        WaitingFor,
        Worker,
        Workflow,
        WorkflowSummary,
    )

__all__ = [
    "Artifact",
    "ArtifactLink",
    "AsyncClient",
    "AsyncRunHandle",
    "Client",
    "Endpoint",
    "Event",
    "LogLine",
    "Me",
    "Node",
    "NodeDetail",
    "NodeType",
    "Package",
    "PackageSummary",
    "PackageVersion",
    "Page",
    "Resource",
    "Run",
    "RunFailed",
    "RunHandle",
    "RunSummary",
    "TaskError",
    "WaitingFor",
    "Worker",
    "Workflow",
    "WorkflowSummary",
    "find_endpoint",
]

_HOMES: Final = {
    "AsyncClient": "asynchronous",
    "AsyncRunHandle": "handles",
    "Client": "blocking",
    "Endpoint": "endpoint",
    "RunFailed": "handles",
    "RunHandle": "handles",
    "find_endpoint": "endpoint",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: whoever wants to know where the server is needs no HTTP for it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models')}"), name)
