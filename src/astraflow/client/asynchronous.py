"""`AsyncClient`: for programs with an event loop. The same calls as `Client`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, TypeVar

from astraflow.client import calls
from astraflow.client.answers import raise_problem
from astraflow.client.asynchronous_parts import Catalog, Packages, Part, Resources
from astraflow.client.calls import Call, Definition
from astraflow.client.endpoint import find_endpoint
from astraflow.client.handles import AsyncRunHandle
from astraflow.client.link import (
    EVENTS,
    Failure,
    failure_of,
    httpx,
    options,
    read_answer,
    refuse_late,
    refuse_stream,
    stream_timeout,
    why,
)
from astraflow.client.models import (
    Event,
    LogLine,
    Me,
    NodeDetail,
    Page,
    Run,
    RunSummary,
    Worker,
    Workflow,
    WorkflowSummary,
)
from astraflow.client.stream import PATIENCE_S, Cut, EventReader, Following
from astraflow.client.transfers import Fetching, read_pieces
from astraflow.client.tries import Tries
from astraflow.clock import Clock, SystemClock
from astraflow.core import errors

__all__ = ["AsyncClient"]

Answer = TypeVar("Answer")
Told = Callable[[str], None]


class AsyncClient:
    """A scheduler, as one token sees it. Close it, or use it in a `with` block.

    Without arguments it finds the server as the command line does: `ASTRA_SERVER` and `ASTRA_TOKEN`, else what
    `astra up` has left in `var/`.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, clock: Clock | None = None
    ) -> None:
        self.endpoint = find_endpoint(url, token)
        self._http = httpx.AsyncClient(**options(self.endpoint))
        self._clock = clock or SystemClock()
        self.runs = Runs(self)
        self.workflows = Workflows(self)
        self.workers = Workers(self)
        self.packages = Packages(self)
        self.catalog = Catalog(self)
        self.resources = Resources(self)

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
    ) -> AsyncRunHandle:
        """Start a run of a definition, or of the saved workflow with this id.

        It is sent again when nobody knows whether it arrived, always with the same key: there is one run.

        Raises:
            Refused: the definition or the inputs are not valid; `detail["errors"]` lists all that is wrong.
            Conflict: the key was used with another request.
            Unavailable: nobody answers.
        """
        key = idempotency_key or str(uuid.uuid4())
        accepted = await self.perform(calls.submit(workflow, inputs, key, version))
        return AsyncRunHandle(self, accepted.run_id)

    def handle(self, run_id: str) -> AsyncRunHandle:
        """A handle on a run that somebody else started. Nothing is asked of the server."""
        return AsyncRunHandle(self, run_id)

    async def me(self) -> Me:
        return await self.perform(calls.get_me())

    async def is_ready(self) -> bool:
        """Whether the scheduler takes requests."""
        try:
            answer = await self._try(calls.get_readiness())
        except errors.AstraflowError:
            return False
        return not isinstance(answer, Failure)

    async def follow(
        self,
        run_id: str,
        after: int = 0,
        *,
        patience_s: float = PATIENCE_S,
        timeout_s: float | None = None,
        on_cut: Told | None = None,
    ) -> AsyncIterator[Event]:
        """The events of a run beyond `after`, until its last. A stream that is cut is taken up again.

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
                wait_s = following.cut(self._clock.now(), str(cut))
                if on_cut is not None:
                    on_cut(str(cut))
                await asyncio.sleep(wait_s)

    async def perform(self, call: Call[Answer]) -> Answer:
        """Make one call of the API, again if that can help."""
        tries = Tries(self._clock.now(), call.again)
        while True:
            answer = await self._try(call)
            if not isinstance(answer, Failure):
                return answer
            wait_s = tries.failed(self._clock.now(), answer.outcome, answer.after_s)
            if wait_s is None:
                raise answer.error
            await asyncio.sleep(wait_s)

    async def _try(self, call: Call[Answer]) -> Answer | Failure:
        try:
            answer = await self._http.request(
                call.method,
                call.path,
                params=dict(call.params),
                headers=dict(call.headers),
                content=_content(call.body),
            )
        except httpx.TransportError as error:
            return failure_of(self.endpoint.url, error)
        return read_answer(call, self.endpoint.url, answer)

    async def fetch(self, path: str, params: Mapping[str, str], into: Path) -> int:
        """Fetch a file of the API into one here; its size. See `resources.download`."""
        fetching = Fetching(into)
        try:
            while True:
                try:
                    await self._fetch(path, params, fetching)
                    return fetching.finish()
                except httpx.TransportError as error:
                    fetching.cut(failure_of(self.endpoint.url, error).error)
        finally:
            fetching.close()

    async def _fetch(self, path: str, params: Mapping[str, str], fetching: Fetching) -> None:
        request = self._http.stream("GET", path, params=params, headers=fetching.headers())
        async with request as answer:
            if answer.status_code not in (200, 206):
                raise_problem(answer.status_code, await answer.aread())
            fetching.begin(answer.status_code, answer.headers)
            async for piece in answer.aiter_bytes():
                fetching.take(piece)

    async def _read_stream(
        self, following: Following, until: float | None
    ) -> AsyncGenerator[Event, None]:
        params, timeout = following.params(), stream_timeout(self._clock.now(), until)
        try:
            async with self._http.stream("GET", EVENTS, params=params, timeout=timeout) as answer:
                if answer.status_code == 204:
                    following.is_over = True
                    return
                if answer.status_code != 200:
                    refuse_stream(answer.status_code, await answer.aread())
                reader = EventReader()
                async for piece in answer.aiter_bytes():
                    following.heard(self._clock.now())
                    for event in filter(following.take, reader.feed(piece)):
                        yield event
                    if following.is_over:
                        return
                    refuse_late(following.run_id, self._clock.now(), until)
        except httpx.TransportError as error:
            refuse_late(following.run_id, self._clock.now(), until)
            raise Cut(why(error)) from error
        raise Cut("the server closed the stream")


class Runs(Part):
    """Runs: look at them, cancel them, read what they said."""

    async def list(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[RunSummary]:
        """One page, newest first."""
        return await self._client.perform(calls.list_runs(limit, cursor, status, workflow_id))

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
        return await self._client.perform(calls.get_run(run_id, nodes))

    async def node(self, run_id: str, node_id: str) -> NodeDetail:
        return await self._client.perform(calls.get_node(run_id, node_id))

    async def definition(self, run_id: str) -> dict[str, Any]:
        return await self._client.perform(calls.get_definition(run_id))

    async def cancel(self, run_id: str) -> Run:
        return await self._client.perform(calls.cancel_run(run_id))

    async def rebind(self, run_id: str, running: Literal["keep", "restart"] = "keep") -> None:
        await self._client.perform(calls.rebind_run(run_id, running))

    def logs(self, run_id: str, *, node_id: str | None = None) -> AsyncIterator[LogLine]:
        """What the nodes have said so far, oldest first."""
        return self._all(
            lambda cursor: self._client.perform(calls.list_logs(run_id, node_id, 200, cursor))
        )


class Workflows(Part):
    """Saved workflows."""

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[WorkflowSummary]:
        return await self._client.perform(calls.list_workflows(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> AsyncIterator[WorkflowSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, workflow_id: str, version: int | None = None) -> Workflow:
        return await self._client.perform(calls.get_workflow(workflow_id, version))

    async def create(self, definition: Definition, *, draft: bool = False) -> Workflow:
        """A new workflow. A `draft` may have problems; without it they are Refused, all of them."""
        return await self._client.perform(calls.create_workflow(definition, draft))

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
            calls.save_workflow(workflow_id, definition, if_version, draft)
        )

    async def delete(self, workflow_id: str, *, if_version: int | None = None) -> None:
        await self._client.perform(calls.delete_workflow(workflow_id, if_version))

    async def validate(self, definition: Definition) -> None:
        """Raises: Refused, whose `detail["errors"]` lists all that is wrong."""
        await self._client.perform(calls.validate_workflow(definition))


class Workers(Part):
    """Workers: who is there, and what they are told."""

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Worker]:
        return await self._client.perform(calls.list_workers(limit, cursor))

    def iterate(self, *, limit: int | None = None, page_size: int = 200) -> AsyncIterator[Worker]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    async def get(self, worker_id: str) -> Worker:
        return await self._client.perform(calls.get_worker(worker_id))

    async def command(self, worker_id: str, command: Mapping[str, Any]) -> str:
        """Tell a worker something, as `{"type": "drain"}`; returns the id of the order."""
        taken = await self._client.perform(calls.command_worker(worker_id, command))
        return str(taken["commandId"])


def _content(body: bytes | Path | None) -> bytes | AsyncIterator[bytes] | None:
    return _pieces(body) if isinstance(body, Path) else body


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    pieces = read_pieces(path)
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece
