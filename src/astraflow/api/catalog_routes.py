"""The catalog: the node types that the workflows of a tenant can use, found by words."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar.types import ASGIApp

from astraflow.api.answers import answer_json
from astraflow.api.requests import MAX_SEARCH_CHARS, Call
from astraflow.api.routes import Parts
from astraflow.core import errors
from astraflow.core.errors import NotFound
from astraflow.core.workflow import Miss
from astraflow.core.workflow.catalog import Catalog
from astraflow.core.workflow.manifest import Manifest

__all__ = ["CatalogEndpoints"]

_Node = dict[str, Any]

_WEIGHTS: Final = (("type", 8), ("label", 8), ("tags", 4), ("category", 2), ("description", 1))
"""What a word counts where it is found; what a node is called counts more than what is said about it."""
_WHOLE: Final = 100
"""For a word that is the whole of a type, a label or a tag."""


class CatalogEndpoints:
    """The endpoints under `/api/v1/catalog`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors
        self._made: dict[str, tuple[int, list[_Node]]] = {}
        """The nodes of each tenant, and the generation of the catalog that they are of."""

    async def list_nodes(self, call: Call) -> ASGIApp:
        limit = call.limit()
        words = (call.text("q", MAX_SEARCH_CHARS) or "").lower().split()
        category, package = call.text("category"), call.text("package")
        cursor = call.text("cursor", 512)
        start = self._cursors.read("nodes", call.tenant, cursor, int) if cursor else 0
        ranked = [
            (-rank, node["type"], node["package"]["name"], node)
            for node in self._nodes(call.tenant)
            if (category is None or node["category"] == category)
            and (package is None or node["package"]["name"] == package)
            and (rank := _rank(node, words)) is not None
        ]
        ranked.sort(key=lambda one: one[:3])
        end = start + limit
        goes_on = len(ranked) > end
        return answer_json(
            {
                "items": [one[-1] for one in ranked[start:end]],
                "nextCursor": self._cursors.make("nodes", call.tenant, end) if goes_on else None,
            }
        )

    async def show(self, call: Call) -> ASGIApp:
        node_type: str = call.params["type"]
        package = call.text("package")
        found = [
            node
            for node in self._nodes(call.tenant)
            if node["type"] == node_type and package in (None, node["package"]["name"])
        ]
        if not found:
            raise NotFound(errors.PKG_NOT_FOUND, f"no such node type: {node_type[:80]}")
        return answer_json({**found[0], "alsoIn": [one["package"] for one in found[1:]]})

    def _nodes(self, tenant: str) -> list[_Node]:
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


def _nodes_of(manifest: Manifest, catalog: Catalog, *, is_published: bool) -> list[_Node]:
    """The node types of a package as an editor wants them: as authored, with their package."""
    package = {"name": manifest.name, "version": manifest.version}
    nodes: list[_Node] = []
    for node in msgspec.json.decode(manifest.raw).get("nodes", []):
        found = catalog.find(node["type"], manifest.name)
        if isinstance(found, Miss) or found.package_version != manifest.version:
            continue  # another version of the package is the one that counts
        nodes.append(
            {
                "label": node["type"],
                "category": "",
                "description": "",
                "tags": [],
                "schema": {},
                "ui": {},
                "runtimes": {},
                "status": "published",
                **{name: value for name, value in node.items() if value is not None},
                "package": package,
                "published": is_published,
            }
        )
    return nodes


def _rank(node: _Node, words: list[str]) -> int | None:
    """How well a node fits the words; None if one of them is nowhere in it."""
    total = 0
    for word in words:
        best = 0
        for field, weight in _WEIGHTS:
            best = max(best, _weigh(node[field], word, weight))
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
