"""One run in the hands of whoever started it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from astraflow.client.models import Event, Run
from astraflow.core import errors

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient
    from astraflow.client.blocking import Client

__all__ = ["AsyncRunHandle", "RunFailed", "RunHandle"]


class RunFailed(errors.AstraflowError):
    """The run ended, and did not succeed. `run` is how it ended."""

    def __init__(self, run: Run) -> None:
        known = errors.CATALOGUE.get(run.error.code) if run.error else None
        fallback = errors.TASK_CANCELLED if run.status == "cancelled" else errors.RUNNER_FAILURE
        said = f": {run.error.message}" if run.error else ""
        super().__init__(known or fallback, f"run {run.run_id} {run.status}{said}")
        self.run = run


def outputs_of(run: Run) -> dict[str, Any]:
    """What a run gave: its outputs, or without such the result of each node, by id.

    Raises:
        RunFailed: it did not succeed.
    """
    if run.status != "succeeded":
        raise RunFailed(run)
    if run.outputs is not None:
        return run.outputs
    return {node.node_id: node.result for node in run.nodes if node.status == "succeeded"}


class RunHandle:
    """A run, for a `Client`."""

    def __init__(self, client: Client, run_id: str) -> None:
        self.run_id = run_id
        self._client = client

    def events(self, after: int = 0) -> Iterator[Event]:
        """Every event of the run beyond `after`, as it happens, until the run ends; over restarts of the server."""
        return self._client.follow(self.run_id, after)

    def wait(self, timeout_s: float | None = None) -> Run:
        """The run, when it has ended.

        Raises:
            Unavailable: not within `timeout_s`, or the server is gone for too long.
        """
        for _ in self._client.follow(self.run_id, timeout_s=timeout_s):
            pass
        return self.status()

    def result(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Wait, and return the run's outputs, or without such the result of each node by its id.

        Raises:
            RunFailed: it did not succeed.
        """
        given = outputs_of(run := self.wait(timeout_s))
        for node in run.nodes:
            if node.result_truncated and node.node_id in given:
                given[node.node_id] = self._client.runs.node(self.run_id, node.node_id).result
        return given

    def status(self) -> Run:
        """The run as it is now."""
        return self._client.runs.get(self.run_id)

    def cancel(self) -> Run:
        """Stop the run: no new attempt starts from here on.

        Raises:
            Conflict: it has succeeded or failed.
        """
        return self._client.runs.cancel(self.run_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run_id!r})"


class AsyncRunHandle:
    """A run, for an `AsyncClient`. As `RunHandle`."""

    def __init__(self, client: AsyncClient, run_id: str) -> None:
        self.run_id = run_id
        self._client = client

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        return self._client.follow(self.run_id, after)

    async def wait(self, timeout_s: float | None = None) -> Run:
        async for _ in self._client.follow(self.run_id, timeout_s=timeout_s):
            pass
        return await self.status()

    async def result(self, timeout_s: float | None = None) -> dict[str, Any]:
        given = outputs_of(run := await self.wait(timeout_s))
        for node in run.nodes:
            if node.result_truncated and node.node_id in given:
                whole = await self._client.runs.node(self.run_id, node.node_id)
                given[node.node_id] = whole.result
        return given

    async def status(self) -> Run:
        return await self._client.runs.get(self.run_id)

    async def cancel(self) -> Run:
        return await self._client.runs.cancel(self.run_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run_id!r})"
