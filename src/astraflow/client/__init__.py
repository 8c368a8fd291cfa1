"""The Python client: `Client` and `AsyncClient`, typed, with streams that resume by themselves."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient, AsyncRunHandle
    from astraflow.client.blocking import Client, RunHandle
    from astraflow.client.endpoint import Endpoint, find_endpoint
    from astraflow.client.outcomes import RunFailed
    from astraflow.core.contract.base import Page
    from astraflow.core.contract.events import Event
    from astraflow.core.contract.node_results import NodeResults
    from astraflow.core.contract.packages import (
        NodeType,
        Package,
        PackageSummary,
        PackageVersion,
        Rollout,
    )
    from astraflow.core.contract.resources import ArtifactLink, Resource
    from astraflow.core.contract.runs import (
        Artifact,
        Attempt,
        ExecutedPackage,
        LogLine,
        Node,
        NodeDetail,
        Run,
        RunSummary,
        TaskError,
        WaitingFor,
    )
    from astraflow.core.contract.system import Me
    from astraflow.core.contract.tenants import Tenant
    from astraflow.core.contract.tokens import NewToken, Token
    from astraflow.core.contract.users import User
    from astraflow.core.contract.workers import Worker
    from astraflow.core.contract.workflows import Workflow, WorkflowSummary

__all__ = [
    "Artifact",
    "ArtifactLink",
    "AsyncClient",
    "AsyncRunHandle",
    "Attempt",
    "Client",
    "Endpoint",
    "Event",
    "ExecutedPackage",
    "LogLine",
    "Me",
    "NewToken",
    "Node",
    "NodeDetail",
    "NodeResults",
    "NodeType",
    "Package",
    "PackageSummary",
    "PackageVersion",
    "Page",
    "Resource",
    "Rollout",
    "Run",
    "RunFailed",
    "RunHandle",
    "RunSummary",
    "TaskError",
    "Tenant",
    "Token",
    "User",
    "WaitingFor",
    "Worker",
    "Workflow",
    "WorkflowSummary",
    "find_endpoint",
]

_CONTRACT: Final = "astraflow.core.contract"
_HOMES: Final = {
    "AsyncClient": "astraflow.client.asynchronous",
    "AsyncRunHandle": "astraflow.client.asynchronous",
    "Client": "astraflow.client.blocking",
    "RunHandle": "astraflow.client.blocking",
    "Endpoint": "astraflow.client.endpoint",
    "find_endpoint": "astraflow.client.endpoint",
    "RunFailed": "astraflow.client.outcomes",
    "Page": f"{_CONTRACT}.base",
    "Event": f"{_CONTRACT}.events",
    **dict.fromkeys(
        ("NodeType", "Package", "PackageSummary", "PackageVersion", "Rollout"),
        f"{_CONTRACT}.packages",
    ),
    **dict.fromkeys(("ArtifactLink", "Resource"), f"{_CONTRACT}.resources"),
    "NodeResults": f"{_CONTRACT}.node_results",
    "Me": f"{_CONTRACT}.system",
    **dict.fromkeys(("NewToken", "Token"), f"{_CONTRACT}.tokens"),
    "Tenant": f"{_CONTRACT}.tenants",
    "User": f"{_CONTRACT}.users",
    "Worker": f"{_CONTRACT}.workers",
    **dict.fromkeys(("Workflow", "WorkflowSummary"), f"{_CONTRACT}.workflows"),
}


def __getattr__(name: str) -> Any:
    # Imported on first use: finding the server does not need the HTTP library.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, f"{_CONTRACT}.runs")), name)
