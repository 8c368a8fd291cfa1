"""The fields of a node beside its parameters, by the names of `NodeSpec`, and how they become JSON.

The structs of the definition are the model; this is a way to write them from Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import msgspec

from astraflow.builder.formulas import Formula
from astraflow.core.workflow.definition import (
    Affinity,
    Approval,
    CallSpec,
    ContainerSpec,
    MapOver,
    NodeSpec,
    PackageRef,
    Position,
    ResourceRef,
    ResourcesSpec,
    Retry,
    Signal,
    Ui,
    WaitSpec,
    WorkerHints,
)

if TYPE_CHECKING:
    from astraflow.builder.nodes import FlowNode

Json = Mapping[str, Any]


class NodeSettings(TypedDict, total=False):
    """What `FlowNode.set` takes: each as its struct, or as plain JSON."""

    package: PackageRef | Json
    position: Position | Json
    schema: Json
    ui: Ui | Json
    runtime: str
    worker_hints: WorkerHints | Json
    retry: Retry | Json
    timeout_seconds: float
    concurrency_key: str
    affinity: Affinity | Json
    resources: ResourcesSpec | Json
    resource_refs: Sequence[ResourceRef | Json]
    on_resource_lost: Literal["fail", "rebuild"]
    middlewares: Sequence[FlowNode | str]
    on_failure: FlowNode | str
    on_cancel: FlowNode | str
    when: str | Formula
    disabled: bool
    join: Literal["all", "any", "all_done"]
    priority: int
    map: MapOver | Json
    container: ContainerSpec | Json
    call: CallSpec | Json
    wait: WaitSpec | Json
    approval: Approval | Json
    signal: Signal | Json


_OWN: Final = frozenset({"id", "type", "label", "parameters", "results", "parent"})
"""What the builder writes itself, and what the scheduler writes."""
SETTINGS: Final = {
    field.name: field.encode_name
    for field in msgspec.structs.fields(NodeSpec)
    if field.name not in _OWN
}
"""From the names in Python to those in JSON."""


def shown_fields(value: msgspec.Struct) -> dict[str, Any]:
    """A struct of the definition as JSON, without the fields that are as they would be if left out."""
    shown: dict[str, Any] = {}
    config = type(value).__struct_config__
    if config.tag is not None:
        shown[str(config.tag_field)] = config.tag
    for field in msgspec.structs.fields(value):
        one = getattr(value, field.name)
        has_factory = field.default_factory is not msgspec.NODEFAULT
        default = field.default_factory() if has_factory else field.default
        if one != default:
            shown[field.encode_name] = one
    return shown
