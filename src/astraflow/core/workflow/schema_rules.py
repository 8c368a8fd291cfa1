"""What schemas ask of a definition: parameters that fit the schema of their node, and edges between types that fit.

The schemas are those of the node's type, or its own where it carries some. A schema of a package that is none is not
held against the author of a workflow: it was refused when the package was published, or is older than that rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.errors import WORKFLOW_EDGE_TYPE, WORKFLOW_PARAMETER, WORKFLOW_SCHEMA
from astraflow.core.workflow.maps import item_path
from astraflow.core.workflow.ports import TRIGGER
from astraflow.core.workflow.schema_costs import BadSchema
from astraflow.core.workflow.schema_shapes import Types, items_of, may_fit, types_at
from astraflow.core.workflow.value_schemas import (
    ValueSchema,
    Violation,
    compile_schema,
    find_schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from astraflow.core.errors import Code
    from astraflow.core.workflow.bindings import Path
    from astraflow.core.workflow.definition import NodeSpec, WorkflowSpec
    from astraflow.core.workflow.edge_rules import PlannedEdge
    from astraflow.core.workflow.node_rules import NodeRules
    from astraflow.core.workflow.ports import PortSpec
    from astraflow.core.workflow.problems import Problems

_MAX_REMEMBERED: Final = 1_024
"""Nodes with equal parameters are checked once; a graph of all different ones gains nothing."""
_TypesOf = Callable[[bytes, "PortSpec"], "Types | None"]
_BOOLEAN: Final[Types] = frozenset({"boolean"})
_OBJECT: Final[Types] = frozenset({"object"})


def check_schema(
    problems: Problems, pointer: str, raw: bytes, code: Code = WORKFLOW_SCHEMA
) -> bool:
    """Report what is wrong with a schema; whether nothing is."""
    try:
        compile_schema(raw)
    except BadSchema as error:
        problems.add(f"{pointer}{error.pointer}", code, error.message)
        return False
    return True


def check_node_schemas(
    problems: Problems, pointer: str, given: Mapping[str, Raw], code: Code = WORKFLOW_SCHEMA
) -> None:
    """Report what is wrong with the `schema` object of a node or a node type."""
    for side in ("parameters", "results"):
        raw = bytes(given.get(side, b"null"))
        if raw != b"null":
            check_schema(problems, f"{pointer}/{side}", raw, code)


def wired_paths(node: NodeSpec, links: Sequence[PlannedEdge]) -> tuple[Path, ...]:
    """The paths in the parameters of a node that its edges and the items of its map write."""
    paths = [link.write.path for link in links if link.write is not TRIGGER]
    target = None if node.map is None else item_path(node.map)
    return tuple(paths) if target is None else (*paths, target)


class SchemaRules:
    """Checks parameters when all edges are known, and edges as they come."""

    def __init__(self, workflow: WorkflowSpec, nodes: NodeRules, problems: Problems) -> None:
        self._workflow = workflow
        self._nodes = nodes
        self._problems = problems
        self._types: dict[tuple[_TypesOf, bytes, PortSpec], Types | None] = {}
        self._schemas: dict[bytes, ValueSchema | None] = {}
        self._known: dict[tuple[bytes, bytes, tuple[Path, ...]], list[Violation]] = {}

    def check_parameters(self, links: Sequence[Sequence[PlannedEdge]]) -> None:
        """Check what is authored; what the edges write is checked when they have."""
        texts, unsound, known = self._nodes.texts, self._nodes.unsound, self._schemas
        for place, (node, schemas) in enumerate(
            zip(self._workflow.nodes, self._nodes.schemas, strict=True)
        ):
            if node.schema is not None:
                check_node_schemas(self._problems, f"/nodes/{place}/schema", node.schema)
            raw = schemas.parameters
            if raw not in known:
                known[raw] = find_schema(raw)
            schema = known[raw]
            if schema is None or place in unsound:
                continue  # most node types take anything
            wired = wired_paths(node, links[place])
            for one in self._violations(schema, raw, texts[place], wired):
                pointer = f"/nodes/{place}/parameters{one.pointer}"
                self._problems.add(pointer, WORKFLOW_PARAMETER, one.message)

    def _violations(
        self, schema: ValueSchema, raw: bytes, text: bytes, wired: tuple[Path, ...]
    ) -> list[Violation]:
        key = (raw, text, wired)
        found = self._known.get(key)
        if found is None:
            found = schema.authored_violations(msgspec.json.decode(text), wired)
            if len(self._known) < _MAX_REMEMBERED:
                self._known[key] = found
        return found

    def check_edge(
        self, source: int, read: PortSpec, target: int, write: PortSpec, pointer: str
    ) -> None:
        """Report an edge whose ends can never fit."""
        given = self._cached(given_by, self._nodes.schemas[source].results, read)
        wanted = self._cached(wanted_by, self._nodes.schemas[target].parameters, write)
        if not may_fit(given, wanted):
            message = f"the edge brings {_named(given)}, and its target takes {_named(wanted)}"
            self._problems.add(pointer, WORKFLOW_EDGE_TYPE, message)

    def _cached(self, types_of: _TypesOf, raw: bytes, port: PortSpec) -> Types | None:
        key = (types_of, raw, port)
        if key not in self._types:
            self._types[key] = types_of(raw, port)
        return self._types[key]


def given_by(results: bytes, port: PortSpec) -> Types | None:
    """What an output port reads, if the schema of the results tells."""
    if port.kind == "control":
        return _BOOLEAN
    if port.kind == "error" or port.unwrap is not None:
        return None
    if not port.path:
        return _OBJECT
    schema = find_schema(results)
    return None if schema is None else types_at(schema.document, port.path)


def wanted_by(parameters: bytes, port: PortSpec) -> Types | None:
    """What an input port takes, if the schema of the parameters tells; of one that takes several, each of them."""
    schema = find_schema(parameters)
    if schema is None or port.kind != "data":
        return None
    look = items_of if port.multiple else types_at
    return look(schema.document, port.path)


def _named(types: Types | None) -> str:
    return " or ".join(sorted(types or ()))
