"""Which saved definitions use a package.

A definition uses a package if one of its nodes is of it, also inside of a container or as a middleware. What a called
workflow uses is the use of that workflow. A node without a package or a version uses what a run would get now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from astraflow.core.workflow.catalog import CatalogEntry
from astraflow.core.workflow.definition import PackageRef, Runtime, WorkerHints
from astraflow.core.workflow.manifest_rules import is_package_name
from astraflow.core.workflow.type_lookup import TypeKey, find_entry, least_versions_of
from astraflow.core.workflow.versions import VersionKey, parse_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.workflow.catalog import Catalog


class _Node(Struct, frozen=True, gc=False, rename="camel"):
    type: str
    package: PackageRef | None = None
    worker_hints: WorkerHints | None = None


class _Nodes(Struct, frozen=True, gc=False):
    """What of a definition decides about its packages. The rest is skipped, not built."""

    nodes: list[_Node]
    runtimes: dict[str, Runtime] = {}


_NODES: Final = msgspec.json.Decoder(_Nodes)


class WantedPackage(Struct, frozen=True):
    """A package, and the version of it; None: any."""

    name: str
    version: VersionKey | None = None


def parse_wanted(text: str) -> WantedPackage | None:
    """Read `name` or `name@version`; None if it is neither."""
    name, mark, version = text.partition("@")
    key = parse_version(version) if mark else None
    if not is_package_name(name) or (mark and key is None):
        return None
    return WantedPackage(name, key)


class PackageUses:
    """Says of definitions, one after the other, whether they use a package."""

    def __init__(self, wanted: WantedPackage, catalog: Catalog) -> None:
        self._wanted = wanted
        self._catalog = catalog

    def is_used_in(self, definition: bytes) -> bool:
        """`definition`: one that was validated when it was saved."""
        decoded = _NODES.decode(definition)
        least = least_versions_of(decoded.runtimes.values())
        keys = {_key(node) for node in decoded.nodes}
        return any(self._is_wanted(key, least) for key in keys)

    def _is_wanted(self, key: TypeKey, least: Mapping[str, str]) -> bool:
        _, name, version, _ = key
        if name is not None and (name != self._wanted.name or self._wanted.version is None):
            return name == self._wanted.name
        if name is not None and version is not None:
            return parse_version(version) == self._wanted.version
        found = find_entry(self._catalog, key, least)
        if not isinstance(found, CatalogEntry) or found.package_name != self._wanted.name:
            return False
        version_key = parse_version(found.package_version)
        return self._wanted.version is None or version_key == self._wanted.version


def _key(node: _Node) -> TypeKey:
    package, hints = node.package, node.worker_hints
    return (
        node.type,
        package.name if package is not None else None,
        package.version if package is not None else None,
        hints.min_version if hints is not None else None,
    )
