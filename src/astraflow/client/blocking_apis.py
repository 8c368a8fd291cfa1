"""The requests of `Client`, by topic. Made by `make client`: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from astraflow.client import requests
from astraflow.client.requests import ApiRequest, Pages

if TYPE_CHECKING:
    from astraflow.client.blocking import Client

P = ParamSpec("P")
Item = TypeVar("Item")
Response = TypeVar("Response")


class _Api:
    """A group of requests of a client."""

    def __init__(self, client: Client) -> None:
        self.client = client


class _Call(Generic[P, Response]):
    """A method that sends one request."""

    def __init__(self, make: Callable[P, ApiRequest[Response]]) -> None:
        self._make = make

    def __get__(self, api: _Api, _: type[_Api]) -> Callable[P, Response]:
        @wraps(self._make)
        def call(*args: P.args, **named: P.kwargs) -> Response:
            return api.client.perform(self._make(*args, **named))

        return call


class _List(Generic[P, Item]):
    """A method that sends the requests of a list, a page at a time."""

    def __init__(self, make: Callable[P, Pages[Item]]) -> None:
        self._make = make

    def __get__(self, api: _Api, _: type[_Api]) -> Callable[P, Iterator[Item]]:
        @wraps(self._make)
        def call(*args: P.args, **named: P.kwargs) -> Iterator[Item]:
            pages = self._make(*args, **named)
            cursor: str | None = None
            left = pages.limit
            while left is None or left > 0:
                found = api.client.perform(pages.after(cursor))
                yield from found.items[:left]
                left = None if left is None else left - len(found.items)
                cursor = found.next_cursor
                if cursor is None:
                    return

        return call


class RunApi(_Api):
    """Runs: look at them, cancel them, read their output."""

    list = _Call(requests.list_runs)
    iterate = _List(requests.iterate_runs)
    get = _Call(requests.get_run)
    node = _Call(requests.get_node)
    definition = _Call(requests.get_definition)
    cancel = _Call(requests.cancel_run)
    rebind = _Call(requests.rebind_run)
    logs = _List(requests.iterate_logs)


class WorkflowApi(_Api):
    """Saved workflows."""

    list = _Call(requests.list_workflows)
    iterate = _List(requests.iterate_workflows)
    get = _Call(requests.get_workflow)
    create = _Call(requests.create_workflow)
    save = _Call(requests.save_workflow)
    delete = _Call(requests.delete_workflow)
    validate = _Call(requests.validate_workflow)


class WorkerApi(_Api):
    """Workers: list them, and give them commands."""

    list = _Call(requests.list_workers)
    iterate = _List(requests.iterate_workers)
    get = _Call(requests.get_worker)
    command = _Call(requests.command_worker)


class PackageApi(_Api):
    """Packages: publish them, withdraw them, choose the version that counts."""

    list = _Call(requests.list_packages)
    iterate = _List(requests.iterate_packages)
    get = _Call(requests.get_package)
    version = _Call(requests.get_package_version)
    publish = _Call(requests.publish_package)
    yank = _Call(requests.yank_package)
    unyank = _Call(requests.unyank_package)
    activate = _Call(requests.activate_package)
    start_rollout = _Call(requests.start_rollout)
    rollouts = _Call(requests.list_rollouts)
    roll_back = _Call(requests.roll_back)


class CatalogApi(_Api):
    """The node types that workflows can use."""

    list = _Call(requests.list_node_types)
    iterate = _List(requests.iterate_node_types)
    get = _Call(requests.get_node_type)


class ResourceApi(_Api):
    """What workers keep, and the artifacts among it."""

    list = _Call(requests.list_resources)
    iterate = _List(requests.iterate_resources)
    get = _Call(requests.get_resource)
    extend = _Call(requests.extend_resource)
    close = _Call(requests.close_resource)
    share = _Call(requests.share_artifact)

    def download(self, resource_id: str, into: Path, *, worker_id: str | None = None) -> int:
        """Download an artifact into a file; its size. An interrupted download is continued, and the digest is checked.

        Raises:
            NotFound: no such resource.
            Unavailable: its worker is away, or the server is.
            OSError: the file cannot be written.
        """
        path, params = requests.artifact_path(resource_id), requests.on_worker(worker_id)
        return self.client.fetch(path, params, into)
