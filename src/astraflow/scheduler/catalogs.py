"""Catalogs: which node types a tenant has, at this moment.

A tenant has the core, the packages of the installation, its published packages that are not yanked, and what its
workers say that they have installed. Its active versions decide where a node names no version; where there is none, the
newest final release does.

Rule 1: a node type belongs to the package that first published it in the tenant; the types of `core` belong to `core`,
        and those of the installation's packages to these, unless the tenant had published them before. Then it does not
        get the package of the installation: what it has made keeps its meaning.
Rule 2: a worker's report never outranks the repository. A manifest that a worker reports counts only while its name is
        not that of the core or of a published package, and while none of its types belongs to one of those.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.workflow import Catalog, CatalogEntry, Miss, StaticCatalog
from astraflow.core.workflow.manifest import Manifest
from astraflow.core.workflow.versions import VersionKey, parse_version

MAX_LEARNED: Final = 1_000
"""Manifests of one tenant's workers that are remembered beside the published ones; the oldest are forgotten."""
MAX_LEARNED_BYTES: Final = 32 * 1024**2
"""And their size in all: one manifest may fill a frame."""


class Known(msgspec.Struct, frozen=True):
    """A version of a package that a tenant has."""

    manifest: Manifest
    is_published: bool


class _Tenant:
    """What one tenant has."""

    def __init__(self) -> None:
        self.generation = 0
        self.published: dict[tuple[str, VersionKey], Manifest] = {}
        self.owners: dict[str, str] = {}
        """By node type: the package that first published it."""
        self.yanked: set[tuple[str, VersionKey]] = set()
        self.active: dict[str, str] = {}
        self.learned: OrderedDict[str, Manifest] = OrderedDict()
        self.learned_bytes = 0
        self.built: Catalog | None = None

    def add(self, key: tuple[str, VersionKey], manifest: Manifest) -> None:
        self.published[key] = manifest
        for node in manifest.body.nodes:
            self.owners.setdefault(node.type, manifest.name)

    def forget_published(self) -> None:
        self.published.clear()
        self.owners.clear()
        self.yanked.clear()
        self.active.clear()

    def changed(self) -> None:
        self.generation += 1
        self.built = None


