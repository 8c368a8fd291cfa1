"""The requests of `AsyncClient`, by topic: runs, workflows, workers, packages, node types, resources.

A method has the signature and the docstring of the function of `requests` that it is made of.
`blocking_apis.py` is generated from this file by `make client`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from astraflow.client import requests
from astraflow.client.requests import ApiRequest, Pages

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient

P = ParamSpec("P")
Item = TypeVar("Item")
Response = TypeVar("Response")


class _AsyncApi:
    """A group of requests of a client."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client


class _AsyncCall(Generic[P, Response]):
    """A method that sends one request."""

    def __init__(self, make: Callable[P, ApiRequest[Response]]) -> None:
        self._make = make

    def __get__(self, api: _AsyncApi, _: type[_AsyncApi]) -> Callable[P, Awaitable[Response]]:
        @wraps(self._make)
        async def call(*args: P.args, **named: P.kwargs) -> Response:
            return await api.client.perform(self._make(*args, **named))

        return call


class _AsyncList(Generic[P, Item]):
    """A method that sends the requests of a list, a page at a time."""

    def __init__(self, make: Callable[P, Pages[Item]]) -> None:
        self._make = make

    def __get__(self, api: _AsyncApi, _: type[_AsyncApi]) -> Callable[P, AsyncIterator[Item]]:
        @wraps(self._make)
        async def call(*args: P.args, **named: P.kwargs) -> AsyncIterator[Item]:
            pages = self._make(*args, **named)
            cursor: str | None = None
            left = pages.limit
            while left is None or left > 0:
                found = await api.client.perform(pages.after(cursor))
                for item in found.items[:left]:
                    yield item
                left = None if left is None else left - len(found.items)
                cursor = found.next_cursor
                if cursor is None:
                    return

        return call


class AsyncRunApi(_AsyncApi):
    """Runs: look at them, cancel them, read their output."""

    list = _AsyncCall(requests.list_runs)
    iterate = _AsyncList(requests.iterate_runs)
    get = _AsyncCall(requests.get_run)
    node = _AsyncCall(requests.get_node)
    definition = _AsyncCall(requests.get_definition)
    cancel = _AsyncCall(requests.cancel_run)
    rebind = _AsyncCall(requests.rebind_run)
    logs = _AsyncList(requests.iterate_logs)


class AsyncWorkflowApi(_AsyncApi):
    """Saved workflows."""

    list = _AsyncCall(requests.list_workflows)
    iterate = _AsyncList(requests.iterate_workflows)
    get = _AsyncCall(requests.get_workflow)
    create = _AsyncCall(requests.create_workflow)
    save = _AsyncCall(requests.save_workflow)
    delete = _AsyncCall(requests.delete_workflow)
    validate = _AsyncCall(requests.validate_workflow)


class AsyncWorkerApi(_AsyncApi):
    """Workers: list them, and give them commands."""

    list = _AsyncCall(requests.list_workers)
    iterate = _AsyncList(requests.iterate_workers)
    get = _AsyncCall(requests.get_worker)
    command = _AsyncCall(requests.command_worker)


class AsyncPackageApi(_AsyncApi):
    """Packages: publish them, withdraw them, choose the version that counts."""

    list = _AsyncCall(requests.list_packages)
    iterate = _AsyncList(requests.iterate_packages)
    get = _AsyncCall(requests.get_package)
    version = _AsyncCall(requests.get_package_version)
    publish = _AsyncCall(requests.publish_package)
    yank = _AsyncCall(requests.yank_package)
    unyank = _AsyncCall(requests.unyank_package)
    activate = _AsyncCall(requests.activate_package)
    start_rollout = _AsyncCall(requests.start_rollout)
    rollouts = _AsyncCall(requests.list_rollouts)
    roll_back = _AsyncCall(requests.roll_back)


class AsyncCatalogApi(_AsyncApi):
    """The node types that workflows can use."""

    list = _AsyncCall(requests.list_node_types)
    iterate = _AsyncList(requests.iterate_node_types)
    get = _AsyncCall(requests.get_node_type)


class AsyncResourceApi(_AsyncApi):
    """What workers keep, and the artifacts among it."""

    list = _AsyncCall(requests.list_resources)
    iterate = _AsyncList(requests.iterate_resources)
    get = _AsyncCall(requests.get_resource)
    extend = _AsyncCall(requests.extend_resource)
    close = _AsyncCall(requests.close_resource)
    share = _AsyncCall(requests.share_artifact)

    async def download(self, resource_id: str, into: Path, *, worker_id: str | None = None) -> int:
        """Download an artifact into a file; its size. An interrupted download is continued, and the digest is checked.

        Raises:
            NotFound: no such resource.
            Unavailable: its worker is away, or the server is.
            OSError: the file cannot be written.
        """
        path, params = requests.artifact_path(resource_id), requests.on_worker(worker_id)
        return await self.client.fetch(path, params, into)
