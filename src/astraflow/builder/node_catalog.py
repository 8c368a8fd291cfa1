"""The node types that a builder knows: their ports and parameters, from manifests or from a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.contract.packages import NodeType
from astraflow.core.workflow import Manifest, core_manifest, decode_manifest
from astraflow.core.workflow.definition import Ui
from astraflow.core.workflow.ports import DONE, ERROR, NO_PORTS, TRIGGER, PortCompiler, PortSpec
from astraflow.core.workflow.problems import Problems

_ui: Final = msgspec.json.Decoder(Ui)


class NodeShape(msgspec.Struct, frozen=True):
    """What can be connected to a node of a type, and what its parameters are called."""

    type: str
    inputs: Mapping[str, PortSpec]
    outputs: Mapping[str, PortSpec]
    parameters: frozenset[str] | None
    """None: it takes any."""

    def input_for(self, parameter: str) -> PortSpec | None:
        """The port that writes a parameter, if there is one."""
        for port in self.inputs.values():
            if port.kind == "data" and port.path == (parameter,):
                return port
        return None

    def data_outputs(self) -> list[PortSpec]:
        return [port for port in self.outputs.values() if port.kind == "data"]


class NodeCatalog:
    """Node types by name."""

    def __init__(self, shapes: Iterable[NodeShape]) -> None:
        self._shapes: Final = {shape.type: shape for shape in shapes}

    def get(self, node_type: str) -> NodeShape:
        """Raises: Refused, with the nearest name, if there is no such type."""
        found = self._shapes.get(node_type)
        if found is None:
            raise errors.Refused(
                errors.WORKFLOW_UNKNOWN_TYPE,
                f"no known package has a node of this type: {node_type!r}"
                + did_you_mean(node_type, self._shapes),
            )
        return found

    def types(self) -> list[str]:
        return sorted(self._shapes)

    def __or__(self, other: NodeCatalog) -> NodeCatalog:
        """The node types of both; those of the other count more."""
        return NodeCatalog({**self._shapes, **other._shapes}.values())


@cache  # nothing in it changes
def core_catalog() -> NodeCatalog:
    """Package `core`, which every server has."""
    return manifest_catalog([core_manifest()])


def manifest_catalog(manifests: Iterable[Manifest | bytes]) -> NodeCatalog:
    """The node types of packages whose manifests are at hand; bytes are the text of a `manifest.json`.

    Raises: InvalidDocument, if one is no manifest.
    """
    read = [decode_manifest(one) if isinstance(one, bytes) else one for one in manifests]
    return NodeCatalog(
        _shape(node.type, node.ui, _schema(node.schema)) for one in read for node in one.body.nodes
    )


def server_catalog(types: Iterable[NodeType]) -> NodeCatalog:
    """The node types of a server: `server_catalog(client.catalog.iterate())`."""
    return NodeCatalog(
        _shape(one.type, _ui.decode(msgspec.json.encode(one.ui)), one.schema.get("parameters"))
        for one in types
    )


def did_you_mean(given: str, known: Collection[str]) -> str:
    near = get_close_matches(given, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _schema(given: Mapping[str, msgspec.Raw] | None) -> Any:
    raw = (given or {}).get("parameters")
    return None if raw is None else msgspec.json.decode(raw)


def _shape(node_type: str, ui: Ui | None, schema: Any) -> NodeShape:
    # Whoever publishes a manifest has them checked; a port that cannot be compiled is no port here.
    ports = NO_PORTS if ui is None else PortCompiler(Problems()).compile(ui, "")
    return NodeShape(
        type=node_type,
        inputs={"trigger": TRIGGER, **(ports.inputs or {})},
        outputs={"done": DONE, "error": ERROR, **(ports.outputs or {})},
        parameters=_names(schema),
    )


def _names(schema: Any) -> frozenset[str] | None:
    """The parameters that a schema names; None if others are welcome, or none is named."""
    names = schema.get("properties") if isinstance(schema, dict) else None
    is_open = isinstance(schema, dict) and (
        schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    )
    return None if not names or is_open else frozenset(names)
