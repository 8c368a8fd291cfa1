"""Clients over REST and SSE. Each writes down what the API told it, to be held against what was true.

A client never gives up: a request whose answer was lost is sent again, a stream that broke is resumed after the last
event that arrived whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.chaos.shapes import WEIGHTS, Asks, Drawing
from tests.processes.rest import TOKEN

__all__ = ["TERMINAL", "Api", "Told", "Workload"]

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
RETRY_S = 0.1
ANSWER_S = 10.0
"""For one answer; a scheduler may be frozen for longer, then the request is sent again."""
SILENCE_S = 5.0
"""A stream that says nothing for so long is opened anew: its far end may be frozen or gone."""
POLL_S = 0.7
ANSWER_WAIT_S = 1.5
"""How long a client thinks at most before it answers what a run waits for."""


@dataclass
class Told:
    """What one client was told about one run."""

    run_id: str
    accepted_ns: int
    keys: dict[str, str]
    """By place; nodes that write no truth are not in it."""
    asks: Asks = field(default_factory=Asks)
    cancelled_ns: int | None = None
    cancel_answer: int | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    """The nodes inside of others at the end."""
    problems: list[str] = field(default_factory=list)
    is_over: bool = False
    resumes: int = 0
    tenant: str = "default"


class Api:
    """HTTP against whatever scheduler is there now."""

    def __init__(self, base_url: Callable[[], str], token: str = TOKEN) -> None:
        self._base_url = base_url
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=10)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=ANSWER_S, limits=limits
        )

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def try_once(self, method: str, path: str, **fields: Any) -> httpx.Response:
        return await self._client.request(method, self._base_url() + path, **fields)

    async def ask(self, method: str, path: str, **fields: Any) -> httpx.Response:
        """Ask until there is an answer that is not "later"."""
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = await self.try_once(method, path, **fields)
                if answer.status_code != 503:
                    return answer
            await asyncio.sleep(RETRY_S)

    async def follow(self, told: Told) -> None:
        """Read the events of a run to their end, over any number of breaks."""
        while not told.is_over:
            with contextlib.suppress(httpx.TransportError):
                await self._follow_once(told)
            if not told.is_over:
                told.resumes += 1
                await asyncio.sleep(RETRY_S)

    async def _follow_once(self, told: Told) -> None:
        headers = {"Last-Event-ID": str(told.events[-1]["id"])} if told.events else {}
        url = f"{self._base_url()}/api/v1/events?runId={told.run_id}"
        async with self._client.stream("GET", url, headers=headers, timeout=SILENCE_S) as answer:
            if answer.status_code == 204:
                told.is_over = True
                return
            if answer.status_code != 200:
                if answer.status_code != 503:
                    told.problems.append(f"the stream answered {answer.status_code}")
                return
            fields: dict[str, str] = {}
            async for text in answer.aiter_lines():
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                    continue
                _take_event(told, fields)
                fields = {}

    def stream(self, path: str) -> Any:
        return self._client.stream("GET", self._base_url() + path, timeout=None)


def _take_event(told: Told, fields: dict[str, str]) -> None:
    """An event counts when its blank line has arrived; one without an id is of no account to resuming."""
    if "id" not in fields:
        return
    event = msgspec.json.decode(fields["data"])
    if event["id"] != int(fields["id"]):
        told.problems.append(f"event {fields['id']} says it is {event['id']}")
    told.events.append(event)
    if event["type"] == "run.status" and event["data"]["status"] in TERMINAL:
        told.is_over = True


class Workload:
    """Some clients that submit, follow, poll and sometimes cancel, until they are told to stop."""

    def __init__(
        self,
        api: Api,
        truth: Path,
        seed: int,
        *,
        weights: Mapping[str, int] = WEIGHTS,
        tenant: str = "default",
    ) -> None:
        self.told: list[Told] = []
        self.is_stopping = False
        self._api = api
        self._truth = truth
        self._rng = random.Random(seed)
        self._weights = weights
        self._tenant = tenant

    async def run(self, clients: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client())

    async def _client(self) -> None:
        while not self.is_stopping:
            drawing = Drawing(self._truth, self._rng, self._weights)
            body = {"workflow": drawing.draw()}
            cancel_after = self._rng.uniform(0.0, 2.0) if self._rng.random() < 0.15 else None
            told = await self.submit(body, drawing.keys, drawing.asks)
            async with asyncio.TaskGroup() as group:
                group.create_task(self.watch(told))
                group.create_task(self._answer(told))
                if cancel_after is not None:
                    group.create_task(self._cancel(told, cancel_after))

    async def watch(self, told: Told) -> None:
        """Write down what a run does, to its end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._api.follow(told))
            group.create_task(self._poll(told))

    async def submit(self, body: dict[str, Any], keys: dict[str, str], asks: Asks) -> Told:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = await self._api.ask("POST", "/api/v1/runs", json=body, headers=headers)
        assert answer.status_code in (200, 202), (answer.status_code, answer.text)
        told = Told(answer.json()["runId"], time.monotonic_ns(), keys, asks, tenant=self._tenant)
        self.told.append(told)
        return told

    async def _poll(self, told: Told) -> None:
        while True:
            is_over = told.is_over
            answer = await self._api.ask("GET", f"/api/v1/runs/{told.run_id}")
            if answer.status_code != 200:
                told.problems.append(f"the run answered {answer.status_code}")
            else:
                told.views.append(_slim(answer.json(), is_last=is_over))
            if is_over:
                break
            await asyncio.sleep(POLL_S)
        for owner, which in told.asks.bodies:
            await self._read_body(told, f"/api/v1/runs/{told.run_id}/nodes/{owner}/body?{which}")

    async def _read_body(self, told: Told, path: str) -> None:
        answer = await self._api.ask("GET", path)
        if answer.status_code == 200:
            told.items += (_slim_node(one, is_last=True) for one in answer.json()["nodes"])
        elif answer.status_code != 404:  # a node that was never begun has none
            told.problems.append(f"the body answered {answer.status_code}: {answer.text}")

    async def _answer(self, told: Told) -> None:
        """Decide and send what the run waits for; again and again, as somebody does who had no answer."""
        pending: dict[str, tuple[dict[str, Any], str]] = {
            f"signals/{name}": ({"payload": {"name": name}}, name)
            for name in told.asks.signals.values()
        }
        for waits, decision in told.asks.approvals.items():
            pending[f"nodes/{waits}/approval"] = ({"approved": decision}, waits)
        while pending and not told.is_over:
            for path, (body, key) in list(pending.items()):
                await asyncio.sleep(self._rng.uniform(0.0, ANSWER_WAIT_S))
                answer = await self._api.ask(
                    "POST",
                    f"/api/v1/runs/{told.run_id}/{path}",
                    json=body,
                    headers={"Idempotency-Key": key},
                )
                if answer.is_success:
                    del pending[path]
                elif answer.status_code != 409:  # it does not wait yet, or no longer
                    told.problems.append(f"{path} answered {answer.status_code}: {answer.text}")

    async def _cancel(self, told: Told, after_s: float) -> None:
        await asyncio.sleep(after_s)
        answer = await self._api.ask("POST", f"/api/v1/runs/{told.run_id}/cancel")
        told.cancel_answer = answer.status_code
        if answer.status_code == 200:
            told.cancelled_ns = time.monotonic_ns()
        elif answer.status_code != 409:
            told.problems.append(f"cancel answered {answer.status_code}: {answer.text}")


def _slim(view: dict[str, Any], *, is_last: bool) -> dict[str, Any]:
    """What is compared later; results only of the last view, they are large."""
    view["taken_ns"] = time.monotonic_ns()
    for shown in view["nodes"]:
        _slim_node(shown, is_last=is_last)
    return view


def _slim_node(shown: dict[str, Any], *, is_last: bool) -> dict[str, Any]:
    result = shown.pop("result", None)
    if is_last and isinstance(result, dict):
        shown["result_of"] = (result.get("key"), result.get("attempt"))
        shown["told"] = result.get("approved", result.get("payload"))
    return shown
