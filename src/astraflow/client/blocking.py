"""`Client`: for programs without an event loop."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from astraflow.client import calls
from astraflow.client.answers import raise_problem
from astraflow.client.blocking_parts import Catalog, Packages, Part, Resources
from astraflow.client.calls import Call, Definition
from astraflow.client.endpoint import find_endpoint
from astraflow.client.handles import RunHandle
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

__all__ = ["Client"]

Answer = TypeVar("Answer")
Told = Callable[[str], None]


class Client:
    """A scheduler, as one token sees it. Close it, or use it in a `with` block.

    Without arguments it finds the server as the command line does: `ASTRA_SERVER` and `ASTRA_TOKEN`, else what
    `astra up` has left in `var/`.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, clock: Clock | None = None
    ) -> None:
        self.endpoint = find_endpoint(url, token)
        self._http = httpx.Client(**options(self.endpoint))
        self._clock = clock or SystemClock()
        self.runs = Runs(self)
        self.workflows = Workflows(self)
        self.workers = Workers(self)
        self.packages = Packages(self)
        self.catalog = Catalog(self)
        self.resources = Resources(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run(
        self,
        workflow: Definition | str,
        inputs: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunHandle:
        """Start a run of a definition, or of the saved workflow with this id.

        It is sent again when nobody knows whether it arrived, always with the same key: there is one run.

        Raises:
            Refused: the definition or the inputs are not valid; `detail["errors"]` lists all that is wrong.
            Conflict: the key was used with another request.
            Unavailable: nobody answers.
        """
        key = idempotency_key or str(uuid.uuid4())
        accepted = self.perform(calls.submit(workflow, inputs, key, version))
        return RunHandle(self, accepted.run_id)

    def handle(self, run_id: str) -> RunHandle:
        """A handle on a run that somebody else started. Nothing is asked of the server."""
        return RunHandle(self, run_id)

    def me(self) -> Me:
        return self.perform(calls.get_me())

    def is_ready(self) -> bool:
        """Whether the scheduler takes requests."""
        try:
            answer = self._try(calls.get_readiness())
        except errors.AstraflowError:
            return False
        return not isinstance(answer, Failure)

    def follow(
        self,
        run_id: str,
        after: int = 0,
        *,
        patience_s: float = PATIENCE_S,
        timeout_s: float | None = None,
        on_cut: Told | None = None,
    ) -> Iterator[Event]:
        """The events of a run beyond `after`, until its last. A stream that is cut is taken up again.

        Raises:
            NotFound: no such run.
            Unavailable: the server is gone for more than `patience_s`, or the run goes on after `timeout_s`.
        """
        following = Following(run_id, after, self._clock.now(), patience_s)
        until = None if timeout_s is None else self._clock.now() + timeout_s
        while not following.is_over:
            try:
                yield from self._read_stream(following, until)
            except Cut as cut:
                wait_s = following.cut(self._clock.now(), str(cut))
                if on_cut is not None:
                    on_cut(str(cut))
                time.sleep(wait_s)

    def perform(self, call: Call[Answer]) -> Answer:
        """Make one call of the API, again if that can help."""
        tries = Tries(self._clock.now(), call.again)
        while True:
            answer = self._try(call)
            if not isinstance(answer, Failure):
                return answer
            wait_s = tries.failed(self._clock.now(), answer.outcome, answer.after_s)
            if wait_s is None:
                raise answer.error
            time.sleep(wait_s)

    def _try(self, call: Call[Answer]) -> Answer | Failure:
        try:
            answer = self._http.request(
                call.method,
                call.path,
                params=dict(call.params),
                headers=dict(call.headers),
                content=_content(call.body),
            )
        except httpx.TransportError as error:
            return failure_of(self.endpoint.url, error)
        return read_answer(call, self.endpoint.url, answer)

    def fetch(self, path: str, params: Mapping[str, str], into: Path) -> int:
        """Fetch a file of the API into one here; its size. See `resources.download`."""
        fetching = Fetching(into)
        try:
            while True:
                try:
                    self._fetch(path, params, fetching)
                    return fetching.finish()
                except httpx.TransportError as error:
                    fetching.cut(failure_of(self.endpoint.url, error).error)
        finally:
            fetching.close()

    def _fetch(self, path: str, params: Mapping[str, str], fetching: Fetching) -> None:
        request = self._http.stream("GET", path, params=params, headers=fetching.headers())
        with request as answer:
            if answer.status_code not in (200, 206):
                raise_problem(answer.status_code, answer.read())
            fetching.begin(answer.status_code, answer.headers)
            for piece in answer.iter_bytes():
                fetching.take(piece)

    def _read_stream(self, following: Following, until: float | None) -> Iterator[Event]:
        params, timeout = following.params(), stream_timeout(self._clock.now(), until)
        try:
            with self._http.stream("GET", EVENTS, params=params, timeout=timeout) as answer:
                if answer.status_code == 204:
                    following.is_over = True
                    return
                if answer.status_code != 200:
                    refuse_stream(answer.status_code, answer.read())
                reader = EventReader()
                for piece in answer.iter_bytes():
                    following.heard(self._clock.now())
                    yield from filter(following.take, reader.feed(piece))
                    if following.is_over:
                        return
                    refuse_late(following.run_id, self._clock.now(), until)
        except httpx.TransportError as error:
            refuse_late(following.run_id, self._clock.now(), until)
            raise Cut(why(error)) from error
        raise Cut("the server closed the stream")


class Runs(Part):
    """Runs: look at them, cancel them, read what they said."""

    def list(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[RunSummary]:
        """One page, newest first."""
        return self._client.perform(calls.list_runs(limit, cursor, status, workflow_id))

    def iterate(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        limit: int | None = None,
        page_size: int = 200,
    ) -> Iterator[RunSummary]:
        """All of them or so many, newest first, a page at a time."""
        return self._all(
            lambda cursor: self.list(
                status=status, workflow_id=workflow_id, limit=page_size, cursor=cursor
            ),
            limit,
        )

    def get(self, run_id: str, *, nodes: bool = True) -> Run:
        return self._client.perform(calls.get_run(run_id, nodes))

    def node(self, run_id: str, node_id: str) -> NodeDetail:
        return self._client.perform(calls.get_node(run_id, node_id))

    def definition(self, run_id: str) -> dict[str, Any]:
        return self._client.perform(calls.get_definition(run_id))

    def cancel(self, run_id: str) -> Run:
        return self._client.perform(calls.cancel_run(run_id))

    def rebind(self, run_id: str, running: Literal["keep", "restart"] = "keep") -> None:
        self._client.perform(calls.rebind_run(run_id, running))

    def logs(self, run_id: str, *, node_id: str | None = None) -> Iterator[LogLine]:
        """What the nodes have said so far, oldest first."""
        return self._all(
            lambda cursor: self._client.perform(calls.list_logs(run_id, node_id, 200, cursor))
        )


class Workflows(Part):
    """Saved workflows."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[WorkflowSummary]:
        return self._client.perform(calls.list_workflows(limit, cursor))

    def iterate(
        self, *, limit: int | None = None, page_size: int = 200
    ) -> Iterator[WorkflowSummary]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    def get(self, workflow_id: str, version: int | None = None) -> Workflow:
        return self._client.perform(calls.get_workflow(workflow_id, version))

    def create(self, definition: Definition, *, draft: bool = False) -> Workflow:
        """A new workflow. A `draft` may have problems; without it they are Refused, all of them."""
        return self._client.perform(calls.create_workflow(definition, draft))

    def save(
        self,
        workflow_id: str,
        definition: Definition,
        *,
        if_version: int | None = None,
        draft: bool = False,
    ) -> Workflow:
        """A new version. With `if_version` only if that one is still the newest; else Conflict."""
        return self._client.perform(calls.save_workflow(workflow_id, definition, if_version, draft))

    def delete(self, workflow_id: str, *, if_version: int | None = None) -> None:
        self._client.perform(calls.delete_workflow(workflow_id, if_version))

    def validate(self, definition: Definition) -> None:
        """Raises: Refused, whose `detail["errors"]` lists all that is wrong."""
        self._client.perform(calls.validate_workflow(definition))


class Workers(Part):
    """Workers: who is there, and what they are told."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Worker]:
        return self._client.perform(calls.list_workers(limit, cursor))

    def iterate(self, *, limit: int | None = None, page_size: int = 200) -> Iterator[Worker]:
        return self._all(lambda cursor: self.list(limit=page_size, cursor=cursor), limit)

    def get(self, worker_id: str) -> Worker:
        return self._client.perform(calls.get_worker(worker_id))

    def command(self, worker_id: str, command: Mapping[str, Any]) -> str:
        """Tell a worker something, as `{"type": "drain"}`; returns the id of the order."""
        taken = self._client.perform(calls.command_worker(worker_id, command))
        return str(taken["commandId"])


def _content(body: bytes | Path | None) -> bytes | Iterator[bytes] | None:
    return read_pieces(body) if isinstance(body, Path) else body
