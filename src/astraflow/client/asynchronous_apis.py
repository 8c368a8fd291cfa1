"""The requests of `AsyncClient`, by topic: runs, workflows, workers, packages, node types, resources.

`blocking_apis.py` is generated from this file by `make client`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from astraflow.client import requests
from astraflow.client.requests import Definition
from astraflow.core.contract.base import Page
from astraflow.core.contract.packages import (
    NodeType,
    Package,
    PackageSummary,
    PackageVersion,
    Rollout,
)
from astraflow.core.contract.resources import ArtifactLink, Resource
from astraflow.core.contract.runs import LogLine, NodeDetail, Run, RunSummary
from astraflow.core.contract.workers import Worker
from astraflow.core.contract.workflows import Workflow, WorkflowSummary

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient

__all__ = [
    "AsyncCatalogApi",
    "AsyncPackageApi",
    "AsyncResourceApi",
    "AsyncRunApi",
    "AsyncWorkerApi",
    "AsyncWorkflowApi",
]

Item = TypeVar("Item")


class _AsyncApi:
    """A group of requests of a client."""

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


class AsyncRunApi(_AsyncApi):
    """Runs: look at them, cancel them, read their output."""

    async def list(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[RunSummary]:
        """One page, newest first."""
        return await self._client.perform(requests.list_runs(limit, cursor, status, workflow_id))

    def iterate(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        limit: int | None = None,
        page_size: int = 200,
    ) -> AsyncIterator[RunSummary]:
        """All of them or so many, newest first, a page at a time."""
        return self._all(
            lambda cursor: self.list(
                status=status, workflow_id=workflow_id, limit=page_size, cursor=cursor
            ),
            limit,
        )

    async def get(self, run_id: str, *, nodes: bool = True) -> Run:
        return await self._client.perform(requests.get_run(run_id, nodes))

    async def node(self, run_id: str, node_id: str) -> NodeDetail:
        return await self._client.perform(requests.get_node(run_id, node_id))

    async def definition(self, run_id: str) -> dict[str, Any]:
        return await self._client.perform(requests.get_definition(run_id))

    async def cancel(self, run_id: str) -> Run:
        return await self._client.perform(requests.cancel_run(run_id))

    async def rebind(self, run_id: str, running: Literal["keep", "restart"] = "keep") -> None:
        await self._client.perform(requests.rebind_run(run_id, running))

    def logs(self, run_id: str, *, node_id: str | None = None) -> AsyncIterator[LogLine]:
        """The output of the nodes so far, oldest first."""
        return self._all(
            lambda cursor: self._client.perform(requests.list_logs(run_id, node_id, 200, cursor))
        )


class AsyncWorkflowApi(_AsyncApi):
    """Saved workflows."""

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[WorkflowSummary]:
        return await self._client.perform(requests.list_workflows(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> AsyncIterator[WorkflowSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, workflow_id: str, version: int | None = None) -> Workflow:
        return await self._client.perform(requests.get_workflow(workflow_id, version))

    async def create(self, definition: Definition, *, draft: bool = False) -> Workflow:
        """A new workflow. A `draft` may have errors; else it is Refused with all of them."""
        return await self._client.perform(requests.create_workflow(definition, draft))

    async def save(
        self,
        workflow_id: str,
        definition: Definition,
        *,
        if_version: int | None = None,
        draft: bool = False,
    ) -> Workflow:
        """A new version. With `if_version` only if that one is still the newest; else Conflict."""
        return await self._client.perform(
            requests.save_workflow(workflow_id, definition, if_version, draft)
        )

    async def delete(self, workflow_id: str, *, if_version: int | None = None) -> None:
        await self._client.perform(requests.delete_workflow(workflow_id, if_version))

    async def validate(self, definition: Definition) -> None:
        """Raises: Refused, whose `detail["errors"]` lists all that is wrong."""
        await self._client.perform(requests.validate_workflow(definition))


class AsyncWorkerApi(_AsyncApi):
    """Workers: list them, and give them commands."""

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Worker]:
        return await self._client.perform(requests.list_workers(limit, cursor))

    def iterate(self, *, limit: int | None = None, page_size: int = 200) -> AsyncIterator[Worker]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, worker_id: str) -> Worker:
        return await self._client.perform(requests.get_worker(worker_id))

    async def command(self, worker_id: str, command: Mapping[str, Any]) -> str:
        """Give a worker a command, as `{"type": "drain"}`; returns the id of the command."""
        return (await self._client.perform(requests.command_worker(worker_id, command))).command_id


class AsyncPackageApi(_AsyncApi):
    """Packages: publish them, withdraw them, choose the version that counts."""

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PackageSummary]:
        return await self._client.perform(requests.list_packages(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> AsyncIterator[PackageSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, name: str) -> Package:
        return await self._client.perform(requests.get_package(name))

    async def version(self, name: str, version: str) -> PackageVersion:
        """One version, with its manifest."""
        return await self._client.perform(requests.get_package_version(name, version))

    async def publish(self, path: Path, signature: str | None = None) -> PackageVersion:
        """Publish a `.cwx` file; `signature` is the text of its detached signature.

        Raises:
            Refused: it is no package, or not signed as it must be.
            Conflict: this version is published with another content.
            OSError: the file cannot be read.
        """
        return await self._client.perform(requests.publish_package(path, signature))

    async def yank(self, name: str, version: str, reason: str = "") -> PackageVersion:
        """Withdraw a version: nothing new gets it."""
        return await self._client.perform(requests.yank_package(name, version, reason))

    async def unyank(self, name: str, version: str) -> PackageVersion:
        return await self._client.perform(requests.unyank_package(name, version))

    async def activate(self, name: str, version: str) -> str | None:
        """Choose the version that nodes without one get; returns the one before."""
        return (await self._client.perform(requests.activate_package(name, version))).previous

    async def start_rollout(self, name: str, version: str, **more: Any) -> Rollout:
        """Bring a version to all workers, in waves: `waves=[10, 50, 100]`, `soakSeconds=30`."""
        return await self._client.perform(
            requests.start_rollout(name, {"version": version, **more})
        )

    async def rollouts(self, name: str) -> builtins.list[Rollout]:
        """Newest first."""
        return (await self._client.perform(requests.list_rollouts(name))).items

    async def roll_back(self, name: str) -> str:
        """Go back to the version that was active before; returns it."""
        return (await self._client.perform(requests.roll_back(name))).version


class AsyncCatalogApi(_AsyncApi):
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
        request = requests.list_node_types(q, category, package, limit, cursor)
        return await self._client.perform(request)

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
            ),
            limit,
        )

    async def get(self, node_type: str, *, package: str | None = None) -> NodeType:
        return await self._client.perform(requests.get_node_type(node_type, package))


class AsyncResourceApi(_AsyncApi):
    """What workers keep, and the artifacts among it."""

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
        request = requests.list_resources(limit, cursor, run_id, worker_id, type, state)
        return await self._client.perform(request)

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200, **wanted: str | None
    ) -> AsyncIterator[Resource]:
        """All of them, newest first; `wanted` as in `list`."""
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor, **wanted), limit)

    async def get(self, resource_id: str, *, worker_id: str | None = None) -> Resource:
        return await self._client.perform(requests.get_resource(resource_id, worker_id))

    async def extend(
        self, resource_id: str, ttl_s: int, *, worker_id: str | None = None
    ) -> Resource:
        """Keep it for so long from now."""
        return await self._client.perform(requests.extend_resource(resource_id, worker_id, ttl_s))

    async def close(self, resource_id: str, *, worker_id: str | None = None) -> None:
        await self._client.perform(requests.close_resource(resource_id, worker_id))

    async def share(self, resource_id: str, *, worker_id: str | None = None) -> ArtifactLink:
        """A signed URL of an artifact: whoever has it needs no token, for an hour."""
        return await self._client.perform(requests.share_artifact(resource_id, worker_id))

    async def download(self, resource_id: str, into: Path, *, worker_id: str | None = None) -> int:
        """Download an artifact into a file; its size. An interrupted download is continued, and the digest is checked.

        Raises:
            NotFound: no such resource.
            Unavailable: its worker is away, or the server is.
            OSError: the file cannot be written.
        """
        path, params = requests.artifact_path(resource_id), requests.on_worker(worker_id)
        return await self._client.fetch(path, params, into)
