"""Archives to publish, and a repository to publish them to."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.fleet.versions import ActiveVersionRecord, PublishedVersion
from astraflow.core.workflow import core_manifest
from astraflow.packages import SigningKey, TrustedKeys, build_archive, sign
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.blobs import open_blobs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.copies import Copies
from astraflow.scheduler.repository import Repository, Rules
from astraflow.scheduler.signed_urls import UrlSigner
from astraflow.store.packages import PACKAGES_CHANGE
from astraflow.store.rows import ActiveRow, Changes, SiteRow
from astraflow.store.store import Store
from tests.packages.archives import manifest, write_folder

CLOCK = SystemClock()


def pack(version: str = "1.0.0", **fields: Any) -> bytes:
    """A package that works."""
    with tempfile.TemporaryDirectory() as folder:
        source = write_folder(Path(folder) / "source", manifest(version=version, **fields))
        return build_archive(source, Path(folder) / "out").path.read_bytes()


def signed(archive: bytes, key: SigningKey) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "package.cwx"
        path.write_bytes(archive)
        return sign(path, key, "ann", "2026-01-15T10:00:00Z").text()


async def chunks(body: bytes, size: int = 1_000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


class Place:
    """A repository in a folder, with everything that a scheduler gives it."""

    def __init__(self, store: Store, folder: Path, rules: Rules | None = None) -> None:
        self.store = store
        self.blobs = open_blobs(None, folder)
        self.signer = UrlSigner([b"a secret for tests only"], CLOCK, "https://astra.example")
        self.catalogs = Catalogs([core_manifest()])
        self.spool = folder / "uploads"
        self.repository = Repository(
            store,
            self.blobs,
            self.signer,
            CLOCK,
            self.catalogs,
            spool=self.spool,
            announce=self._announce,
            rules=rules,
        )
        self.copies = Copies(store, self.blobs, self.signer, CLOCK, self._note)
        self.services = BlobServices(self.repository, self.copies, CLOCK)
        self.changes: list[tuple[str, str, str, str]] = []
        self.copied: dict[tuple[str, str, str], str] = {}
        self.known: set[tuple[str, str, str]] = set()  # the resources that the engine knows
        self._commits = 0

    def _announce(self, version: PublishedVersion, by: str, action: str) -> None:
        self.changes.append((version.tenant, by, action, f"{version.name} {version.version}"))

    async def _note(self, key: tuple[str, str, str], blob: str) -> None:
        """As the engine does."""
        if key not in self.known:
            raise errors.NotFound(errors.RESOURCE_MISSING, f"not known any more: {key[2]}")
        self.copied[key] = blob

    async def begin(self) -> None:
        claim = await self.store.claim("one")
        assert claim is not None
        self.claim = claim
        await self.services.begin(claim)

    async def activate(self, tenant: str, name: str, version: str) -> ActiveVersionRecord:
        """As the engine does, with its commit."""
        row = self.repository.find(tenant, name, version)
        before = self.repository.pointer(tenant, name)
        previous = None if before is None else before.version
        active = ActiveVersionRecord(tenant, name, row.version, previous, CLOCK.wall_ms(), "ann")
        self._commits += 1
        mark = SiteRow(PACKAGES_CHANGE, f"activation {self._commits}")
        rows = [ActiveRow(*msgspec.structs.astuple(active))]
        changes = Changes(active_versions=rows, site=[mark])
        await self.store.commit(self.claim, self._commits, changes)
        self.repository.note_active(active)
        return active

    async def publish(
        self, archive: bytes, signature: str | None = None, tenant: str = "default"
    ) -> bool:
        _, is_new = await self.repository.publish(tenant, chunks(archive), signature, "ann")
        return is_new

    def held(self) -> set[str]:
        """The blobs that are there."""
        folder = self.spool.parent / "blobs"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def trusting(key: SigningKey, policy: Any = "require") -> Rules:
    return Rules(policy, TrustedKeys.parse([f"acme={key.public}"]))
