"""The Python client: `Client` and `AsyncClient`, typed, with streams that resume by themselves."""

from __future__ import annotations

from astraflow.client.asynchronous import AsyncClient
from astraflow.client.blocking import Client
from astraflow.client.endpoint import Endpoint, find_endpoint
from astraflow.client.handles import AsyncRunHandle, RunFailed, RunHandle
from astraflow.client.models import (
    Artifact,
    Event,
    LogLine,
    Me,
    Node,
    NodeDetail,
    Page,
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
    "AsyncClient",
    "AsyncRunHandle",
    "Client",
    "Endpoint",
    "Event",
    "LogLine",
    "Me",
    "Node",
    "NodeDetail",
    "Page",
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
