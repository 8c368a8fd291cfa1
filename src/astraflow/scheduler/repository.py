"""The repository: packages as they were published, the version that counts, and where workers get them.

Rule 1: what is published stays as it is. A version has one digest and one spelling for ever: `1.0` and `1.0.0` are the
        same version (PEP 440). Another archive needs another version, another spelling is a conflict.
Rule 2: first the blob, then the row. A crash between the two leaves a blob that nobody refers to, which is swept.
Rule 3: a yanked version is chosen for nothing new. Runs that were accepted before still get it.
Rule 4: what comes with the installation is there for every tenant, beside what the tenant has published. It cannot be
        changed: a tenant that yanks such a version withdraws it for itself alone.
Rule 5: what is asked on the way of a dispatch is answered from memory; it is read from the store when serving begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.fleet.versions import EVERY_TENANT, ActiveVersionRecord, PublishedVersion
from astraflow.core.workflow import core_manifest, decode_manifest
from astraflow.core.workflow.manifest import Manifest
from astraflow.core.workflow.versions import VersionKey, is_prerelease, parse_version
from astraflow.packages import (
    Archive,
    Limits,
    TrustedKeys,
    check_archive,
    check_contents,
    judge,
)
from astraflow.packages.signing import Policy
from astraflow.scheduler.blobs import Blobs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.signed_urls import ArchiveGrant, UrlSigner
from astraflow.store.content import other_digest
from astraflow.store.packages import PACKAGES_CHANGE
from astraflow.store.rows import ActiveRow, PackageRow
from astraflow.store.store import Claim, Store

_log: Final = logging.getLogger(__name__)

PREFIX: Final = "packages"
SHIPPER: Final = "astraflow"
SIGNED_URL_S: Final = 3_600.0
"""How long a worker may take to begin a download; it asks again when it begins later."""


Announce = Callable[[PublishedVersion, str, str], None]
"""Told (version, who, action) of everything that was changed and is stored."""


class Rules(msgspec.Struct, frozen=True):
    """What may be published."""

    policy: Policy = "warn"
    trusted: TrustedKeys = TrustedKeys({})
    max_bytes: int = 512 * 1024**2


class Repository:
    """The packages of all tenants."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        signer: UrlSigner,
        clock: Clock,
        catalogs: Catalogs,
        *,
        spool: Path,
        announce: Announce,
        rules: Rules | None = None,
    ) -> None:
        self.catalogs = catalogs
        self._announce = announce
        self._store = store
        self._blobs = blobs
        self._signer = signer
        self._clock = clock
        self._spool = spool
        self._rules = rules or Rules()
        self._claim: Claim | None = None
        # An archive that is published again must not be swept between its blob and its row.
        self._keeping = asyncio.Lock()
        self._rows: dict[str, dict[tuple[str, VersionKey], PackageRow]] = {}
        self._active: dict[tuple[str, str], ActiveVersionRecord] = {}
        self._refreshing = asyncio.Lock()
        self._loaded_change: str | None = None
        self._read_changes: dict[str, str | None] = {}
        """By tenant: what was stored of it with this change is known here."""

    async def load(self, claim: Claim) -> None:
        """Read what is stored; from here on changes are written under this claim."""
        change = await self._store.find_site(PACKAGES_CHANGE)
        rows = await self._store.packages()
        active = await self._store.active_versions()
        self._claim = claim
        self._loaded_change = change
        self._read_changes.clear()
        self._rows.clear()
        self._active.clear()
        self.catalogs.forget_published()
        self._know(rows, active)

    async def refresh(self, tenant: str) -> None:
        """Know the packages of a tenant as they are stored now: the scheduler of its home changes them.

        Raises: StoreError.
        """
        change = await self._store.find_site(PACKAGES_CHANGE)
        if change == self._read_changes.get(tenant, self._loaded_change):
            return
        async with self._refreshing:
            if change == self._read_changes.get(tenant, self._loaded_change):
                return  # another request has just read them
            rows = await self._store.packages(tenant)
            active = [one for one in await self._store.active_versions() if one.tenant == tenant]
            self._read_changes[tenant] = change
            self._rows.pop(tenant, None)
            for key in [key for key in self._active if key[0] == tenant]:
                del self._active[key]
            self.catalogs.forget_published_of(tenant)
            self._know(rows, active)

    def _know(self, rows: Iterable[PackageRow], active: Iterable[ActiveRow]) -> None:
        for row in sorted(
            rows, key=_by_age
        ):  # who published a node type or a version first owns it
            if _key(row) not in self._rows.get(row.tenant, {}):
                self._take_in(row)
        for one in active:
            self.note_active(ActiveVersionRecord(*msgspec.structs.astuple(one)))

    def let_go(self) -> None:
        """Nothing is served now, so nothing may be changed."""
        self._claim = None

    def _take_in(self, row: PackageRow) -> None:
        self._rows.setdefault(row.tenant, {})[_key(row)] = row
        manifest = decode_manifest(row.manifest)
        if row.tenant == EVERY_TENANT:
            self.catalogs.ship(manifest)
        else:
            self.catalogs.publish(row.tenant, manifest, is_yanked=row.yanked_at is not None)

    def _seen_by(self, tenant: str) -> dict[tuple[str, VersionKey], PackageRow]:
        """All rows that there are for a tenant: its own come before those of the installation."""
        return {**self._rows.get(EVERY_TENANT, {}), **self._rows.get(tenant, {})}

    def _writing(self) -> Claim:
        if self._claim is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "not ready: nothing is served now")
        return self._claim

    # -- publishing -------------------------------------------------------------------------

    async def publish(
        self,
        tenant: str,
        chunks: AsyncIterator[bytes],
        signature: str | None,
        by: str,
    ) -> tuple[PackageRow, bool]:
        """Take an archive in. The row, and whether it is new; when this returns it is durable.

        Raises:
            Refused: it is too large, no package, or not signed as it must be.
            Conflict: this version is published with another content.
            Unavailable: it cannot be kept now.
        """
        assert tenant != EVERY_TENANT
        return await self._publish(tenant, chunks, signature, by, self._rules.policy)

    async def ship(self, chunks: AsyncIterator[bytes]) -> None:
        """Take in an archive that came with this installation, for every tenant. It is as trusted as the installation,
        and its lack of a signature no news.

        Raises: as `publish`.
        """
        await self._publish(EVERY_TENANT, chunks, None, SHIPPER, "off")

    async def _publish(
        self,
        tenant: str,
        chunks: AsyncIterator[bytes],
        signature: str | None,
        by: str,
        policy: Policy,
    ) -> tuple[PackageRow, bool]:
        self._writing()
        path = await self._receive(chunks)
        try:
            limits = Limits(archive_bytes=self._rules.max_bytes)
            archive = await asyncio.to_thread(_checked, path, limits)
            row = self._judge(tenant, archive, signature, by, policy)
            async with self._keeping:  # two uploads at once must not both find the version free
                is_new = await self._keep(row, archive.manifest, path)
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        return self.find(tenant, row.name, row.version), is_new

    async def _keep(self, row: PackageRow, manifest: Manifest, path: Path) -> bool:
        """Whether it is new. Raises: Conflict, Unavailable, StoreError."""
        stored = self._seen_by(row.tenant).get(_key(row))
        if stored is not None and stored.sha256 == row.sha256:
            return False
        if stored is not None and stored.version != row.version:
            raise errors.Conflict(
                errors.PKG_CONFLICT,
                f"version {row.version} is published as {stored.version}: {row.name}",
                pointer="/version",
            )
        if stored is not None and stored.tenant != row.tenant:
            raise other_digest(row, stored.sha256)
        self._check_types(row.tenant, manifest)
        if stored is None:  # else the store has the words for it
            await self._blobs.put_file(_blob(row.sha256), path)
        is_new = await self._store.put_package(self._writing(), row)
        self._take_in(row)
        if row.tenant != EVERY_TENANT:
            # New or not: the publisher may have given up, or have lost the answer, after the row was stored. And at
            # once: a version that is taken in and not announced would never be announced.
            self._announce(published_version(row), row.published_by, "pkg.publish")
        return is_new

    def _check_types(self, tenant: str, manifest: Manifest) -> None:
        for place, node in enumerate(manifest.body.nodes):
            owner = self.catalogs.owner(tenant, node.type)
            if owner is not None and owner != manifest.name:
                raise errors.Conflict(
                    errors.PKG_CONFLICT,
                    f"node type {node.type} belongs to package {owner}",
                    pointer=f"/nodes/{place}/type",
                )

    async def _receive(self, chunks: AsyncIterator[bytes]) -> Path:
        """The upload as a file: an archive can only be checked from its end."""
        self._spool.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=self._spool, prefix="upload-")
        size = 0
        with ExitStack() as undo, os.fdopen(handle, "wb") as file:
            undo.callback(os.unlink, name)
            async for chunk in chunks:
                size += len(chunk)
                if size > self._rules.max_bytes:
                    raise errors.Refused(
                        errors.REQUEST_TOO_LARGE,
                        f"the package is larger than max_package_bytes: {self._rules.max_bytes}",
                    )
                await asyncio.to_thread(file.write, chunk)
            undo.pop_all()
        return Path(name)

    def _judge(
        self, tenant: str, archive: Archive, signature: str | None, by: str, policy: Policy
    ) -> PackageRow:
        manifest = archive.manifest
        if manifest.name == core_manifest().name:
            raise errors.Refused(
                errors.PKG_INVALID,
                f"the name is taken by the core: {manifest.name}",
                pointer="/name",
            )
        verdict = judge(
            policy,
            signature,
            self._rules.trusted,
            sha256=archive.sha256,
            name=manifest.name,
            version=manifest.version,
        )
        if verdict.warning is not None:
            _log.warning("published with a warning: %s", verdict.warning, extra={"tenant": tenant})
        return PackageRow(
            tenant=tenant,
            name=manifest.name,
            version=manifest.version,
            sha256=archive.sha256,
            size_bytes=archive.size_bytes,
            manifest=manifest.raw,
            manifest_sha256=hashlib.sha256(manifest.raw).hexdigest(),
            signature=None if signature is None else signature.encode(),
            signed_by=verdict.signed_by or "",
            published_at=self._clock.wall_ms(),
            published_by=by,
        )

    async def yank(
        self,
        tenant: str,
        name: str,
        version: str,
        *,
        is_yanked: bool,
        reason: str = "",
        by: str = "",
    ) -> PackageRow:
        """Withdraw a version, or take that back. Fine if it is so already.

        Raises:
            NotFound: no such version.
        """
        row = self.find(tenant, name, version)
        if row.tenant != tenant:
            if not is_yanked:
                return row
            row = msgspec.structs.replace(row, tenant=tenant)
            await self._store.put_package(self._writing(), row)
        at = self._clock.wall_ms() if is_yanked else None
        await self._store.yank_package(
            self._writing(), tenant, row.name, row.version, at, reason if is_yanked else ""
        )
        row = msgspec.structs.replace(row, yanked_at=at, yanked_reason=reason if is_yanked else "")
        self._take_in(row)
        action = "pkg.yank" if is_yanked else "pkg.unyank"
        self._announce(published_version(row), by, action)
        return row

    def note_active(self, active: ActiveVersionRecord) -> None:
        """Another version is the one that nodes without a version get; that is stored."""
        self._active[active.tenant, active.name] = active
        self.catalogs.activate(active.tenant, active.name, active.version)

    # -- finding ----------------------------------------------------------------------------

    def names(self, tenant: str) -> list[str]:
        return sorted({name for name, _ in self._seen_by(tenant)})

    def versions(self, tenant: str, name: str) -> list[PackageRow]:
        """Newest first. Raises: NotFound."""
        found = [(key, row) for (of, key), row in self._seen_by(tenant).items() if of == name]
        if not found:
            raise errors.NotFound(errors.PKG_NOT_FOUND, f"no such package: {name[:80]}")
        return [row for _, row in sorted(found, key=lambda one: one[0], reverse=True)]

    def find(self, tenant: str, name: str, version: str) -> PackageRow:
        """Raises: NotFound."""
        key = parse_version(version)
        of_tenant, shipped = self._rows.get(tenant, {}), self._rows.get(EVERY_TENANT, {})
        row = None
        if key is not None:
            row = of_tenant.get((name, key)) or shipped.get((name, key))
        if row is None:
            raise errors.NotFound(
                errors.PKG_NOT_FOUND, f"no such package: {name[:80]} {version[:80]}"
            )
        return row

    def has_shipped(self, name: str, version: str) -> bool:
        key = parse_version(version)
        return key is not None and (name, key) in self._rows.get(EVERY_TENANT, {})

    def active(self, tenant: str, name: str) -> str | None:
        """The version that nodes without one get: the active one, else the newest final release."""
        chosen = self._active.get((tenant, name))
        rows = [row for row in self.versions(tenant, name) if row.yanked_at is None]
        if chosen is not None and any(row.version == chosen.version for row in rows):
            return chosen.version
        final = [row for row in rows if not is_prerelease(_key(row)[1])]
        return next((row.version for row in (*final, *rows)), None)

    def pointer(self, tenant: str, name: str) -> ActiveVersionRecord | None:
        """What was set as the active version, if anything was."""
        return self._active.get((tenant, name))

    def archive_url(self, tenant: str, name: str, version: str) -> str:
        """Where a worker of the tenant gets this version now; yanked ones, too: a run may need it."""
        grant = ArchiveGrant(
            tenant=tenant, name=name, version=version, exp=self._signer.expiry(SIGNED_URL_S)
        )
        path = f"/api/v1/packages/{quote(name, safe='')}/{quote(version, safe='')}/archive"
        return f"{self._signer.origin}{path}?token={self._signer.make(grant)}"

    def open_signed_url(self, token: str, name: str, version: str) -> PackageRow:
        """The package that a signed URL grants. Raises: Refused, NotFound."""
        grant = self._signer.read(token, ArchiveGrant)
        if (grant.name, grant.version) != (name, version):
            raise errors.Refused(
                errors.AUTH_INVALID_TOKEN, "the signed URL is not valid, or has expired"
            )
        return self.find(grant.tenant, grant.name, grant.version)

    def read(self, row: PackageRow, start: int, end: int) -> AsyncIterator[bytes]:
        return self._blobs.read_range(_blob(row.sha256), start, end)

    # -- tidying ----------------------------------------------------------------------------

    async def sweep(self, before_ms: int) -> int:
        """Remove archives that no row refers to, and uploads that broke off, all from before then."""
        async with self._keeping:
            old = [one.key async for one in self._blobs.list(PREFIX) if one.written_at < before_ms]
            held = {_blob(row.sha256) for row in await self._store.packages()}
            doomed = [key for key in old if key not in held]
            for key in doomed:
                await self._blobs.delete(key)
        return len(doomed) + await asyncio.to_thread(_sweep_spool, self._spool, before_ms)


def _sweep_spool(spool: Path, before_ms: int) -> int:
    removed = 0
    paths: Sequence[Path] = tuple(spool.glob("upload-*"))
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # an upload may end meanwhile
            if path.stat().st_mtime * 1000 < before_ms:
                path.unlink()
                removed += 1
    return removed


def _checked(path: Path, limits: Limits) -> Archive:
    """Check an archive with all that is in it. Raises: Refused."""
    archive = check_archive(path, limits=limits)
    check_contents(
        archive
    )  # a worker would refuse it, after everybody has been told that it is there
    return archive


def _by_age(row: PackageRow) -> tuple[int, str, str]:
    return row.published_at, row.name, row.version


def _blob(sha256: str) -> str:
    return f"{PREFIX}/{sha256}"


def _key(row: PackageRow) -> tuple[str, VersionKey]:
    key = parse_version(row.version)
    assert key is not None, "a package was published without a proper version"
    return row.name, key


def published_version(row: PackageRow) -> PublishedVersion:
    """A stored package as the engine knows it."""
    signature = None if row.signature is None else row.signature.decode()
    is_yanked = row.yanked_at is not None
    return PublishedVersion(row.tenant, row.name, row.version, row.sha256, signature, is_yanked)
