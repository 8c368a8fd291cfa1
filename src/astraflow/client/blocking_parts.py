"""What `Client` does with packages, node types and resources."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
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
    from astraflow.client.blocking import Client

__all__ = ["Catalog", "Packages", "Part", "Resources"]

Item = TypeVar("Item")


class Part:
    """A part of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _all(
        self, page: Callable[[str | None], Page[Item]], limit: int | None = None
    ) -> Iterator[Item]:
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            found = page(cursor)
            yield from found.items[:left]
            left = None if left is None else left - len(found.items)
            cursor = found.next_cursor
            if cursor is None:
                return


class Packages(Part):
    """Packages: publish them, withdraw them, choose the version that counts."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[PackageSummary]:
        return self._client.perform(calls.list_packages(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> Iterator[PackageSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    def get(self, name: str) -> Package:
        return self._client.perform(calls.get_package(name))

    def version(self, name: str, version: str) -> PackageVersion:
        """One version, with its manifest."""
        return self._client.perform(calls.get_package_version(name, version))

    def publish(self, path: Path, signature: str | None = None) -> PackageVersion:
        """Publish a `.cwx` file; `signature` is the text of its detached signature.

        Raises:
            Refused: it is no package, or not signed as it must be.
            Conflict: this version is published with another content.
            OSError: the file cannot be read.
        """
        return self._client.perform(calls.publish_package(path, signature))

    def yank(self, name: str, version: str, reason: str = "") -> PackageVersion:
        """Withdraw a version: nothing new gets it."""
        return self._client.perform(calls.yank_package(name, version, reason))

    def unyank(self, name: str, version: str) -> PackageVersion:
        return self._client.perform(calls.unyank_package(name, version))

    def activate(self, name: str, version: str) -> str | None:
        """Choose the version that nodes without one get; returns the one before."""
        changed = self._client.perform(calls.activate_package(name, version))
        previous: str | None = changed["previous"]
        return previous

    def start_rollout(self, name: str, version: str, **more: Any) -> dict[str, Any]:
        """Bring a version to all workers, in waves: `waves=[10, 50, 100]`, `soakSeconds=30`."""
        return self._client.perform(calls.start_rollout(name, {"version": version, **more}))

    def rollouts(self, name: str) -> builtins.list[dict[str, Any]]:
        """Newest first."""
        found = self._client.perform(calls.list_rollouts(name))
        items: builtins.list[dict[str, Any]] = found["items"]
        return items

    def roll_back(self, name: str) -> str:
        """Go back to the version that was active before; returns it."""
        return str((self._client.perform(calls.roll_back(name)))["version"])


class Catalog(Part):
    """The node types that workflows can use."""

    def list(
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
        return self._client.perform(call)

    def iterate(
        self,
        q: str | None = None,
        *,
        category: str | None = None,
        package: str | None = None,
        limit: int | None = None,
        page_size: int = 200,
    ) -> Iterator[NodeType]:
        return self._all(
            lambda cursor: self.list(
                q, category=category, package=package, limit=page_size, cursor=cursor
            )
        )

    def get(self, node_type: str, *, package: str | None = None) -> NodeType:
        return self._client.perform(calls.get_node_type(node_type, package))


class Resources(Part):
    """What workers hold, and the artifacts among it."""

    def list(
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
        return self._client.perform(call)

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200, **wanted: str | None
    ) -> Iterator[Resource]:
        """All of them, newest first; `wanted` as in `list`."""
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor, **wanted), limit)

    def get(self, resource_id: str, *, worker_id: str | None = None) -> Resource:
        return self._client.perform(calls.get_resource(resource_id, worker_id))

    def extend(self, resource_id: str, ttl_s: int, *, worker_id: str | None = None) -> Resource:
        """Let it live for so long from now."""
        return self._client.perform(calls.extend_resource(resource_id, worker_id, ttl_s))

    def close(self, resource_id: str, *, worker_id: str | None = None) -> None:
        self._client.perform(calls.close_resource(resource_id, worker_id))

    def share(self, resource_id: str, *, worker_id: str | None = None) -> ArtifactLink:
        """A link to an artifact for who has no token, for an hour."""
        return self._client.perform(calls.share_artifact(resource_id, worker_id))

    def download(self, resource_id: str, into: Path, *, worker_id: str | None = None) -> int:
        """Fetch an artifact into a file; its size. What breaks off goes on, and its digest is checked.

        Raises:
            NotFound: no such resource.
            Unavailable: its worker is away, or the server is.
            OSError: the file cannot be written.
        """
        params = {} if worker_id is None else {"workerId": worker_id}
        return self._client.fetch(calls.artifact_path(resource_id), params, into)
