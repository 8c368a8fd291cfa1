"""Which entry of the catalog a node means: its own package and version, else what the hints and the catalog say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.workflow.catalog import CatalogEntry, Miss

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astraflow.core.workflow.catalog import Catalog
    from astraflow.core.workflow.definition import Runtime, WorkerHints

TypeKey = tuple[str, str | None, str | None, str | None]
"""The type of a node, the name and the version of its package, and the least version that it asks for."""


def find_entry(
    catalog: Catalog, key: TypeKey, least_versions: Mapping[str, str]
) -> CatalogEntry | Miss:
    """`least_versions`: those of the whole definition, by package, for nodes that ask for none themselves."""
    node_type, name, version, least = key
    if least is None and name is not None:
        least = least_versions.get(name)
    found = catalog.find(node_type, name, version, least)
    if least is None and name is None and isinstance(found, CatalogEntry):
        # The node names no package, but the one that has its type may have a hint.
        least = least_versions.get(found.package_name)
        if least is not None:
            return catalog.find(node_type, None, version, least)
    return found


def least_versions_of(runtimes: Iterable[Runtime]) -> dict[str, str]:
    """The `minVersion` hint of each package that the definition's runtimes name."""
    hints: list[WorkerHints] = [
        one.worker_hints for one in runtimes if one.worker_hints is not None
    ]
    return {
        one.package: one.min_version
        for one in hints
        if one.package is not None and one.min_version is not None
    }
