"""`Flow`: writes the JSON of a workflow from Python, and reads it back.

Rule 1: the document is the only state. What the builder does not know stays in it as it was.
Rule 2: the same calls give the same document: ids follow from the name of the flow and the labels of its nodes.
Rule 3: what can be known to be wrong is refused where it is written: an unknown type, port, parameter or setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from msgspec import UNSET

from astraflow.builder.formulas import Formula, member
from astraflow.builder.node_catalog import NodeCatalog, core_catalog, did_you_mean
from astraflow.builder.nodes import FlowNode, NodePort
from astraflow.builder.wiring import Wiring
from astraflow.core import errors
from astraflow.core.ids import uuid5
from astraflow.core.workflow import Manifest, StaticCatalog, core_manifest, decode_definition
from astraflow.core.workflow.canonical import canonical
from astraflow.core.workflow.core_manifest import CONTAINER_TYPE
from astraflow.core.workflow.definition import TriggerSpec
from astraflow.core.workflow.problems import DefinitionProblem
from astraflow.core.workflow.validation import validate

_NAMESPACE: Final = "astraflow.builder"


class Flow:
    """A workflow that is being written."""

    def __init__(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        tags: Iterable[str] = (),
        priority: int | None = None,
        timeout_seconds: float | None = None,
        catalog: NodeCatalog | None = None,
        checks_types: bool = True,
    ) -> None:
        """`id`: by default it follows from the name. `catalog`: the node types that are known; by default those of
        package `core`. Without `checks_types`, any type, port and parameter is taken."""
        metadata = {"name": name, "description": description, "tags": list(tags)}
        document: dict[str, Any] = {
            "id": id or uuid5(_NAMESPACE, name),
            "metadata": {key: value for key, value in metadata.items() if value},
            "priority": priority,
            "timeoutSeconds": timeout_seconds,
        }
        self._open({key: value for key, value in document.items() if value is not None})
        self._document.update(nodes=[], edges=[])
        self._know(catalog, checks_types)

    def _open(self, document: dict[str, Any]) -> None:
        self._document = document
        self._container: FlowNode | None = None
        self._labels = {one.get("label") for one in document.get("nodes") or ()}

    def _know(self, catalog: NodeCatalog | None, checks_types: bool) -> None:
        self._catalog = (catalog or core_catalog()) if checks_types else None
        self.wiring = Wiring(self._document, self._catalog)

    @classmethod
    def from_json(
        cls,
        document: bytes | str | Mapping[str, Any],
        *,
        catalog: NodeCatalog | None = None,
        checks_types: bool = True,
    ) -> Flow:
        """A flow of a definition. Everything in it stays as it is until it is changed.

        Raises: InvalidDocument, if it is none.
        """
        raw = document.encode() if isinstance(document, str) else document
        if not isinstance(raw, bytes):
            raw = msgspec.json.encode(raw)
        flow = cls.__new__(cls)
        flow._open(decode_definition(raw).document())
        flow._know(catalog, checks_types)
        return flow

    # -- what it is ---------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return str(self._document["id"])

    def document(self) -> dict[str, Any]:
        """The definition as plain JSON values; yours to change."""
        copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self._document))
        return copy

    def to_json(self) -> bytes:
        """The definition in its canonical text: sorted keys, as `astra workflows export` writes it."""
        return canonical(self._document)

    def problems(self, manifests: Iterable[Manifest] = ()) -> list[DefinitionProblem]:
        """All that a server with these packages, beside `core`, would refuse.

        Raises: InvalidDocument, if its shape is wrong.
        """
        catalog = StaticCatalog([core_manifest(), *manifests])
        return validate(decode_definition(msgspec.json.encode(self._document)), catalog)

    def nodes(self) -> list[FlowNode]:
        return [FlowNode(self, fields) for fields in self._document["nodes"]]

    def __getitem__(self, name: str) -> FlowNode:
        """The node with this label or id. Raises: KeyError."""
        found = [one for one in self.nodes() if name in (one.fields.get("label"), one.id)]
        if not found:
            known = [one.label for one in self.nodes()]
            raise KeyError(f"no node {name!r}{did_you_mean(name, known)}")
        return found[0]

    # -- inputs, outputs, triggers ------------------------------------------------------------

    def input(
        self,
        name: str,
        schema: Mapping[str, Any] | None = None,
        *,
        default: Any = UNSET,
        required: bool = False,
        description: str | None = None,
    ) -> Formula:
        """Declare an input of the run; the formula reads it."""
        declared: dict[str, Any] = {} if schema is None else {"schema": dict(schema)}
        if default is not UNSET:
            declared["default"] = self.wiring.plain(default)
        if required:
            declared["required"] = True
        if description is not None:
            declared["description"] = description
        self._document.setdefault("inputs", {})[name] = declared
        return Formula(f"inputs{member(name)}", is_whole=True)

    def output(
        self,
        name: str,
        source: FlowNode | NodePort,
        schema: Mapping[str, Any] | None = None,
        *,
        description: str | None = None,
    ) -> None:
        """Declare an output of the run: what a port reads when the run has ended. Raises: Refused."""
        declared: dict[str, Any] = {"source": self.wiring.output_end(source)}
        if schema is not None:
            declared["schema"] = dict(schema)
        if description is not None:
            declared["description"] = description
        self._document.setdefault("outputs", {})[name] = declared

    def trigger(self, trigger: TriggerSpec | Mapping[str, Any]) -> None:
        """Start runs by a schedule, a webhook or the end of another workflow, once the workflow is saved."""
        self._document.setdefault("triggers", []).append(self.wiring.plain(trigger))

    # -- nodes ----------------------------------------------------------------------------------

    def node(
        self,
        type: str,
        label: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> FlowNode:
        """Add a node. A parameter is a JSON value, an expression, or a port of another node: then an edge brings it.

        Raises: Refused, if the type or a parameter is not known, or the label is taken.
        """
        if self._catalog is not None:
            self._catalog.get(type)
        if label in self._labels:
            raise errors.Refused(
                errors.WORKFLOW_DUPLICATE_ID, f"two nodes have the label {label!r}"
            )
        fields: dict[str, Any] = {
            "id": id or uuid5(_NAMESPACE, self.id, label),
            "type": type,
            "label": label,
        }
        if self._container is not None:
            fields["parent"] = self._container.id
        node = FlowNode(self, fields)
        self.wiring.write_parameters(node, parameters or {})
        self._document["nodes"].append(fields)
        self._labels.add(label)
        return node

    @contextmanager
    def container(
        self, label: str, parameters: Mapping[str, Any] | None = None
    ) -> Iterator[FlowNode]:
        """Add a container; the nodes that are added in the `with` block are inside of it."""
        outside, node = self._container, self.node(CONTAINER_TYPE, label, parameters)
        self._container = node
        try:
            yield node
        finally:
            self._container = outside

    def edge(
        self,
        source: FlowNode | NodePort,
        target: FlowNode | NodePort,
        *,
        when: str | Formula | None = None,
    ) -> None:
        """The same as `source >> target`, with a condition. Raises: Refused."""
        if when is not None:
            port = source["done"] if isinstance(source, FlowNode) else source
            source = port.when(when)
        self.wiring.connect(source, target)

    def __repr__(self) -> str:
        return f"<Flow {self.id} with {len(self._document['nodes'])} nodes>"
