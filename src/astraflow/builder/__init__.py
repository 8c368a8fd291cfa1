"""The workflow builder: Python that writes the JSON of a workflow.

from astraflow.builder import Flow, core

flow = Flow("Greet")
name = flow.input("name", {"type": "string"}, default="Ada")
text = core.template(flow, "Write", template="Hello, {{name}}!", values={"name": name})
core.log(flow, "Say", message=text["text"])
print(flow.to_json().decode())
"""

from __future__ import annotations

from astraflow.builder import core
from astraflow.builder.flow import Flow
from astraflow.builder.formulas import Formula, call, expr
from astraflow.builder.node_catalog import (
    NodeCatalog,
    core_catalog,
    manifest_catalog,
    server_catalog,
)
from astraflow.builder.nodes import FlowNode, NodePort
from astraflow.builder.values import case, secret
from astraflow.core.workflow.definition import (
    Affinity,
    Approval,
    BackoffSpec,
    CallSpec,
    ContainerSpec,
    CronTrigger,
    ManualTrigger,
    MapOver,
    PackageRef,
    Position,
    ResourceRef,
    ResourcesSpec,
    Retry,
    Signal,
    WaitSpec,
    WebhookTrigger,
    WorkerHints,
    WorkflowTrigger,
)

__all__ = [
    "Affinity",
    "Approval",
    "BackoffSpec",
    "CallSpec",
    "ContainerSpec",
    "CronTrigger",
    "Flow",
    "FlowNode",
    "Formula",
    "ManualTrigger",
    "MapOver",
    "NodeCatalog",
    "NodePort",
    "PackageRef",
    "Position",
    "ResourceRef",
    "ResourcesSpec",
    "Retry",
    "Signal",
    "WaitSpec",
    "WebhookTrigger",
    "WorkerHints",
    "WorkflowTrigger",
    "call",
    "case",
    "core",
    "core_catalog",
    "expr",
    "manifest_catalog",
    "secret",
    "server_catalog",
]
