"""What `AsyncClient` does with packages, node types and resources."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from astraflow.client import package_calls as calls
from astraflow.client.models import (
    ArtifactLink,
    NodeType,
    Package,
    PackageSummary,
    PackageVersion,
    Page,
    Resource,
)

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient

__all__ = ["Catalog", "Packages", "Part", "Resources"]

Item = TypeVar("Item")


class Part:
    """A part of a client."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def _all(
        self, page: Callable[[str | None], Awaitable[Page[Item]]], limit: int | None = None
    ) -> AsyncIterator[Item]:
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            found = await page(cursor)
            for item in found.items[:left]:
                yield item
            left = None if left is None else left - len(found.items)
            cursor = found.next_cursor
            if cursor is None:
                return


class Packages(Part):
    """Packages: publish them, withdraw them, choose the version that counts."""

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PackageSummary]:
        return await self._client.perform(calls.list_packages(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> AsyncIterator[PackageSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, name: str) -> Package:
        return await self._client.perform(calls.get_package(name))

    async def version(self, name: str, version: str) -> PackageVersion:
        """One version, with its manifest."""
        return await self._client.perform(calls.get_package_version(name, version))

    async def publish(self, path: Path, signature: str | None = None) -> PackageVersion:
        """Publish a `.cwx` file; `signature` is the text of its detached signature.

        Raises:
            Refused: it is no package, or not signed as it must be.
            Conflict: this version is published with another content.
            OSError: the file cannot be read.
        """
        return await self._client.perform(calls.publish_package(path, signature))

    async def yank(self, name: str, version: str, reason: str = "") -> PackageVersion:
        """Withdraw a version: nothing new gets it."""
        return await self._client.perform(calls.yank_package(name, version, reason))

    async def unyank(self, name: str, version: str) -> PackageVersion:
        return await self._client.perform(calls.unyank_package(name, version))

    async def activate(self, name: str, version: str) -> str | None:
        """Choose the version that nodes without one get; returns the one before."""
        changed = await self._client.perform(calls.activate_package(name, version))
        previous: str | None = changed["previous"]
        return previous

    async def start_rollout(self, name: str, version: str, **more: Any) -> dict[str, Any]:
        """Bring a version to all workers, in waves: `waves=[10, 50, 100]`, `soakSeconds=30`."""
        return await self._client.perform(calls.start_rollout(name, {"version": version, **more}))

    async def rollouts(self, name: str) -> builtins.list[dict[str, Any]]:
        """Newest first."""
        found = await self._client.perform(calls.list_rollouts(name))
        items: builtins.list[dict[str, Any]] = found["items"]
        return items

    async def roll_back(self, name: str) -> str:
        """Go back to the version that was active before; returns it."""
        return str((await self._client.perform(calls.roll_back(name)))["version"])


class Catalog(Part):
    """The node types that workflows can use."""

    async def list(
        self,
        q: str | None = None,
        *,
        category: str | None = None,
        package: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[NodeType]:
        """One page, best fit first."""
        call = calls.list_node_types(q, category, package, limit, cursor)
        return await self._client.perform(call)

    def iterate(
        self,
        q: str | None = None,
        *,
        category: str | None = None,
        package: str | None = None,
        limit: int | None = None,
        page_size: int = 200,
    ) -> AsyncIterator[NodeType]:
        return self._all(
            lambda cursor: self.list(
                q, category=category, package=package, limit=page_size, cursor=cursor
            )
        )

    async def get(self, node_type: str, *, package: str | None = None) -> NodeType:
        return await self._client.perform(calls.get_node_type(node_type, package))


class Resources(Part):
    """What workers hold, and the artifacts among it."""

    async def list(
        self,
        *,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Resource]:
        """One page, newest first."""
        call = calls.list_resources(limit, cursor, run_id, worker_id, type, state)
        return await self._client.perform(call)

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200, **wanted: str | None
    ) -> AsyncIterator[Resource]:
        """All of them, newest first; `wanted` as in `list`."""
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor, **wanted), limit)

    async def get(self, resource_id: str, *, worker_id: str | None = None) -> Resource:
        return await self._client.perform(calls.get_resource(resource_id, worker_id))

    async def extend(
        self, resource_id: str, ttl_s: int, *, worker_id: str | None = None
    ) -> Resource:
        """Let it live for so long from now."""
        return await self._client.perform(calls.extend_resource(resource_id, worker_id, ttl_s))

    async def close(self, resource_id: str, *, worker_id: str | None = None) -> None:
        await self._client.perform(calls.close_resource(resource_id, worker_id))

    async def share(self, resource_id: str, *, worker_id: str | None = None) -> ArtifactLink:
        """A link to an artifact for who has no token, for an hour."""
        return await self._client.perform(calls.share_artifact(resource_id, worker_id))

    async def download(self, resource_id: str, into: Path, *, worker_id: str | None = None) -> int:
        """Fetch an artifact into a file; its size. What breaks off goes on, and its digest is checked.

        Raises:
            NotFound: no such resource.
            Unavailable: its worker is away, or the server is.
            OSError: the file cannot be written.
        """
        params = {} if worker_id is None else {"workerId": worker_id}
        return await self._client.fetch(calls.artifact_path(resource_id), params, into)
