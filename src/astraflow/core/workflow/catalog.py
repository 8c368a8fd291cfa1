"""The catalog: which package provides a node type, and what its ports are.

WORKFLOWS "Packages": "`version` may be left out for the newest published or installed one,
pinned when the run is accepted; `package` may be left out if exactly one provides the type". The
newest is the newest final release that has the type; pre-releases are taken only where there is
nothing else, or when they are named.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from astraflow.core.errors import PKG_INVALID
from astraflow.core.workflow.node_schemas import NO_SCHEMAS, NodeSchemas, schemas_in
from astraflow.core.workflow.plan import UNSTATED
from astraflow.core.workflow.ports import NO_PORTS, PortCompiler, Ports
from astraflow.core.workflow.problems import InvalidDocument, Problems
from astraflow.core.workflow.versions import VersionKey, is_prerelease, parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.workflow.manifest import Adapter, Manifest, ManifestBody, ManifestNode


class CatalogEntry(Struct, frozen=True, gc=False, kw_only=True):
    """A node type of one version of one package."""

    type: str
    package_name: str
    package_version: str
    runtime: str | None = None
    ports: Ports = NO_PORTS
    idempotency: str = UNSTATED
    executed_by_scheduler: bool = False
    is_middleware: bool = False
    """It wraps another node, and cannot run for itself."""
    schemas: NodeSchemas = NO_SCHEMAS


class Miss(enum.Enum):
    """Why a node type was not found."""

    PACKAGE = "no package of this name is known"
    VERSION = "no such version of the package is known"
    TYPE = "no known package has a node of this type"
    YANKED = "this version was withdrawn by its publisher; name another one"
    AMBIGUOUS = "several packages have a node of this type; name one of them"


class Catalog(Protocol):
    """Where the planner looks node types up. It must answer the same for as long as it is used."""

    def find(
        self,
        node_type: str,
        package: str | None = None,
        version: str | None = None,
        min_version: str | None = None,
    ) -> CatalogEntry | Miss: ...

    def types(self) -> Iterable[str]:
        """All node types, for suggestions."""


class _CatalogVersion(Struct, frozen=True, gc=False):
    key: VersionKey
    types: dict[str, CatalogEntry]


class StaticCatalog:
    """A catalog of the given manifests. Make a new one when the manifests change.

    Raises:
        InvalidDocument: a manifest has ports that cannot be compiled, or no proper version.
    """

    __slots__ = ("_packages", "_providers")

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._packages: dict[str, list[_CatalogVersion]] = {}
        self._providers: dict[str, set[str]] = {}
        for manifest in manifests:
            self._add(manifest.body)
        for versions in self._packages.values():
            versions.sort(key=lambda version: version.key, reverse=True)

    def _add(self, body: ManifestBody) -> None:
        problems = Problems(only=PKG_INVALID)
        compiler = PortCompiler(problems)
        key = parse_version(body.version)
        if key is None:
            problems.add("/version", PKG_INVALID, f"not a version: {body.version[:80]!r}")
        types: dict[str, CatalogEntry] = {}
        for place, node in enumerate(body.nodes):
            ports = NO_PORTS
            if node.ui is not None:
                ports = compiler.compile(node.ui, f"/nodes/{place}/ui")
            types[node.type] = _node_type(body, node, ports)
            self._providers.setdefault(node.type, set()).add(body.name)
        if key is None or problems.count:
            raise InvalidDocument(PKG_INVALID, problems.found())
        self._packages.setdefault(body.name, []).append(_CatalogVersion(key, types))

    def find(
        self,
        node_type: str,
        package: str | None = None,
        version: str | None = None,
        min_version: str | None = None,
    ) -> CatalogEntry | Miss:
        """The node type in the version asked for, else in the newest one that has it."""
        if package is None:
            providers = self._providers.get(node_type, set())
            if len(providers) != 1:
                return Miss.AMBIGUOUS if providers else Miss.TYPE
            (package,) = providers
        versions = self._packages.get(package)
        if versions is None:
            return Miss.PACKAGE
        if version is not None:
            return _exactly(versions, node_type, version)
        return _newest(versions, node_type, min_version)

    def types(self) -> Iterable[str]:
        return self._providers


def _exactly(versions: list[_CatalogVersion], node_type: str, version: str) -> CatalogEntry | Miss:
    key = parse_version(version)
    for known in versions:
        if known.key == key:
            return known.types.get(node_type, Miss.TYPE)
    return Miss.VERSION


def _newest(
    versions: list[_CatalogVersion], node_type: str, min_version: str | None
) -> CatalogEntry | Miss:
    least = parse_version(min_version) if min_version is not None else None
    having = [known for known in versions if node_type in known.types]
    allowed = [known for known in having if least is None or known.key >= least]
    for known in allowed:
        if not is_prerelease(known.key):
            return known.types[node_type]
    if allowed:
        return allowed[0].types[node_type]
    return Miss.VERSION if having else Miss.TYPE


def _node_type(body: ManifestBody, node: ManifestNode, ports: Ports) -> CatalogEntry:
    adapter = _adapter(body.adapters, node)
    runtime = next(iter(node.runtimes), None)
    if runtime is None and adapter is not None:
        runtime = adapter.runtime
    stated = adapter.idempotency if adapter is not None else None
    return CatalogEntry(
        type=node.type,
        package_name=body.name,
        package_version=body.version,
        runtime=runtime,
        ports=ports,
        idempotency=stated or UNSTATED,
        executed_by_scheduler=node.executed_by == "scheduler",
        is_middleware=node.middleware,
        schemas=schemas_in(node.schema),
    )


def _adapter(adapters: list[Adapter], node: ManifestNode) -> Adapter | None:
    """The adapter that runs the node: the one that lists its type, else that has its runtime."""
    for adapter in adapters:
        if node.type in adapter.capabilities:
            return adapter
    for adapter in adapters:
        if adapter.runtime in node.runtimes:
            return adapter
    return None
