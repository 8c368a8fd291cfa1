"""Installs or removes a version on workers, and waits until their inventories show it.

The tenant's event stream gives progress and the reasons of failures; without it only those are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import msgspec

from astraflow.client.asynchronous import AsyncClient
from astraflow.client.stream import SILENCE_S, Cut, EventReader, read_event
from astraflow.client.transport import EVENTS, httpx, options
from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.workers import Worker

InstallCommand = Literal["pkg.install", "pkg.uninstall"]

POLL_S: Final = 0.1
"""Polling interval; an installation takes longer than this."""
COME_BACK_S: Final = 0.5
GONE: Final = frozenset({"lost", "offline"})


class InstallOutcome(msgspec.Struct, frozen=True):
    """The outcome of a command at one worker; `problem` is empty on success."""

    worker: str
    problem: str = ""


class PackageEvents:
    """Package events of the tenant; `failed` by worker, name and version."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.failed: dict[tuple[str, str, str], str] = {}
        self.names: dict[str, str] = {}
        """Display names of workers, by id."""
        self._tell = tell
        self._steps: dict[str, str] = {}

    def take(self, event: Event) -> None:
        body = event.body
        if not event.type.startswith("package.") or "workerId" not in body:
            return
        key = str(body["workerId"]), str(body["name"]), str(body["version"])
        details = body.get("details") or {}
        if event.type == "package.failed":
            why = f"{details.get('step', 'install')}: {details.get('message', 'no reason given')}"
            self.failed[key] = why
        elif event.type == "package.installed":
            self.failed.pop(key, None)
        self._say(key, str(body.get("status", "")), details)

    def _say(self, key: tuple[str, str, str], status: str, details: dict[str, Any]) -> None:
        """Print each step of each worker once."""
        step = f"{status} {details.get('step', '')}".strip()
        if self._tell is not None and self._steps.get(key[0]) != step:
            self._steps[key[0]] = step
            self._tell(f"  {self.names.get(key[0], key[0])}: {step}")


@asynccontextmanager
async def listening(client: AsyncClient, news: PackageEvents) -> AsyncIterator[None]:
    """Follow the tenant's events while the block runs."""
    try:
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(_hear(client, news))
            try:
                yield
            finally:
                hearing.cancel()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


async def _hear(client: AsyncClient, news: PackageEvents) -> None:
    last: int | None = None
    async with httpx.AsyncClient(**options(client.endpoint)) as http:
        while True:
            try:
                async for event in _events(http, last):
                    last = event.id or last
                    news.take(event)
            except (Cut, httpx.HTTPError):
                await asyncio.sleep(COME_BACK_S)


async def _events(http: Any, last: int | None) -> AsyncGenerator[Event, None]:
    params = {} if last is None else {"lastEventId": str(last)}
    timeout = httpx.Timeout(SILENCE_S)
    async with http.stream("GET", EVENTS, params=params, timeout=timeout) as answer:
        if answer.status_code != 200:
            raise Cut(f"HTTP status {answer.status_code}")
        reader = EventReader(read_event)
        async for piece in answer.aiter_bytes():
            for event in reader.feed(piece):
                yield event
    raise Cut("the server closed the stream")


async def online_workers(client: AsyncClient) -> list[Worker]:
    return [one async for one in client.workers.iterate() if one.status not in GONE]


def state_of(worker: Worker, name: str, version: str) -> str:
    """`installed`, `wanted`, `downloading`, `installing`, `failed`, or empty if the worker does not know it."""
    for one in worker.packages:
        if one.name == name and one.version == version:
            return one.status or ""
    return ""


async def order(
    client: AsyncClient, action: InstallCommand, name: str, version: str, workers: Sequence[str]
) -> None:
    """Send the command. Raises: NotFound, when the version is not published or a worker is unknown."""
    command = {"type": action, "name": name, "version": version}
    for worker in workers:
        await client.workers.command(worker, command)


async def wait_for(
    client: AsyncClient,
    action: InstallCommand,
    name: str,
    version: str,
    workers: Sequence[str],
    news: PackageEvents,
    *,
    timeout_s: float,
    clock: Clock,
) -> list[InstallOutcome]:
    """Wait until each worker has succeeded, failed or disconnected, or until the timeout."""
    fates: dict[str, InstallOutcome] = {}
    until = clock.now() + timeout_s
    while True:
        present = {one.worker_id: one for one in await online_workers(client)}
        for worker in workers:
            found = present.get(worker)
            if worker in fates:
                continue
            if found is None:
                fates[worker] = InstallOutcome(worker, "not connected")
                continue
            state = state_of(found, name, version)
            why = news.failed.get((worker, name, version))
            if (state == "installed") == (action == "pkg.install"):
                fates[worker] = InstallOutcome(worker)
            elif why is not None or state == "failed":
                fates[worker] = InstallOutcome(
                    worker, why or "failed; see `astra workers show` and the worker's log"
                )
        if len(fates) == len(workers):
            return list(fates.values())
        if clock.now() >= until:
            late = f"timeout after {timeout_s:g} s; the worker may still finish"
            return [fates.get(one) or InstallOutcome(one, late) for one in workers]
        await asyncio.sleep(POLL_S)


def refuse_without_workers(workers: Sequence[object]) -> None:
    """Raises: Refused, when no worker is connected."""
    if not workers:
        raise errors.Refused(
            errors.WORKER_NOT_FOUND,
            "No worker is connected",
            detail={"hint": "start a worker with `astra worker`, or everything with `astra up`"},
        )