class Catalogs:
    """One cached catalog for each tenant, made again when it has changed."""

    def __init__(self, core: Iterable[Manifest]) -> None:
        self._core = tuple(core)
        self._core_owners = {
            node.type: manifest.name for manifest in self._core for node in manifest.body.nodes
        }
        self._tenants: dict[str, _Tenant] = {}
        self._shipped = _Tenant()
        self._bare: Catalog | None = None

    def of(self, tenant: str) -> Catalog:
        found = self._tenants.get(tenant)
        if found is None:
            if self._bare is None:
                self._bare = StaticCatalog(known.manifest for known in self.known(tenant))
            return self._bare
        if found.built is None:
            manifests = (known.manifest for known in self.known(tenant))
            found.built = _TenantCatalog(
                StaticCatalog(manifests), dict(found.active), frozenset(found.yanked)
            )
        return found.built

    def generation(self, tenant: str) -> int:
        """Grows with every change of the tenant's catalog."""
        found = self._tenants.get(tenant)
        return self._shipped.generation + (0 if found is None else found.generation)

    def known(self, tenant: str) -> list[Known]:
        """Everything that is not yanked: the core first, then what is published, then what workers report."""
        found = self._tenants.get(tenant) or _Tenant()
        rows = [Known(manifest, True) for manifest in self._core]
        rows += [
            Known(manifest, True)
            for key, manifest in self._shipped.published.items()
            if key not in found.published and self._keeps_its_types(found, manifest)
        ]
        seen: set[tuple[str, VersionKey]] = set()
        rows += [
            Known(manifest, True)
            for key, manifest in found.published.items()
            if key not in found.yanked
        ]
        for manifest in found.learned.values():
            if _key(manifest) not in seen and self.why_not(tenant, manifest) is None:
                seen.add(_key(manifest))
                rows.append(Known(manifest, False))
        return rows

    def owner(self, tenant: str, node_type: str) -> str | None:
        """The package that a node type belongs to, if it belongs to one."""
        found = self._tenants.get(tenant)
        owners = {} if found is None else found.owners
        return (
            self._core_owners.get(node_type)
            or owners.get(node_type)
            or self._shipped.owners.get(node_type)
        )

    def _keeps_its_types(self, found: _Tenant, manifest: Manifest) -> bool:
        """Whether none of its types belongs to another package of the tenant."""
        types = (node.type for node in manifest.body.nodes)
        return all(found.owners.get(one, manifest.name) == manifest.name for one in types)

    def why_not(self, tenant: str, manifest: Manifest) -> str | None:
        """Why the word of a worker about this package does not count, if it does not (rule 2)."""
        name = manifest.name
        found = self._tenants.get(tenant) or _Tenant()
        published = (*found.published, *self._shipped.published)
        if any(name == one.name for one in self._core) or any(name == of for of, _ in published):
            return f"the name belongs to the repository: {name}"
        for node in manifest.body.nodes:
            owner = self.owner(tenant, node.type)
            if owner is not None:
                return f"node type {node.type} belongs to package {owner}"
        return None

    # -- changes ----------------------------------------------------------------------------

    def publish(self, tenant: str, manifest: Manifest, *, is_yanked: bool = False) -> None:
        """Add a published version, or say anew whether it is yanked."""
        found = self._tenants.setdefault(tenant, _Tenant())
        key = _key(manifest)
        found.add(key, manifest)
        found.yanked.discard(key)
        if is_yanked:
            found.yanked.add(key)
        found.changed()

    def ship(self, manifest: Manifest) -> None:
        """Add a package of the installation, for every tenant."""
        self._shipped.add(_key(manifest), manifest)
        self._all_changed()

    def _all_changed(self) -> None:
        self._bare = None
        for found in (self._shipped, *self._tenants.values()):
            found.changed()

    def activate(self, tenant: str, name: str, version: str) -> None:
        found = self._tenants.setdefault(tenant, _Tenant())
        found.active[name] = version
        found.changed()

    def learn(self, tenant: str, manifest_sha256: str, manifest: Manifest) -> str | None:
        """A worker has a package with this manifest installed. Returns why that does not count, if it does not."""
        found = self._tenants.setdefault(tenant, _Tenant())
        if manifest_sha256 in found.learned:
            found.learned.move_to_end(manifest_sha256)
            return None
        try:
            StaticCatalog([manifest])
        except errors.AstraflowError as error:
            return (
                error.message
            )  # one worker with a broken manifest must not take the catalog from all
        found.learned[manifest_sha256] = manifest
        found.learned_bytes += len(manifest.raw)
        while len(found.learned) > MAX_LEARNED or found.learned_bytes > MAX_LEARNED_BYTES:
            _, oldest = found.learned.popitem(last=False)
            found.learned_bytes -= len(oldest.raw)
        found.changed()
        return self.why_not(tenant, manifest)

    def forget_published(self) -> None:
        """Before everything stored is read anew: another scheduler may have changed it."""
        for found in (self._shipped, *self._tenants.values()):
            found.forget_published()
        self._all_changed()

    def forget_published_of(self, tenant: str) -> None:
        """The same, of one tenant."""
        found = self._tenants.get(tenant)
        if found is not None:
            found.forget_published()
            found.changed()


class _TenantCatalog:
    """A catalog with active versions, and with versions that must not be taken any more."""

    __slots__ = ("_active", "_all", "_yanked")

    def __init__(
        self,
        known: Catalog,
        active: dict[str, str],
        yanked: frozenset[tuple[str, VersionKey]],
    ) -> None:
        self._all = known
        self._active = active
        self._yanked = yanked

    def find(
        self,
        node_type: str,
        package: str | None = None,
        version: str | None = None,
        min_version: str | None = None,
    ) -> CatalogEntry | Miss:
        if version is not None:
            key = parse_version(version)
            if package is not None and key is not None and (package, key) in self._yanked:
                return Miss.YANKED
            return self._all.find(node_type, package, version, min_version)
        newest = self._all.find(node_type, package, None, min_version)
        name = newest.package_name if isinstance(newest, CatalogEntry) else package
        active = self._active.get(name) if name is not None else None
        if active is None or not self._may_take(name, active, min_version):
            return newest
        return self._all.find(node_type, name, active)

    def types(self) -> Iterable[str]:
        return self._all.types()

    def _may_take(self, name: str | None, active: str, min_version: str | None) -> bool:
        """Whether the active version counts: it was not yanked, and the node asks for no later one."""
        key = parse_version(active)
        if key is None or (name, key) in self._yanked:
            return False
        least = parse_version(min_version) if min_version is not None else None
        return least is None or key >= least


def _key(manifest: Manifest) -> tuple[str, VersionKey]:
    key = parse_version(manifest.version)
    assert key is not None, "a manifest was taken in without a proper version"
    return manifest.name, key
