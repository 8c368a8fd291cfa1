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
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.chaos.truth import SCRIPT
from tests.definitions import link, node, workflow
from tests.processes.rest import TOKEN

__all__ = ["TERMINAL", "Api", "Told", "Workload", "python_node"]

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
RETRY_S = 0.1
ANSWER_S = 10.0
"""For one answer; a scheduler may be frozen for longer, then the request is sent again."""
SILENCE_S = 5.0
"""A stream that says nothing for so long is opened anew: its far end may be frozen or gone."""
POLL_S = 0.7

# Ok and slow ones most of all; what takes a host down takes others with it, and is rare.
WEIGHTS = {
    "ok": 30,
    "slow": 30,
    "fail_once": 8,
    "fail": 3,
    "abort_once": 1,
    "segfault_once": 1,
    "stubborn": 4,
    "flood": 1,
    "fork": 3,
    "big": 4,
    "stream": 6,
}


@dataclass
class Told:
    """What one client was told about one run."""

    run_id: str
    accepted_ns: int
    keys: dict[str, str]
    """By node id; nodes that write no truth are not in it."""
    cancelled_ns: int | None = None
    cancel_answer: int | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_over: bool = False
    resumes: int = 0


class Api:
    """HTTP against whatever scheduler is there now."""

    def __init__(self, base_url: Callable[[], str]) -> None:
        self._base_url = base_url
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=10)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=ANSWER_S, limits=limits
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


def python_node(folder: Path, key: str, act: str = "ok", **inputs: Any) -> dict[str, Any]:
    """A node that writes the register of truth."""
    parameters = {
        "code": SCRIPT,
        "inputs": {"folder": str(folder), "key": key, "act": act, **inputs},
    }
    retry = {"maxAttempts": 3, "backoff": {"initialSeconds": 0.1, "factor": 1}}
    return node("core.python", parameters=parameters, retry=retry)


class Workload:
    """Some clients that submit, follow, poll and sometimes cancel, until they are told to stop."""

    def __init__(self, api: Api, truth: Path, seed: int) -> None:
        self.told: list[Told] = []
        self.is_stopping = False
        self._api = api
        self._truth = truth
        self._rng = random.Random(seed)

    async def run(self, clients: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client())

    async def _client(self) -> None:
        while not self.is_stopping:
            body, keys = self._draw()
            cancel_after = self._rng.uniform(0.0, 2.0) if self._rng.random() < 0.15 else None
            told = await self._submit(body, keys)
            self.told.append(told)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._api.follow(told))
                group.create_task(self._poll(told))
                if cancel_after is not None:
                    group.create_task(self._cancel(told, cancel_after))

    async def _submit(self, body: dict[str, Any], keys: dict[str, str]) -> Told:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = await self._api.ask("POST", "/api/v1/runs", json=body, headers=headers)
        assert answer.status_code in (200, 202), (answer.status_code, answer.text)
        return Told(answer.json()["runId"], time.monotonic_ns(), keys)

    async def _poll(self, told: Told) -> None:
        while True:
            is_over = told.is_over
            answer = await self._api.ask("GET", f"/api/v1/runs/{told.run_id}")
            if answer.status_code != 200:
                told.problems.append(f"the run answered {answer.status_code}")
            else:
                told.views.append(_slim(answer.json(), is_last=is_over))
            if is_over:
                return
            await asyncio.sleep(POLL_S)

    async def _cancel(self, told: Told, after_s: float) -> None:
        await asyncio.sleep(after_s)
        answer = await self._api.ask("POST", f"/api/v1/runs/{told.run_id}/cancel")
        told.cancel_answer = answer.status_code
        if answer.status_code == 200:
            told.cancelled_ns = time.monotonic_ns()
        elif answer.status_code != 409:
            told.problems.append(f"cancel answered {answer.status_code}: {answer.text}")

    # -- drawing ----------------------------------------------------------------------------

    def _draw(self) -> tuple[dict[str, Any], dict[str, str]]:
        rng = self._rng
        count = rng.choice((1, 2, 3, 4, 6, 9))
        nodes = [self._draw_node() for _ in range(count)]
        shape = rng.choice(("chain", "fan", "apart", "random"))
        if shape == "chain":
            edges = list(pairwise(range(count)))
        elif shape == "fan":
            edges = [(0, at) for at in range(1, count - 1)]
            edges += [(at, count - 1) for at in range(1, count - 1)]
        elif shape == "random":
            edges = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.3]
        else:
            edges = []
        keys = {
            node["id"]: node["parameters"]["inputs"]["key"]
            for node in nodes
            if node["type"] == "core.python"
        }
        edges_of = [link(nodes[a], nodes[b]) for a, b in edges]
        return {"workflow": workflow(*nodes, edges=edges_of)}, keys

    def _draw_node(self) -> dict[str, Any]:
        rng = self._rng
        if rng.random() < 0.15:
            return node("core.noop", parameters={"a": 1})
        (act,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        seconds = {"slow": rng.uniform(0.2, 2.0), "stubborn": rng.uniform(0.5, 4.0)}.get(
            act, rng.choice((0.0, 0.0, 0.2, 0.5))
        )
        size = rng.choice((20_000, 300_000)) if act == "big" else 0
        return python_node(self._truth, uuid.uuid4().hex, act, seconds=seconds, size=size)


def _slim(view: dict[str, Any], *, is_last: bool) -> dict[str, Any]:
    """What is compared later; results only of the last view, they are large."""
    view["taken_ns"] = time.monotonic_ns()
    for shown in view["nodes"]:
        result = shown.pop("result", None)
        if is_last and isinstance(result, dict):
            shown["result_of"] = (result.get("key"), result.get("attempt"))
    return view
