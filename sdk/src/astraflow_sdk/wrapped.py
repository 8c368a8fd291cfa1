"""What a middleware knows of the node that its chain ends in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["WrappedNode"]


@dataclass(frozen=True, slots=True)
class WrappedNode:
    """The host of a chain. A secret in its parameters is a reference, not a value."""

    type: str
    package: str
    version: str
    parameters: dict[str, Any] | None
    """What the host is given by `ctx.next()`; None if it is large, or if a parameter of it has no value."""
    input_sha256: str | None
    """The same for the same type, package version and input."""

    @classmethod
    def from_frame(cls, told: Mapping[str, Any]) -> WrappedNode:
        package = told["package"]
        return cls(
            told["node_type"],
            package["name"],
            package["version"],
            told.get("parameters"),
            told.get("input_sha256"),
        )
