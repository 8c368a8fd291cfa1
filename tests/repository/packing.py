"""Archives to publish, and a repository to publish them to."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from astraflow.clock import SystemClock
from astraflow.core.workflow import core_manifest
from astraflow.packages import SigningKey, TrustedKeys, build_archive, sign
from astraflow.scheduler.blobs import open_blobs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.copies import Copies
from astraflow.scheduler.depot import Depot
from astraflow.scheduler.links import Links
from astraflow.scheduler.repository import Repository, Rules
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
        self.links = Links(b"a secret for tests only", CLOCK)
        self.catalogs = Catalogs([core_manifest()])
        self.spool = folder / "uploads"
        self.repository = Repository(
            store,
            self.blobs,
            self.links,
            CLOCK,
            self.catalogs,
            spool=self.spool,
            rules=rules,
            origin="https://astra.example",
        )
        self.copies = Copies(store, self.blobs, self.links, CLOCK, origin="https://astra.example")
        self.depot = Depot(self.repository, self.copies, CLOCK)
        self.changes: list[tuple[str, str, str, str]] = []

    async def begin(self) -> None:
        claim = await self.store.claim("one")
        assert claim is not None
        self.claim = claim
        await self.depot.begin(claim, lambda *change: self.changes.append(change))

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
