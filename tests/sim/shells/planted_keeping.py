"""Bugs planted in the shells of what workers keep: resources, copies, installs, active versions and their rows."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core.engine.commands import NoteCopy
from astraflow.core.fleet.versions import ActiveVersionRecord
from astraflow.core.protocol import business
from astraflow.scheduler import serving
from astraflow.scheduler.copies import PREFIX, Copies, Copy
from astraflow.scheduler.current import Current
from astraflow.scheduler.writer import Writer
from astraflow.store.rows import Changes
from astraflow.worker.hosts import HostPool
from astraflow.worker.packages import PackageInstaller
from astraflow.worker.resources import RegistryBroker, ResourceService

__all__ = [
    "activeearly",
    "copyearly",
    "deafinstaller",
    "deafpool",
    "exporthides",
    "hostforgotten",
    "installearly",
    "leasekept",
    "releaseuntold",
    "resourcesunread",
    "rowbeforeblob",
]


def _nothing(*_: Any) -> None:
    """What should be done is not."""


def copyearly() -> AbstractContextManager[Any]:
    """A copy is acknowledged to the worker that uploads it before its row is committed."""

    async def broken(self: Current, key: tuple[str, str, str], blob: str) -> None:
        tenant, worker_id, resource_id = key
        self.execute(
            NoteCopy(tenant=tenant, worker_id=worker_id, resource_id=resource_id, blob=blob)
        )

    return patch.object(Current, "note_copy", broken)


def rowbeforeblob() -> AbstractContextManager[Any]:
    """The row of a resource names its copy before the copy is there."""

    async def broken(self: Copies, grant: Any, chunks: Any) -> Copy:
        key = (grant.tenant, grant.worker_id, grant.resource_id)
        place = f"{PREFIX}/{grant.resource_id}"
        await self._note(key, Copy(place, "0" * 64).text())
        written = await self._blobs.put_stream(place, chunks, grant.max_bytes)
        return Copy(place, written.sha256)

    return patch.object(Copies, "receive", broken)


def releaseuntold() -> AbstractContextManager[Any]:
    """A worker lets go of what it is asked to let go of, and does not say so."""
    tell = ResourceService._tell

    def broken(self: ResourceService, event: business.ResourceEvent, lane: int) -> None:
        if event.state != "released":
            tell(self, event, lane)

    return patch.object(ResourceService, "_tell", broken)


def exporthides() -> AbstractContextManager[Any]:
    """After an upload a worker says that the resource is there, whatever became of it meanwhile."""

    def broken(
        self: ResourceService, resource_id: str, lane: int, error: str | None = None
    ) -> None:
        found = self.registry.find(resource_id)
        if found is not None:
            self._tell(found.event("touched"), lane)

    return patch.object(ResourceService, "_tell_state", broken)


def installearly() -> AbstractContextManager[Any]:
    """The outcome of an install is reported before the version is in the inventory."""
    install = PackageInstaller._install

    async def broken(self: PackageInstaller, request: business.PkgInstall) -> None:
        self._notices.said((request.name, request.version), "installed")
        await install(self, request)

    return patch.object(PackageInstaller, "_install", broken)


def resourcesunread() -> AbstractContextManager[Any]:
    """A scheduler that starts takes the rows of all resources for rows of what is gone."""
    return patch.object(serving, "GONE", frozenset(("ready", "evicting", "evicted", "released")))


def activeearly() -> AbstractContextManager[Any]:
    """Another version is told as the active one before that is committed."""
    commit = Writer._commit

    async def broken(self: Writer, changes: Changes) -> None:
        for row in changes.active_versions:
            blobs = self._effects._blobs
            assert blobs is not None
            blobs.repository.note_active(ActiveVersionRecord(*msgspec.structs.astuple(row)))
        await commit(self, changes)

    return patch.object(Writer, "_commit", broken)


def deafinstaller() -> AbstractContextManager[Any]:
    """An order to remove a version wakes nobody."""
    uninstall = PackageInstaller.uninstall

    def broken(self: PackageInstaller, request: business.PkgUninstall) -> None:
        woken, self._woken = self._woken, asyncio.Event()
        uninstall(self, request)
        self._woken = woken

    return patch.object(PackageInstaller, "uninstall", broken)


def deafpool() -> AbstractContextManager[Any]:
    """Nobody is told when the hosts of a version that is to be removed are dead."""
    init = HostPool.__init__

    def broken(self: HostPool, **how: Any) -> None:
        init(self, **{**how, "changed": _nothing})

    return patch.object(HostPool, "__init__", broken)


def leasekept() -> AbstractContextManager[Any]:
    """The end of an attempt does not release what it leases."""
    return patch.object(RegistryBroker, "ended", _nothing)


def hostforgotten() -> AbstractContextManager[Any]:
    """The death of a host does not end the objects that it kept."""
    return patch.object(RegistryBroker, "host_gone", _nothing)
