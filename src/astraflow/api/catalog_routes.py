"""The catalog: the node types that the workflows of a tenant can use, found by words."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, Services, route
from astraflow.core import errors
from astraflow.core.contract.packages import (
    ListNodeTypes,
    NodePackage,
    NodeType,
    NodeTypePage,
    PortTypes,
    ShowNodeType,
)
from astraflow.core.errors import NotFound
from astraflow.core.security.policy import READ
from astraflow.core.workflow import CatalogEntry, Miss, StaticCatalog
from astraflow.core.workflow.catalog import Catalog
from astraflow.core.workflow.manifest import Manifest
from astraflow.core.workflow.schema_rules import given_by, wanted_by

NODES: Final = "/api/v1/catalog/nodes"
_WEIGHTS: Final = (("type", 8), ("label", 8), ("tags", 4), ("category", 2), ("description", 1))
"""What a word counts where it is found; what a node is called counts more than what is said about it."""
_WHOLE: Final = 100
"""For a word that is the whole of a type, a label or a tag."""


class CatalogEndpoints(Endpoints):
    """The endpoints under `/api/v1/catalog`."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._made: dict[str, tuple[int, list[NodeType]]] = {}
        """The nodes of each tenant, and the generation of the catalog that they are of."""

    @route(
        "GET",
        NODES,
        READ,
        "listNodeTypes",
        "list the node types that workflows can use, best match first",
        tag="catalog",
        text="Those of the core, of published packages, and of what workers have installed; of each package the "
        "version that a node without a version gets.",
        query=ListNodeTypes,
        replies=NodeTypePage,
    )
    async def list_nodes(self, request: Request[ListNodeTypes]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        words = query.q.lower().split()
        start = self._cursors.read("nodes", tenant, query.cursor, int) or 0
        ranked = [
            (-rank, node.type, node.package.name, node)
            for node in self._nodes(tenant)
            if query.category in (None, node.category)
            and query.package in (None, node.package.name)
            and (rank := _rank(node, words)) is not None
        ]
        ranked.sort(key=lambda one: one[:3])
        end = start + query.count
        cursor = self._cursors.make("nodes", tenant, end if len(ranked) > end else None)
        items = self._with_workers(tenant, [one[-1] for one in ranked[start:end]])
        return json_response(NodeTypePage(items=items, next_cursor=cursor))

    @route("GET", f"{NODES}/{{type}}", READ, "getNodeType", "show a node type", tag="catalog",
           query=ShowNodeType, replies=NodeType)  # fmt: skip
    async def show(self, request: Request[ShowNodeType]) -> AsgiApp:
        node_type, package = request.params["type"], request.query.package
        version = request.query.version
        nodes = self._nodes(request.tenant)
        if version is not None:
            nodes = self._nodes_of_version(request.tenant, version)
        found = [
            node
            for node in nodes
            if node.type == node_type and package in (None, node.package.name)
        ]
        if not found:
            raise NotFound(errors.PKG_NOT_FOUND, f"no such node type: {node_type[:80]}")
        others = [one.package for one in found[1:]]
        (shown,) = self._with_workers(request.tenant, found[:1])
        return json_response(msgspec.structs.replace(shown, also_in=others))

    def _nodes_of_version(self, tenant: str, version: str) -> list[NodeType]:
        """The node types of every package that has this version."""
        return [
            node
            for known in self._scheduler.catalogs.known(tenant)
            if known.manifest.version == version
            for node in _nodes_of(
                known.manifest,
                StaticCatalog([known.manifest]),
                is_published=known.is_published,
            )
        ]

    def _with_workers(self, tenant: str, nodes: list[NodeType]) -> list[NodeType]:
        """With whether they can be executed now."""
        installed = self._scheduler.workers.installed(tenant)
        return [
            msgspec.structs.replace(
                node,
                executable=node.executed_by == "scheduler"
                or (node.package.name, node.package.version) in installed,
            )
            for node in nodes
        ]

    def _nodes(self, tenant: str) -> list[NodeType]:
        """Of each package the version that a node without one gets."""
        catalogs = self._scheduler.catalogs
        generation = catalogs.generation(tenant)
        made = self._made.get(tenant)
        if made is not None and made[0] == generation:
            return made[1]
        catalog = catalogs.of(tenant)
        nodes = [
            node
            for known in catalogs.known(tenant)
            for node in _nodes_of(known.manifest, catalog, is_published=known.is_published)
        ]
        self._made[tenant] = (generation, nodes)
        return nodes


def _nodes_of(manifest: Manifest, catalog: Catalog, *, is_published: bool) -> list[NodeType]:
    """The node types of a package as an editor wants them: as authored, with their package."""
    package = NodePackage(name=manifest.name, version=manifest.version)
    nodes: list[NodeType] = []
    for node in msgspec.json.decode(manifest.raw).get("nodes", []):
        found = catalog.find(node["type"], manifest.name)
        if isinstance(found, Miss) or found.package_version != manifest.version:
            continue  # another version of the package is the one that counts
        nodes.append(
            NodeType(
                type=node["type"],
                package=package,
                published=is_published,
                label=_given(node, "label", node["type"]),
                category=_given(node, "category", ""),
                description=_given(node, "description", ""),
                tags=_given(node, "tags", []),
                schema=_given(node, "schema", {}),
                ui=_given(node, "ui", {}),
                port_types=_port_types(found),
                help=node.get("help"),
                icon=node.get("icon"),
                color=node.get("color"),
                error_port=_has_error_port(node),
                runtimes=_given(node, "runtimes", {}),
                status=_given(node, "status", "published"),
                executed_by=node.get("executedBy"),
                middleware=node.get("middleware", False),
                conditions=node.get("conditions"),
                extensions=node.get("extensions"),
                metadata=node.get("metadata"),
            )
        )
    return nodes


def _has_error_port(node: dict[str, Any]) -> bool:
    """Rule 2 of `workflow.ports`."""
    ports = (node.get("ui") or {}).get("outputPorts") or []
    return all(port.get("key") != "error" for port in ports)


def _port_types(found: CatalogEntry) -> PortTypes:
    """What the schemas tell of the ports that carry data."""
    inputs, outputs = found.ports.inputs or {}, found.ports.outputs or {}
    return PortTypes(
        inputs={
            key: sorted(types)
            for key, port in inputs.items()
            if (types := wanted_by(found.schemas.parameters, port)) is not None
        },
        outputs={
            key: sorted(types)
            for key, port in outputs.items()
            if port.kind == "data" and (types := given_by(found.schemas.results, port)) is not None
        },
    )


def _given(node: dict[str, Any], name: str, default: Any) -> Any:
    value = node.get(name)
    return default if value is None else value


def _rank(node: NodeType, words: list[str]) -> int | None:
    """How well a node fits the words; None if one of them is nowhere in it."""
    total = 0
    for word in words:
        best = 0
        for field, weight in _WEIGHTS:
            best = max(best, _weigh(getattr(node, field), word, weight))
        if best == 0:
            return None
        total += best
    return total


def _weigh(value: Any, word: str, weight: int) -> int:
    texts = value if isinstance(value, list) else [value]
    best = 0
    for text in texts:
        folded = str(text).lower()
        if folded == word:
            best = max(best, _WHOLE * weight)
        elif word in folded.replace(".", " ").replace("-", " ").split():
            best = max(best, 10 * weight)
        elif word in folded:
            best = max(best, weight)
    return best
