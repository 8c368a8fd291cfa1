"""Nodes and ports of a flow: what `>>` connects and what parameters refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from astraflow.builder.formulas import Formula, condition_of
from astraflow.builder.node_catalog import did_you_mean
from astraflow.builder.settings import SETTINGS, NodeSettings
from astraflow.core import errors

if TYPE_CHECKING:
    from astraflow.builder.flow import Flow

T = TypeVar("T", bound="FlowNode | NodePort | list[Any] | tuple[Any, ...]")


class FlowNode:
    """A node of a flow. It is a view of the node in the document: there is no other state."""

    __slots__ = ("_flow", "fields")

    def __init__(self, flow: Flow, fields: dict[str, Any]) -> None:
        self._flow = flow
        self.fields = fields
        """The node in the document, with fields that the builder does not know."""

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def label(self) -> str:
        """What it is called; without a label, its id."""
        return str(self.fields.get("label") or self.id)

    @property
    def type(self) -> str:
        return str(self.fields["type"])

    @property
    def flow(self) -> Flow:
        return self._flow

    def __getitem__(self, port: str) -> NodePort:
        """A port: an output to the left of `>>` and as a parameter, an input to the right of it.

        Raises: Refused, if the node has no such port.
        """
        self._flow.wiring.check_port(self, port)
        return NodePort(self, port)

    def out(self, port: str) -> NodePort:
        """The same as `node[port]`."""
        return self[port]

    @property
    def error(self) -> NodePort:
        """The port that leads on when the node fails, and carries its error."""
        return self["error"]

    @property
    def results(self) -> Formula:
        """Its results in an expression of a node that comes after it."""
        return self._flow.wiring.formula_of(self).results

    def set(self, **settings: Unpack[NodeSettings]) -> FlowNode:
        """Write fields of the node beside its parameters: `retry`, `timeout_seconds`, `when`, `join`, `map`, …

        Raises: Refused, with the nearest name, if there is no such field.
        """
        for name, value in settings.items():
            if name not in SETTINGS:
                message = f"a node has no setting {name!r}{did_you_mean(name, SETTINGS)}"
                raise errors.Refused(errors.WORKFLOW_UNKNOWN_FIELD, message)
            if name == "when":
                assert isinstance(value, str | Formula)
                value = condition_of(value)
            self.fields[SETTINGS[name]] = self._flow.wiring.plain(value)
        return self

    def __rshift__(self, target: T) -> T:
        self._flow.wiring.connect(self, target)
        return target

    def __rrshift__(self, sources: Iterable[FlowNode | NodePort]) -> FlowNode:
        for source in sources:
            self._flow.wiring.connect(source, self)
        return self

    def __repr__(self) -> str:
        return f"<{self.type} {self.label!r}>"


class NodePort:
    """A port of a node, and the condition of the edges from it."""

    __slots__ = ("condition", "key", "node")

    def __init__(self, node: FlowNode, key: str, condition: str | None = None) -> None:
        self.node = node
        self.key = key
        self.condition = condition

    def when(self, condition: str | Formula) -> NodePort:
        """The port with a condition: edges from it lead on only if it holds. It reads `results` or `error`.

        Raises: Refused, if it is no expression.
        """
        return NodePort(self.node, self.key, condition_of(condition))

    def __rshift__(self, target: T) -> T:
        self.node.flow.wiring.connect(self, target)
        return target

    def __rrshift__(self, sources: Iterable[FlowNode | NodePort]) -> NodePort:
        for source in sources:
            self.node.flow.wiring.connect(source, self)
        return self

    def __repr__(self) -> str:
        return f"{self.node!r}[{self.key!r}]"
