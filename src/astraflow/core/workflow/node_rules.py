"""What each node of a definition must keep, and what it resolves to.

One pass over the nodes. A node without a problem gets its node type (pinned), its ports and its
parameters; a node with one is left out of what follows, so that a mistake is reported once and not
again by every edge that touches it.

A node type may be unknown to the catalog and still be planned: when the node carries its own ports
and names package and version, nothing is left to look up. The run then waits for a worker that has
the package (WORKFLOWS: "a run may be submitted before any worker is there").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from astraflow.core.errors import (
    PKG_YANKED,
    WORKFLOW_BAD_ID,
    WORKFLOW_BAD_TEXT,
    WORKFLOW_DUPLICATE_ID,
    WORKFLOW_UNKNOWN_PACKAGE,
    WORKFLOW_UNKNOWN_TYPE,
)
from astraflow.core.workflow.catalog import CatalogEntry, Miss
from astraflow.core.workflow.choices import CHOICE_TYPES, cases_of
from astraflow.core.workflow.limits import MAX_KEY_CHARS, MAX_LABEL_CHARS
from astraflow.core.workflow.manifest_rules import NODE_TYPE, is_package_name
from astraflow.core.workflow.node_schemas import NO_SCHEMAS, NodeSchemas, schemas_in
from astraflow.core.workflow.parameters import ParameterStore
from astraflow.core.workflow.ports import NO_PORTS, PortCompiler, Ports
from astraflow.core.workflow.type_lookup import TypeKey, find_entry, least_versions_of
from astraflow.core.workflow.versions import parse_version

if TYPE_CHECKING:
    from astraflow.core.workflow.catalog import Catalog
    from astraflow.core.workflow.definition import NodeSpec, WorkflowSpec
    from astraflow.core.workflow.problems import Problems
    from astraflow.core.workflow.settings_rules import SettingsRules

CANONICAL_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
UUID: Final = re.compile(CANONICAL_UUID.pattern, re.IGNORECASE | re.ASCII)


class NodeRules:
    """Checks all nodes; afterwards the lists say, for each place, what the node is."""

    def __init__(
        self, workflow: WorkflowSpec, catalog: Catalog, settings: SettingsRules, problems: Problems
    ) -> None:
        self._nodes = workflow.nodes
        self._catalog = catalog
        self._problems = problems
        self._compiler = PortCompiler(problems)
        self._settings = settings
        self._known: dict[TypeKey, CatalogEntry | Miss | None] = {}
        self._least = least_versions_of(workflow.runtimes.values())
        self.parameters = ParameterStore(problems)
        self.index: dict[str, int] = {}
        self.types: list[CatalogEntry | None] = []
        self.ports: list[Ports] = []
        self.texts: list[bytes] = []
        self.schemas: list[NodeSchemas] = []
        self.unsound: set[int] = set()
        """Nodes whose parameters were refused as such."""
        self.cases: dict[int, frozenset[str]] = {}
        """The cases of the nodes that choose, by place: each is an output port."""

    def check_all(self) -> None:
        problems, index, check_settings = self._problems, self.index, self._settings.check
        take, types, ports, texts = self.parameters.take, self.types, self.ports, self.texts
        schemas = self.schemas
        is_canonical = CANONICAL_UUID.fullmatch
        all_canonical = True
        for place, node in enumerate(self._nodes):
            if not is_canonical(node.id):
                all_canonical = False
                self._check_id(node.id, place)
            index.setdefault(node.id, place)
            label = node.label
            if label is not None and (len(label) > MAX_LABEL_CHARS or not label.isprintable()):
                problems.check_text(f"/nodes/{place}/label", label, MAX_LABEL_CHARS)
            before = problems.count
            texts.append(take(node.parameters, place))
            if problems.count > before:
                self.unsound.add(place)
            own = NO_PORTS
            if node.ui is not None:
                own = self._compiler.compile(node.ui, f"/nodes/{place}/ui")
            found = self._resolve(node, place, own)
            types.append(found)
            ports.append(_effective(own, found))
            known = NO_SCHEMAS if found is None else found.schemas
            schemas.append(known if node.schema is None else schemas_in(node.schema, known))
            check_settings(node, place)
            if node.type in CHOICE_TYPES:
                self.cases[place] = cases_of(node.type, texts[place], place, problems)
        if len(index) < len(self._nodes) or not all_canonical:
            self._report_duplicates()

    def _check_id(self, node_id: str, place: int) -> None:
        if not UUID.fullmatch(node_id):
            message = f"the id of a node must be a UUID: {node_id[:80]!r}"
            self._problems.add(f"/nodes/{place}/id", WORKFLOW_BAD_ID, message)

    def _report_duplicates(self) -> None:
        # A store may fold the case of UUIDs, so ids that differ in case alone are the same.
        seen: set[str] = set()
        for place, node in enumerate(self._nodes):
            folded = node.id.lower()
            if folded in seen:
                message = f"two nodes have the same id: {node.id[:80]}"
                self._problems.add(f"/nodes/{place}/id", WORKFLOW_DUPLICATE_ID, message)
            seen.add(folded)

    def _resolve(self, node: NodeSpec, place: int, own: Ports) -> CatalogEntry | None:
        package = node.package
        name = package.name if package is not None else None
        version = package.version if package is not None else None
        hints = node.worker_hints
        least = hints.min_version if hints is not None else None
        key = (node.type, name, version, least)
        found = self._known.get(key)
        if found is None and key not in self._known:
            found = self._look_up(key, place)
            self._known[key] = found
        if isinstance(found, Miss):
            return self._miss(found, key, place, own)
        return found

    def _look_up(self, key: TypeKey, place: int) -> CatalogEntry | Miss | None:
        """Look a type up; None when its name is no name, which is reported once a name."""
        node_type, name, version, _ = key
        before = self._problems.count
        pointer = f"/nodes/{place}"
        if len(node_type) > MAX_KEY_CHARS or not NODE_TYPE.fullmatch(node_type):
            message = f"not the name of a node type: {node_type[:80]!r}"
            self._problems.add(f"{pointer}/type", WORKFLOW_BAD_TEXT, message)
        if name is not None and not is_package_name(name):
            message = f"a package cannot have this name: {name[:80]!r}"
            self._problems.add(f"{pointer}/package/name", WORKFLOW_BAD_TEXT, message)
        if version is not None and parse_version(version) is None:
            message = f"not a version: {version[:80]!r}"
            self._problems.add(f"{pointer}/package/version", WORKFLOW_BAD_TEXT, message)
        if self._problems.count > before:
            return None
        return find_entry(self._catalog, key, self._least)

    def _miss(self, miss: Miss, key: TypeKey, place: int, own: Ports) -> CatalogEntry | None:
        node_type, name, version, _ = key
        absent = miss in (Miss.PACKAGE, Miss.VERSION)
        carried = own.inputs is not None or own.outputs is not None
        if absent and carried and name is not None and version is not None:
            return CatalogEntry(type=node_type, package_name=name, package_version=version)
        pointer = f"/nodes/{place}/type"
        code = WORKFLOW_UNKNOWN_TYPE
        if absent:
            pointer = f"/nodes/{place}/package"
            code = WORKFLOW_UNKNOWN_PACKAGE
        elif miss is Miss.YANKED:
            pointer = f"/nodes/{place}/package/version"
            code = PKG_YANKED
        named = " ".join(part for part in (node_type, name, version) if part)
        near = ""
        if miss is Miss.TYPE:
            near = self._problems.did_you_mean(node_type, self._catalog.types())
        self._problems.add(pointer, code, f"{miss.value}: {named}{near}")
        return None


def _effective(own: Ports, found: CatalogEntry | None) -> Ports:
    """The node's own ports, side by side, else those of its type."""
    if found is None:
        return own
    if own is NO_PORTS:
        return found.ports
    inputs = own.inputs if own.inputs is not None else found.ports.inputs
    outputs = own.outputs if own.outputs is not None else found.ports.outputs
    return Ports(inputs, outputs)
