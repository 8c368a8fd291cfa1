"""Values that nodes are given: references to secrets, and the cases of a switch."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from astraflow.builder.formulas import Formula
from astraflow.builder.nodes import FlowNode, NodePort
from astraflow.core.workflow.secret_refs import KEY

Given = Formula | NodePort | FlowNode
"""What may stand in the place of a parameter of any type: it has its value when the node runs."""


def secret(name: str) -> dict[str, Any]:
    """A secret of the server in the place of a value. Only the handler of the node sees it."""
    return {KEY: {"name": name}}


def case(
    port: str, *, when: Formula | str | UnsetType = UNSET, equals: Any = UNSET
) -> dict[str, Any]:
    """A case of `core.switch`: chosen if `when` holds, or if the value `equals` this."""
    shown: dict[str, Any] = {"port": port}
    if isinstance(when, str):
        shown["when"] = when if when.startswith("=") else f"={when}"
    elif isinstance(when, Formula):
        shown["when"] = when
    if equals is not UNSET:
        shown["equals"] = equals
    return shown
