"""The edges of a flow, and the values of its nodes as JSON.

A port that is given as a parameter becomes an edge to the port of that parameter. Inside of a value, or where the
parameter has no port, it becomes an expression, with an edge of pure order where none leads there yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import UNSET

from astraflow.builder import formulas
from astraflow.builder.formulas import Formula, member
from astraflow.builder.node_catalog import NodeShape, did_you_mean
from astraflow.builder.nodes import FlowNode, NodePort
from astraflow.builder.settings import shown_fields
from astraflow.core import errors
from astraflow.core.workflow.core_manifest import IF_TYPE, SWITCH_TYPE
from astraflow.core.workflow.ports import PortSpec

if TYPE_CHECKING:
    from astraflow.builder.node_catalog import NodeCatalog


class Wiring:
    """Writes the edges of one document."""

    def __init__(self, document: dict[str, Any], catalog: NodeCatalog | None) -> None:
        self._document = document
        self._catalog = catalog
        edges = document.get("edges") or ()
        self._known: Final = {_key(edge) for edge in edges}
        self._pairs: Final = {_pair(edge) for edge in edges}

    # -- edges ------------------------------------------------------------------------------

    def connect(self, source: FlowNode | NodePort, target: object) -> None:
        """Edges for `source >> target`. Raises: Refused."""
        if isinstance(target, list | tuple):
            for one in target:
                self.connect(source, one)
        elif isinstance(target, FlowNode):
            port = None if isinstance(source, FlowNode) else source.key
            self._add(source, port, target, None)
        elif isinstance(target, NodePort):
            read = source.key if isinstance(source, NodePort) else self._only_output(source).key
            self._check(target, "inputs")
            self._add(source, read, target.node, target.key)
        else:
            raise TypeError(f"an edge leads to a node, a port or a list of them, not to {target!r}")

    def _add(
        self, source: FlowNode | NodePort, read: str | None, target: FlowNode, write: str | None
    ) -> None:
        node = source if isinstance(source, FlowNode) else source.node
        for one in (node, target):
            if one.flow.wiring is not self:
                _refuse(f"{one!r} is a node of another flow", errors.WORKFLOW_UNKNOWN_NODE)
        if isinstance(source, NodePort):
            self._check(source, "outputs")
        edge: dict[str, Any] = {"source": _end(node, read), "target": _end(target, write)}
        if isinstance(source, NodePort) and source.condition is not None:
            edge["when"] = source.condition
        if _key(edge) not in self._known:
            self._known.add(_key(edge))
            self._pairs.add(_pair(edge))
            self._document.setdefault("edges", []).append(edge)

    # -- ports ------------------------------------------------------------------------------

    def check_port(self, node: FlowNode, key: str) -> None:
        """Raises: Refused, if the node has no port of this name."""
        shape = self._shape(node)
        if shape is None:
            return
        known = {**shape.inputs, **_outputs(node, shape)}
        if key not in known:
            message = f"{node!r} has no port {key!r}{did_you_mean(key, known)}"
            _refuse(message, errors.WORKFLOW_UNKNOWN_PORT)

    def _check(self, port: NodePort, side: str) -> PortSpec | None:
        """Raises: Refused, if the port is not on this side of its node."""
        shape = self._shape(port.node)
        if shape is None:
            return None
        known = shape.inputs if side == "inputs" else _outputs(port.node, shape)
        if port.key not in known:
            what = side.removesuffix("s")
            message = f"{port.node!r} has no {what} {port.key!r}{did_you_mean(port.key, known)}"
            _refuse(message, errors.WORKFLOW_UNKNOWN_PORT)
        return known[port.key]

    def _shape(self, node: FlowNode) -> NodeShape | None:
        # A node that describes its own ports, or that was read from a file, need not be known.
        if self._catalog is None or "ui" in node.fields:
            return None
        return self._catalog.get(node.type)

    def _only_output(self, node: FlowNode) -> NodePort:
        shape = self._shape(node)
        ports = [] if shape is None else shape.data_outputs()
        if len(ports) != 1:
            names = ", ".join(repr(port.key) for port in ports)
            said = f"name one of its ports: {names}" if names else "it has no port with a value"
            _refuse(f"{node!r} cannot be used as a value: {said}", errors.WORKFLOW_UNKNOWN_PORT)
        return NodePort(node, ports[0].key)

    def output_end(self, source: FlowNode | NodePort) -> dict[str, str]:
        """What an output of the run reads. Raises: Refused."""
        port = self._only_output(source) if isinstance(source, FlowNode) else source
        self._check(port, "outputs")
        return _end(port.node, port.key)

    # -- values -----------------------------------------------------------------------------

    def write_parameters(self, node: FlowNode, parameters: Mapping[str, Any]) -> None:
        """Give a node its parameters. Raises: Refused."""
        shape = self._shape(node)
        chosen = {name: value for name, value in parameters.items() if value is not UNSET}
        for name in chosen:  # all of them before the first edge is written
            _check_parameter(node, shape, name)
        for name, value in chosen.items():
            if not self._wire(node, shape, name, value):
                written = node.fields.setdefault("parameters", {})
                written[name] = self.plain(value, node)

    def _wire(self, node: FlowNode, shape: NodeShape | None, name: str, value: object) -> bool:
        """Whether edges bring the value of a parameter."""
        given = value if isinstance(value, list | tuple) else [value]
        sources = [one for one in given if isinstance(one, FlowNode | NodePort)]
        if not sources or len(sources) < len(given):
            return False
        target = PortSpec(name, "data") if shape is None else shape.input_for(name)
        if target is None or (len(sources) > 1 and not target.multiple):
            return False
        for source in sources:
            port = self._only_output(source) if isinstance(source, FlowNode) else source
            self._add(port, port.key, node, target.key)
        return True

    def plain(self, value: Any, reader: FlowNode | None = None) -> Any:
        """A value as JSON. `reader`: the node whose parameter it is."""

        def convert(one: Any) -> Any:
            if isinstance(one, msgspec.Struct):
                return self.plain(shown_fields(one), reader)
            if isinstance(one, msgspec.Raw):
                return msgspec.json.decode(one)
            if isinstance(one, FlowNode) and reader is None:
                return one.id
            if isinstance(one, FlowNode | NodePort) and reader is not None:
                return f"={self._read(one, reader).text}"
            raise TypeError(f"not a JSON value, a port or an expression: {one!r}")

        return formulas.plain(value, convert)

    def _read(self, source: FlowNode | NodePort, reader: FlowNode) -> Formula:
        """An expression that reads a port, and an edge that makes the reader wait for it."""
        port = self._only_output(source) if isinstance(source, FlowNode) else source
        spec = self._check(port, "outputs") or PortSpec(port.key, "data", (port.key,))
        if spec.kind == "control" or spec.unwrap is not None:
            _refuse(
                f"{port!r} cannot stand inside of a value: give it as a parameter of its own, or write an expression",
                errors.WORKFLOW_UNKNOWN_PORT,
            )
        is_plain = spec.kind == "data" and spec.case is None and port.condition is None
        if not is_plain:
            self._add(port, port.key, reader, None)
        elif (port.node.id, reader.id) not in self._pairs:
            self._add(port.node, None, reader, None)
        formula = self.formula_of(port.node)
        if spec.kind == "error":
            return formula.error
        return Formula(formula.results.text + "".join(map(member, spec.path)), is_whole=True)

    def formula_of(self, node: FlowNode) -> Formula:
        """`nodes.LABEL`."""
        return Formula(f"nodes{member(node.label)}", is_whole=True)


def _outputs(node: FlowNode, shape: NodeShape) -> dict[str, PortSpec]:
    """The outputs of a type, and of a node that chooses its cases."""
    outputs = dict(shape.outputs)
    parameters = node.fields.get("parameters") or {}
    cases: list[Any] = []
    if node.type == IF_TYPE:
        cases = ["true", "false"]
    elif node.type == SWITCH_TYPE:
        cases = [one.get("port") for one in parameters.get("cases") or () if isinstance(one, dict)]
        cases.append(parameters.get("default"))
    for case in cases:
        if isinstance(case, str):
            outputs[case] = PortSpec(case, "data", ("value",), case=case)
    return outputs


def _check_parameter(node: FlowNode, shape: NodeShape | None, name: str) -> None:
    known = None if shape is None else shape.parameters
    if known is not None and name not in known:
        message = f"{node!r} has no parameter {name!r}{did_you_mean(name, known)}"
        _refuse(message, errors.WORKFLOW_PARAMETER)


def _end(node: FlowNode, port: str | None) -> dict[str, str]:
    return {"node": node.id} if port is None else {"node": node.id, "port": port}


def _pair(edge: Mapping[str, Any]) -> tuple[str, str]:
    return edge["source"]["node"], edge["target"]["node"]


def _key(edge: Mapping[str, Any]) -> tuple[str | None, ...]:
    source, target = edge["source"], edge["target"]
    return (*_pair(edge), source.get("port"), target.get("port"), edge.get("when"))


def _refuse(message: str, code: errors.Code) -> NoReturn:
    raise errors.Refused(code, message)
