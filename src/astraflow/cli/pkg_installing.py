"""Telling workers to install or remove a version, and waiting until they have.

A worker has done so when its inventory says so. The tenant's events say how far it is, and why it failed; who loses
them loses only that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import msgspec

from astraflow.client.asynchronous import AsyncClient
from astraflow.client.stream import SILENCE_S, Cut, EventReader
from astraflow.client.transport import EVENTS, httpx, options
from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.workers import Worker

__all__ = [
    "Fate",
    "News",
    "listening",
    "online_workers",
    "order",
    "refuse_without_workers",
    "state_of",
    "wait_for",
]

Wish = Literal["pkg.install", "pkg.uninstall"]

POLL_S: Final = 0.1
"""A worker that was told has nothing to say for longer than this: unpacking alone takes as long."""
COME_BACK_S: Final = 0.5
GONE: Final = frozenset({"lost", "offline"})


class Fate(msgspec.Struct, frozen=True):
    """What became of an order at one worker; `problem` is empty if it was done."""

    worker: str
    problem: str = ""


class News:
    """What the tenant's events have said about packages; `failed` by worker, name and version."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.failed: dict[tuple[str, str, str], str] = {}
        self.names: dict[str, str] = {}
        """What workers are called, by their ids: people read them."""
        self._tell = tell
        self._steps: dict[str, str] = {}

    def take(self, event: Event) -> None:
        body = event.body
        if not event.type.startswith("package.") or "workerId" not in body:
            return
        key = str(body["workerId"]), str(body["name"]), str(body["version"])
        details = body.get("details") or {}
        if event.type == "package.failed":
            why = (
                f"{details.get('step', 'install')}: {details.get('message', 'no reason was told')}"
            )
            self.failed[key] = why
        elif event.type == "package.installed":
            self.failed.pop(key, None)
        self._say(key, str(body.get("status", "")), details)

    def _say(self, key: tuple[str, str, str], status: str, details: dict[str, Any]) -> None:
        """Each step of each worker once."""
        step = f"{status} {details.get('step', '')}".strip()
        if self._tell is not None and self._steps.get(key[0]) != step:
            self._steps[key[0]] = step
            self._tell(f"  {self.names.get(key[0], key[0])}: {step}")


@asynccontextmanager
async def listening(client: AsyncClient, news: News) -> AsyncIterator[None]:
    """Hear the tenant's events for as long as the block runs."""
    try:
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(_hear(client, news))
            try:
                yield
            finally:
                hearing.cancel()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


async def _hear(client: AsyncClient, news: News) -> None:
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
            raise Cut(f"the server answered {answer.status_code}")
        reader = EventReader()
        async for piece in answer.aiter_bytes():
            for event in reader.feed(piece):
                yield event
    raise Cut("the server closed the stream")


async def online_workers(client: AsyncClient) -> list[Worker]:
    return [one async for one in client.workers.iterate() if one.status not in GONE]


def state_of(worker: Worker, name: str, version: str) -> str:
    """`installed`; on its way: `wanted`, `downloading`, `installing`; `failed`; or empty, if it is not there."""
    for one in worker.packages:
        if one.name == name and one.version == version:
            return one.status or ""
    return ""


async def order(
    client: AsyncClient, wish: Wish, name: str, version: str, workers: Sequence[str]
) -> None:
    """Raises: NotFound, when the version is not published or a worker is gone."""
    command = {"type": wish, "name": name, "version": version}
    for worker in workers:
        await client.workers.command(worker, command)


async def wait_for(
    client: AsyncClient,
    wish: Wish,
    name: str,
    version: str,
    workers: Sequence[str],
    news: News,
    *,
    timeout_s: float,
    clock: Clock,
) -> list[Fate]:
    """Wait until each worker has done what it was told, has failed, is gone, or `timeout_s` are over."""
    fates: dict[str, Fate] = {}
    until = clock.now() + timeout_s
    while True:
        present = {one.worker_id: one for one in await online_workers(client)}
        for worker in workers:
            found = present.get(worker)
            if worker in fates:
                continue
            if found is None:
                fates[worker] = Fate(worker, "it is not connected")
                continue
            state = state_of(found, name, version)
            why = news.failed.get((worker, name, version))
            if (state == "installed") == (wish == "pkg.install"):
                fates[worker] = Fate(worker)
            elif why is not None or state == "failed":
                fates[worker] = Fate(
                    worker, why or "it failed; `astra workers show` and its log say more"
                )
        if len(fates) == len(workers):
            return list(fates.values())
        if clock.now() >= until:
            late = f"it has not done so in {timeout_s:g} s; it still may"
            return [fates.get(one) or Fate(one, late) for one in workers]
        await asyncio.sleep(POLL_S)


def refuse_without_workers(workers: Sequence[object]) -> None:
    """Raises: Refused, when there is nobody to tell."""
    if not workers:
        raise errors.Refused(
            errors.WORKER_NOT_FOUND,
            "no worker is connected",
            detail={"hint": "start one with `astra worker`, or everything with `astra up`"},
        )
