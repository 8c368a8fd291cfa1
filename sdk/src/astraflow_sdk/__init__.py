"""The API for node authors: `@node`, `Context`, `artifact`, `resource`, and errors by category."""

from __future__ import annotations

from astraflow_sdk import artifact, resource
from astraflow_sdk.context import Context
from astraflow_sdk.errors import (
    CallFailed,
    Cancelled,
    ConfigurationError,
    DataQualityError,
    InfrastructureError,
    NodeError,
    UserCodeError,
)
from astraflow_sdk.handles import ResourceError, ResourceHandle
from astraflow_sdk.nodes import NodeInfo, node
from astraflow_sdk.wrapped import WrappedNode

__all__ = [
    "CallFailed",
    "Cancelled",
    "ConfigurationError",
    "Context",
    "DataQualityError",
    "InfrastructureError",
    "NodeError",
    "NodeInfo",
    "ResourceError",
    "ResourceHandle",
    "UserCodeError",
    "WrappedNode",
    "artifact",
    "node",
    "resource",
]
