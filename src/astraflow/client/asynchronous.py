"""`AsyncClient`: for programs with an event loop. `Client` is generated from this file by `make client`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

from astraflow.client import requests
from astraflow.client.apis import (
    ApprovalApi,
    AuditApi,
    CatalogApi,
    DiscoveryApi,
    PackageApi,
    PoolApi,
    ResourceApi,
    RunApi,
    SecretApi,
    TenantApi,
    TokenApi,
    TriggerApi,
    UserApi,
    WorkerApi,
    WorkflowApi,
)
from astraflow.client.endpoint import find_endpoint
from astraflow.client.outcomes import results_of
from astraflow.client.requests import ApiDownload, ApiRequest, Definition, Pages
from astraflow.client.responses import raise_problem
from astraflow.client.retries import Retries
from astraflow.client.stream import PATIENCE_S, Cut, EventReader, Following, MixedFollowing
from astraflow.client.transfers import Fetching, aread_pieces
from astraflow.client.transport import (
    EVENTS,
    STREAM,
    Failure,
    failure_of,
    httpx,
    options,
    read_response,
    refuse_late,
    refuse_stream,
    stream_timeout,
    why,
)
from astraflow.clock import Clock, SystemClock
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.node_results import NodeResults
from astraflow.core.contract.runs import Node, Run
from astraflow.core.contract.streams import FollowStream, StreamItem
from astraflow.core.contract.system import Me

Item = TypeVar("Item")
Response = TypeVar("Response")


class AsyncClient:
    """A scheduler, as one token sees it. Close it, or use it in a `with` block.

    Without arguments it finds the server as the command line does: `ASTRA_SERVER` and `ASTRA_TOKEN`, else what
    `astra up` has left in `var/`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport`: what requests are sent with in place of connections."""
        self.endpoint = find_endpoint(url, token)
        self._http = httpx.AsyncClient(**options(self.endpoint), transport=transport)
        self._clock = clock or SystemClock()
        self.runs = RunApi(self)
        self.discovery = DiscoveryApi(self)
        self.workflows = WorkflowApi(self)
        self.workers = WorkerApi(self)
        self.packages = PackageApi(self)
        self.catalog = CatalogApi(self)
        self.resources = ResourceApi(self)
        self.approvals = ApprovalApi(self)
        self.pools = PoolApi(self)
        self.secrets = SecretApi(self)
        self.triggers = TriggerApi(self)
        self.tokens = TokenApi(self)
        self.users = UserApi(self)
        self.tenants = TenantApi(self)
        self.audit = AuditApi(self)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def run(
        self,
        workflow: Definition | str,
        inputs: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        use_pinned: bool = False,
    ) -> AsyncRunHandle:
        """Start a run of a definition, or of the saved workflow with this id.

        With `use_pinned`, nodes with a pinned result have it in place of running.

        It is retried when it is unknown whether it arrived, always with the same key: there is one run.

        Raises:
            Refused: the definition or the inputs are not valid; `detail["errors"]` lists all that is wrong.
            Conflict: the key was used with another request.
            Unavailable: the server does not respond.
        """
        key = idempotency_key or str(uuid.uuid4())
        request = requests.submit(workflow, inputs, key, version, use_pinned=use_pinned)
        accepted = await self.perform(request)
        return AsyncRunHandle(self, accepted.run_id)

    def handle(self, run_id: str) -> AsyncRunHandle:
        """A handle on a run that was started elsewhere. This sends no request."""
        return AsyncRunHandle(self, run_id)

    async def me(self) -> Me:
        return await self.perform(requests.get_me())

    async def is_ready(self) -> bool:
        """Whether the scheduler takes requests."""
        try:
            found = await self._try(requests.get_readiness())
        except errors.AstraflowError:
            return False
        return not isinstance(found, Failure)

    async def follow(
        self,
        run_id: str,
        after: int = 0,
        *,
        patience_s: float = PATIENCE_S,
        timeout_s: float | None = None,
        on_cut: Callable[[str], None] | None = None,
    ) -> AsyncIterator[Event]:
        """The events of a run beyond `after`, until its last. It reconnects when the connection is lost.

        Raises:
            NotFound: no such run.
            Unavailable: the server is gone for more than `patience_s`, or the run goes on after `timeout_s`.
        """
        following = Following(run_id, after, self._clock.now(), patience_s)
        until = None if timeout_s is None else self._clock.now() + timeout_s
        while not following.is_over:
            try:
                async with aclosing(self._read_stream(following, until)) as events:
                    async for event in events:
                        yield event
            except Cut as cut:
                wait_s = following.patience.cut(self._clock.now(), str(cut))
                if on_cut is not None:
                    on_cut(str(cut))
                await asyncio.sleep(wait_s)

    async def stream(
        self,
        run_ids: Iterable[str] = (),
        *,
        after: str = "",
        snapshot: bool = False,
        coalesce_ms: int = 0,
        patience_s: float = PATIENCE_S,
    ) -> AsyncGenerator[StreamItem, None]:
        """The events of the tenant and of any number of runs on one connection, without end. It reconnects when the
        connection is lost. `after`: the position of an earlier stream.

        Raises:
            Unavailable: the server is gone for more than `patience_s`.
        """
        wanted = FollowStream(
            runs=",".join(run_ids), last_event_id=after, snapshot=snapshot, coalesce_ms=coalesce_ms
        )
        following = MixedFollowing(wanted, self._clock.now(), patience_s)
        while True:
            try:
                async with aclosing(self._read_stream(following, None)) as items:
                    async for item in items:
                        yield item
            except Cut as cut:
                await asyncio.sleep(following.patience.cut(self._clock.now(), str(cut)))

    async def perform(self, request: ApiRequest[Response]) -> Response:
        """Send a request, again if that can help."""
        retries = Retries(self._clock.now(), request.again)
        while True:
            found = await self._try(request)
            if not isinstance(found, Failure):
                return found
            wait_s = retries.failed(self._clock.now(), found.outcome, found.after_s)
            if wait_s is None:
                raise found.error
            await asyncio.sleep(wait_s)

    async def iterate(self, pages: Pages[Item]) -> AsyncIterator[Item]:
        """The items of a list, a page at a time."""
        cursor: str | None = None
        left = pages.limit
        while left is None or left > 0:
            found = await self.perform(pages.after(cursor))
            for item in found.items[:left]:
                yield item
            left = None if left is None else left - len(found.items)
            cursor = found.next_cursor
            if cursor is None:
                return

    async def _try(self, request: ApiRequest[Response]) -> Response | Failure:
        try:
            response = await self._http.request(
                request.method,
                request.path,
                params=dict(request.params),
                headers=dict(request.headers),
                content=aread_pieces(request.body)
                if isinstance(request.body, Path)
                else request.body,
            )
        except httpx.TransportError as error:
            return failure_of(self.endpoint.url, error)
        return read_response(request, self.endpoint.url, response)

    async def pieces(self, request: ApiRequest[None]) -> AsyncIterator[bytes]:
        """The body of a response of any length, as it comes. One that is cut is not continued.

        Raises: Unavailable, if it is cut.
        """
        params = dict(request.params)
        try:
            async with self._http.stream(request.method, request.path, params=params) as response:
                if response.status_code != 200:
                    raise_problem(response.status_code, await response.aread())
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise failure_of(self.endpoint.url, error).error from error

    async def fetch(self, download: ApiDownload) -> int:
        """Download a file; its size. See `resources.download`."""
        fetching = Fetching(download.into)
        try:
            while True:
                try:
                    await self._fetch(download, fetching)
                    return fetching.finish()
                except httpx.TransportError as error:
                    fetching.cut(failure_of(self.endpoint.url, error).error)
        finally:
            fetching.close()

    async def _fetch(self, download: ApiDownload, fetching: Fetching) -> None:
        async with self._http.stream(
            "GET", download.path, params=download.params, headers=fetching.headers()
        ) as response:
            if response.status_code not in (200, 206):
                raise_problem(response.status_code, await response.aread())
            fetching.begin(response.status_code, response.headers)
            async for piece in response.aiter_bytes():
                fetching.take(piece)

    async def _read_stream(
        self, following: Following | MixedFollowing, until: float | None
    ) -> AsyncGenerator[Any, None]:
        params, timeout = following.params(), stream_timeout(self._clock.now(), until)
        path = EVENTS if isinstance(following, Following) else STREAM
        try:
            async with self._http.stream("GET", path, params=params, timeout=timeout) as response:
                if response.status_code == 204:
                    following.is_over = True
                    return
                if response.status_code != 200:
                    refuse_stream(response.status_code, await response.aread())
                reader: EventReader[Any] = following.reader()
                async for piece in response.aiter_bytes():
                    following.patience.heard(self._clock.now())
                    for event in filter(following.take, reader.feed(piece)):
                        yield event
                    if following.is_over:
                        return
                    refuse_late(following.run_id, self._clock.now(), until)
        except httpx.TransportError as error:
            refuse_late(following.run_id, self._clock.now(), until)
            raise Cut(why(error)) from error
        raise Cut("the server closed the stream")


class AsyncRunHandle:
    """A handle on one run."""

    def __init__(self, client: AsyncClient, run_id: str) -> None:
        self.run_id = run_id
        self._client = client

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Every event of the run beyond `after`, as it happens, until the run ends; over restarts of the server."""
        return self._client.follow(self.run_id, after)

    async def wait(self, timeout_s: float | None = None) -> Run:
        """The run, when it has ended.

        Raises:
            Unavailable: not within `timeout_s`, or the server is gone for too long.
        """
        async for _ in self._client.follow(self.run_id, timeout_s=timeout_s):
            pass
        return await self.status()

    async def result(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Wait, and return the result of each node by its id.

        Raises:
            RunFailed: the run did not succeed.
        """
        results = results_of(run := await self.wait(timeout_s))
        for node in run.nodes:
            if node.result_truncated and node.node_id in results:
                whole = await self._client.runs.node(self.run_id, node.node_id)
                results[node.node_id] = whole.result
        return results

    async def results(self, timeout_s: float | None = None) -> NodeResults:
        """Wait, and return the result of each node by its label: `handle.results()["Sum"]`.

        Raises:
            RunFailed: the run did not succeed.
        """
        results_of(run := await self.wait(timeout_s))
        nodes: list[Node] = []
        for node in run.nodes:
            is_cut = node.result_truncated
            nodes.append(
                await self._client.runs.node(self.run_id, node.node_id) if is_cut else node
            )
        return NodeResults(nodes)

    async def status(self) -> Run:
        """The run as it is now."""
        return await self._client.runs.get(self.run_id)

    async def cancel(self) -> Run:
        """Cancel the run: no new attempt starts from here on.

        Raises:
            Conflict: it has succeeded or failed.
        """
        return await self._client.runs.cancel(self.run_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run_id!r})"
