"""Catalogs: which node types a tenant has, at this moment.

A tenant has the core, its published packages that are not yanked, and what its workers say that they have installed.
Its active versions decide where a node names no version; where there is none, the newest final release does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from astraflow import errors
from astraflow.workflow import Catalog, Miss, NodeType, StaticCatalog
from astraflow.workflow.manifest import Manifest
from astraflow.workflow.versions import VersionKey, parse_version

__all__ = ["Catalogs", "Known"]

MAX_LEARNED: Final = 1_000
"""Manifests of one tenant's workers that are remembered beside the published ones; the oldest are forgotten."""


class Known(msgspec.Struct, frozen=True):
    """A version of a package that a tenant has."""

    manifest: Manifest
    is_published: bool


class _Tenant:
    """What one tenant has."""

    def __init__(self) -> None:
        self.generation = 0
        self.published: dict[tuple[str, VersionKey], Manifest] = {}
        self.yanked: set[tuple[str, VersionKey]] = set()
        self.active: dict[str, str] = {}
        self.learned: OrderedDict[str, Manifest] = OrderedDict()
        self.built: Catalog | None = None

    def changed(self) -> None:
        self.generation += 1
        self.built = None


class Catalogs:
    """One catalog for each tenant, made anew when something of it has changed."""

    def __init__(self, core: Iterable[Manifest]) -> None:
        self._core = tuple(core)
        self._tenants: dict[str, _Tenant] = {}
        self._bare: Catalog = StaticCatalog(self._core)

    def of(self, tenant: str) -> Catalog:
        found = self._tenants.get(tenant)
        if found is None:
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
        return 0 if found is None else found.generation

    def known(self, tenant: str) -> list[Known]:
        """Everything that is not yanked: the core first, then what is published, then what workers told of."""
        rows = [Known(manifest, True) for manifest in self._core]
        found = self._tenants.get(tenant)
        if found is None:
            return rows
        seen = {_key(manifest) for manifest in self._core} | found.yanked | found.published.keys()
        rows += [
            Known(manifest, True)
            for key, manifest in found.published.items()
            if key not in found.yanked
        ]
        for manifest in found.learned.values():
            if _key(manifest) not in seen:
                seen.add(_key(manifest))
                rows.append(Known(manifest, False))
        return rows

    # -- changes ----------------------------------------------------------------------------

    def publish(self, tenant: str, manifest: Manifest, *, is_yanked: bool = False) -> None:
        """Add a published version, or say anew whether it is yanked."""
        found = self._tenants.setdefault(tenant, _Tenant())
        key = _key(manifest)
        found.published[key] = manifest
        found.yanked.discard(key)
        if is_yanked:
            found.yanked.add(key)
        found.changed()

    def activate(self, tenant: str, name: str, version: str) -> None:
        found = self._tenants.setdefault(tenant, _Tenant())
        found.active[name] = version
        found.changed()

    def learn(self, tenant: str, manifest_sha256: str, manifest: Manifest) -> None:
        """A worker has a package with this manifest installed. What is published counts for more."""
        found = self._tenants.setdefault(tenant, _Tenant())
        if manifest_sha256 in found.learned:
            found.learned.move_to_end(manifest_sha256)
            return
        try:
            StaticCatalog([manifest])
        except errors.AstraflowError:
            return  # one worker with a broken manifest must not take the catalog from all
        found.learned[manifest_sha256] = manifest
        while len(found.learned) > MAX_LEARNED:
            found.learned.popitem(last=False)
        found.changed()

    def is_known(self, tenant: str, manifest_sha256: str) -> bool:
        """Whether a worker need not tell this manifest again."""
        found = self._tenants.get(tenant)
        return found is not None and manifest_sha256 in found.learned

    def forget_published(self) -> None:
        """Before everything stored is read anew: another scheduler may have changed it."""
        for found in self._tenants.values():
            found.published.clear()
            found.yanked.clear()
            found.active.clear()
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
    ) -> NodeType | Miss:
        if version is not None:
            key = parse_version(version)
            if package is not None and key is not None and (package, key) in self._yanked:
                return Miss.YANKED
            return self._all.find(node_type, package, version, min_version)
        newest = self._all.find(node_type, package, None, min_version)
        name = newest.package_name if isinstance(newest, NodeType) else package
        active = self._active.get(name) if name is not None else None
        if active is None or not self._may_take(name, active, min_version):
            return newest
        return self._all.find(node_type, name, active)

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
