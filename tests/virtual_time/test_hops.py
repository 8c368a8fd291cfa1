"""Requests that any of three nodes takes, in worlds where owners change and what is between the nodes fails (I45).

`Front`, `Hops` and `LaneFinder` are the product's. Imitated are the connections between them, by exchanges in
memory, what a node knows of the others, which may be old, and the application, which counts what it executes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import starmap
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest

from astraflow.api import hop, kept_body
from astraflow.api.asgi import Message, Receive, Scope
from astraflow.api.front import Front
from astraflow.api.hop import Hops
from astraflow.api.kept_body import KeptBody
from astraflow.api.lane_finder import LaneFinder
from astraflow.api.node_connections import CannotConnect, ExchangeFailed, NodeRequest
from astraflow.api.responses import DROP, json_response, problem_response
from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen
from astraflow.core.contract.system import Status
from astraflow.scheduler.lane_rules import moved_to
from tests.sim.loop import VirtualLoop, run_virtual

SEEDS: Final = 250
TENANT: Final = "acme"
NODES: Final = 3
REQUESTS: Final = 16
FAULTS_S: Final = 6.0
END_S: Final = 120.0
SHARDS: Final = (0, 5)
"""Of the lanes of the tenant."""
NUMBER: Final = b"x-number"
PIECE: Final = 300_000
BYTES: Final = Random(0).randbytes(5 * PIECE)
TRUST: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BROKEN: Final = ("before the body", "after the body", "after the head", "in the body")


class Asked:
    """One request of a client, and what became of it."""

    def __init__(self, world: World, number: int) -> None:
        rng = world.rng
        self.number = number
        self.method = rng.choice(("GET", "POST", "POST"))
        size = 0 if self.method == "GET" else rng.choice((0, 10, PIECE, 4 * PIECE, 5 * PIECE))
        self.body = BYTES[:size]
        self.lane = rng.randrange(len(SHARDS))
        self.is_chunked = bool(size) and rng.random() < 0.5
        self.executed: list[bytes] = []
        self.reached = 0
        """How many nodes it was passed on to that may have had it."""
        self.status: int | None = None
        self.starts = 0
        self.answer = b""
        self.is_whole = False
        self.is_dropped = False
        self.has_left = False
        self.is_over = False
        self._rng = rng

    def scope(self) -> Scope:
        path = "/api/v1/runs" if self.method == "POST" else "/api/v1/workflows"
        length = (b"content-length", str(len(self.body)).encode())
        chunked = (b"transfer-encoding", b"chunked")
        headers = [(NUMBER, b"%d" % self.number), chunked if self.is_chunked else length]
        return {
            "type": "http", "method": self.method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "client": ("10.0.0.1", 1), "headers": headers,
            "extensions": {DROP: self.drop},
        }  # fmt: skip

    def drop(self, said: bytes) -> None:
        self.is_dropped = True

    async def send(self, message: Message) -> None:
        assert not self.is_dropped and not self.is_whole, "I45: an answer after the end"
        if message["type"] == "http.response.start":
            self.starts += 1
            assert self.starts == 1, "I45: two answers"
            self.status = message["status"]
            return
        assert self.starts == 1, "I45: a body without a head"
        self.answer += message.get("body", b"")
        self.is_whole = not message.get("more_body", False)
        await asyncio.sleep(0)

    def receiver(self) -> Receive:
        left = [self.body[at : at + PIECE] for at in range(0, len(self.body), PIECE)] or [b""]
        leaves_s = self._rng.uniform(0, 3) if self._rng.random() < 0.05 else END_S

        async def receive() -> Message:
            if left:
                await asyncio.sleep(self._rng.choice((0.0, 0.01)))
                piece = left.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(left)}
            if not self.is_over:
                await asyncio.sleep(leaves_s)
            self.has_left = True
            return {"type": "http.disconnect"}

        return receive


class Wire:
    """How a node reaches the others (`NodeConnections`)."""

    def __init__(self, world: World) -> None:
        self._world = world

    def close(self) -> None:
        """Nothing is kept."""

    async def ask(self, url: str, request: NodeRequest) -> Exchange:
        world, rng = self._world, self._world.rng
        await asyncio.sleep(rng.choice((0.0, 0.001, 0.3)))
        node = world.nodes[int(url.removeprefix("http://n"))]
        asked = world.asked[int(dict(request.headers)[NUMBER])]
        fault = rng.choice(BROKEN) if world.is_faulty and rng.random() < 0.3 else None
        if world.is_faulty and rng.random() < 0.15:
            raise CannotConnect("nobody is there")
        asked.reached += 1
        return Exchange(world, node, request, fault)


class Exchange:
    """One request on its way to a node, and the response on its way back."""

    def __init__(self, world: World, node: Node, request: NodeRequest, fault: str | None) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_sent = False
        self.is_whole = False
        self._world = world
        self._request = request
        self._error: Exception | None = None
        self._pieces: list[bytes] = []
        self._changed = asyncio.Event()
        self._body: asyncio.Queue[Message] = asyncio.Queue()
        self._sent: asyncio.Queue[Message] = asyncio.Queue()
        path = request.target
        scope = {
            "type": "http", "method": request.method, "path": path.decode(), "raw_path": path,
            "query_string": b"", "client": ("10.0.0.2", 1), "headers": list(request.headers),
            "extensions": {DROP: lambda said: self._sent.put_nowait({"type": "cut"})},
        }  # fmt: skip
        world.serve(self._serve(node, scope))
        world.serve(self._carry(fault))

    async def _serve(self, node: Node, scope: Scope) -> None:
        await node.front(scope, self._body.get, self._sent.put)
        self._sent.put_nowait({"type": "cut"})

    async def _carry(self, fault: str | None) -> None:
        try:
            if fault == "before the body":
                raise ExchangeFailed("reset")
            await self._send_body()
            if fault == "after the body" and self._world.rng.random() < 0.5:
                raise ExchangeFailed("reset")
            if fault == "after the body":
                self._fail(ExchangeFailed("reset"))  # the node does not see it
                return
            await self._take_response(fault)
        except Exception as error:
            self.abandon(error)

    async def _send_body(self) -> None:
        """As HTTP/1.1: what is not as long as it says is no request."""
        request = self._request
        left = None if request.length is None else request.length - len(request.body)
        self._put(request.body, left is None or left > 0)
        if request.rest is not None:
            async for piece in request.rest:
                left = None if left is None else left - len(piece)
                if left is not None and left < 0:
                    break
                self._put(piece, left is None or left > 0)
                await asyncio.sleep(0)
        if left:
            raise ExchangeFailed("not as long as it says")
        if left is None:
            self._put(b"", False)
        self.is_sent = True

    def _put(self, piece: bytes, has_more: bool) -> None:
        self._body.put_nowait({"type": "http.request", "body": piece, "more_body": has_more})

    async def _take_response(self, fault: str | None) -> None:
        head = await self._sent.get()
        if head["type"] == "cut":
            raise ExchangeFailed("the node has closed the connection")
        self.headers, self.status = head["headers"], head["status"]
        self._changed.set()
        if fault == "after the head":
            raise ExchangeFailed("reset")
        while not self.is_whole:
            message = await self._sent.get()
            if message["type"] == "cut":
                raise ExchangeFailed("the response is not whole")
            self._pieces.append(message.get("body", b""))
            self.is_whole = self._error is None and not message.get("more_body", False)
            self._changed.set()
            if fault == "in the body" and not self.is_whole:
                raise ExchangeFailed("reset")

    async def head(self) -> None:
        while not self.status:
            await self._next()

    async def pieces(self) -> AsyncIterator[bytes]:
        while self._pieces or not self.is_whole:
            if self._pieces:
                yield self._pieces.pop(0)
            else:
                await self._next()

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def _next(self) -> None:
        if self._error is not None:
            raise self._error
        self._changed.clear()
        await self._changed.wait()

    def _fail(self, error: Exception) -> None:
        if self._error is None and not self.is_whole:
            self._error = error
            self._changed.set()

    def abandon(self, error: Exception) -> None:
        """The node sees that the connection is closed."""
        self._fail(error)
        self._body.put_nowait({"type": "http.disconnect"})

    def close(self) -> None:
        self.abandon(ExchangeFailed("closed"))


class Node:
    """A node, as `Front` asks it (`ClusterNode`), with what it saw of the others at its last look."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self._world = world
        self.is_blind = False
        self.is_ending = False
        self.home = SimpleNamespace(credentials=None)
        self.owners = dict(world.owners)
        self.lanes = world.lanes
        self._looked = asyncio.Event()
        self.hops = Hops([b"s" * 32], TRUST)
        wire: Any = Wire(world)
        self.hops._connections = wire
        node: Any = self
        cluster: Any = None
        finder: Any = Finder()
        ends: Any = SimpleNamespace(has=lambda path: False)
        apps: Any = self.app
        lanes = LaneFinder(node, cluster, world.rng)
        self.front = Front(node, apps, finder, lanes, self.hops, ends)
        if world.rng.random() < 0.5:
            self.front._large_bodies._count = kept_body.MAX_LARGE  # there is no room for one more
        world.serve(self._look())

    def app(self, shard: int) -> App:
        return App(self._world, self, shard)

    async def _look(self) -> None:
        while True:
            owners, lanes = dict(self._world.owners), self._world.lanes
            await asyncio.sleep(self._world.rng.choice((0.0, 0.05, 0.6)))
            self.owners, self.lanes = owners, lanes
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()
            await asyncio.sleep(0.25)

    def lanes_of(self, tenant: str) -> tuple[LaneSeen, ...]:
        return self.lanes

    def loads_of(self, tenant: str) -> dict[int, int]:
        return {}

    def shard_of(self, tenant: str, lane: int = HOME_LANE) -> int | None:
        return next((one.shard for one in self.lanes if one.lane == lane), None)

    def scheduler_of(self, shard: int) -> object | None:
        """An owner that was replaced may not know it yet; one that has begun does."""
        owns = self.number in (self._world.owners[shard], self._world.frozen.get(shard))
        return SimpleNamespace(credentials=SimpleNamespace(known=None)) if owns else None

    def url_of(self, shard: int) -> str | None:
        owner = self.owners[shard]
        return None if owner is None or owner == self.number else f"http://n{owner}"

    def is_withheld(self, shard: int) -> bool:
        return False

    async def locate(self, tenant: str) -> None:
        await asyncio.sleep(0)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def next_look(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._looked.wait()


class Finder:
    """Whose a request is: all are of one tenant."""

    def reads_body(self, scope: Any) -> bool:
        return False

    async def find(self, scope: Any, start: bytes) -> str:
        return TENANT

    async def is_new_to(self, known: object, scope: Any) -> bool:
        return False


class App:
    """The application of a shard: it carries a request out if it is the right lane and owns the shard then."""

    def __init__(self, world: World, node: Node, shard: int) -> None:
        self._world = world
        self._node = node
        self._shard = shard

    def is_web_app(self, path: str) -> bool:
        return False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        rng = self._world.rng
        number = next(int(value) for name, value in scope["headers"] if name == NUMBER)
        asked = self._world.asked[number]
        body = b""
        is_read_first = rng.random() < 0.8
        if is_read_first:
            read = await _read(receive)
            if read is None:
                return
            body = read
        await asyncio.sleep(rng.choice((0.0, 0.01, 0.5, 8.0 if rng.random() < 0.2 else 0.0)))
        lane = SHARDS.index(self._shard)
        if asked.method == "POST" and len(self._node.lanes) > 1 and lane != asked.lane:
            await self.refuse(asked, body, scope, send)
            return
        if not is_read_first:
            read = await _read(receive)
            if read is None:
                return
            body = read
        if asked.method == "GET":
            await self._tell(send)
        elif (
            self._world.owners[self._shard] != self._node.number
        ):  # the store refuses what it commits
            refused = errors.Unavailable(errors.SCHEDULER_NOT_READY, "replaced")
            await problem_response(refused)(scope, receive, send)
        else:
            asked.executed.append(body)
            await asyncio.sleep(rng.choice((0.0, 0.2, 3.0)))
            await json_response(Status(status="ready"))(scope, receive, send)

    async def refuse(self, asked: Asked, body: bytes, scope: Any, send: Any) -> None:
        """Another lane is the right one."""
        moved = moved_to(asked.lane)
        if self._world.is_faulty and self._world.rng.random() < 0.2:
            moved = errors.Refused(errors.SHARD_MOVED, "it does not say which one is right")
        await problem_response(moved)(scope, _nothing, send)

    async def _tell(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(5):
            body = b"%d" % self._node.number
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await asyncio.sleep(self._world.rng.choice((0.0, 0.01, 0.7)))
        await send({"type": "http.response.body", "body": b""})


async def _nothing() -> Any:
    raise AssertionError("who answers has read the request")


async def _read(receive: Any) -> bytes | None:
    """The whole body, if the client does not leave."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


class World:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.is_faulty = True
        self.owners: dict[int, int | None] = {shard: self.rng.randrange(NODES) for shard in SHARDS}
        self.frozen: dict[int, int | None] = {}
        """Who owned a shard before, and does not know yet that it was replaced."""
        self.lanes: tuple[LaneSeen, ...] = tuple(starmap(LaneSeen, enumerate(SHARDS)))
        self.new_lanes: tuple[LaneSeen, ...] = ()
        if self.rng.random() < 0.3:
            self.lanes, self.new_lanes = self.lanes[:1], self.lanes
        self._tasks: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        self.nodes = [Node(self, number) for number in range(NODES)]
        self.asked = [Asked(self, number) for number in range(REQUESTS)]

    def serve(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    async def fail(self) -> None:
        """Owners change: at once, after a while without any, or with a former one that does not know it."""
        while self.is_faulty:
            await asyncio.sleep(self.rng.uniform(0, 1.5))
            self.lanes = self.new_lanes or self.lanes
            shard = self.rng.choice(SHARDS)
            before, self.owners[shard] = self.owners[shard], None
            self.frozen[shard] = before if self.rng.random() < 0.4 else None
            await asyncio.sleep(self.rng.choice((0.0, 0.3, 2.0)))
            self.owners[shard] = self.rng.randrange(NODES)
        self.frozen = {}

    async def ask(self, asked: Asked) -> None:
        await asyncio.sleep(self.rng.uniform(0, FAULTS_S))
        node = self.rng.choice(self.nodes)
        await node.front(asked.scope(), asked.receiver(), asked.send)
        asked.is_over = True

    async def run(self) -> None:
        failing = asyncio.create_task(self.fail())
        asking = [asyncio.create_task(self.ask(asked)) for asked in self.asked]
        await asyncio.sleep(FAULTS_S)
        self.is_faulty = False
        await failing
        _, left = await asyncio.wait(asking, timeout=END_S)
        assert not left, "I45: a request does not end"
        await asyncio.gather(*asking)
        await asyncio.sleep(10)
        for node in self.nodes:
            node.hops.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.failures:
            raise self.failures[0]
        for asked in self.asked:
            check(asked, bool(self.new_lanes))


def check(asked: Asked, has_new_lanes: bool) -> None:
    what = f"{asked.number} {asked.method} {len(asked.body)} {asked.status} {asked.answer[:300]!r}"
    assert len(asked.executed) <= 1, f"I45: executed twice: {what}"
    assert all(body == asked.body for body in asked.executed), f"I45: not as it was sent: {what}"
    if asked.has_left:
        return
    assert asked.is_whole or asked.is_dropped, f"I45: neither answered nor cut: {what}"
    assert asked.status is not None, f"I45: cut without an answer: {what}"
    if not asked.is_whole:
        return
    if asked.status == 200:
        if asked.method == "POST":
            assert asked.executed, f"I45: said to be done, and is not: {what}"
        else:
            assert len(asked.answer) == 5, f"I45: not whole: {what}"
            assert len(set(asked.answer)) == 1, f"I45: of two nodes: {what}"
        return
    # One that came before its node had seen that there are lanes is refused by the lane itself.
    assert asked.status == 503 or (asked.status == 421 and has_new_lanes), f"I45: {what}"
    said = msgspec.json.decode(asked.answer)
    if "does not answer" in said["detail"]:
        assert asked.reached, f"I45: nobody can have done it: {what}"
    else:
        assert not asked.executed, f"I45: refused, and done: {what}"


def run_world(seed: int) -> World:
    async def main(loop: VirtualLoop) -> World:
        world = World(seed)
        await world.run()
        return world

    return run_virtual(main)


def test_a_request_is_carried_out_by_an_owner_once_or_refused() -> None:
    ends: Counter[tuple[str, int | None, bool]] = Counter()
    for seed in range(SEEDS):
        for asked in run_world(seed).asked:
            ends[asked.method, asked.status, asked.is_whole] += 1
    for method in ("GET", "POST"):
        for status, is_whole in ((200, True), (200, False), (503, True)):
            assert ends[method, status, is_whole] > 10, ends


class _Failed(Exception):
    """It is not known whether a request was carried out."""


_pass_on: Final = Hops.pass_on


def _send_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: Any) -> None:
        raise _Failed

    async def pass_on(*args: Any) -> Any:
        try:
            return await _pass_on(*args)
        except _Failed:
            return None

    monkeypatch.setattr(Hops, "_fail", fail)
    monkeypatch.setattr(Hops, "pass_on", pass_on)


def _send_to_next_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "_READS", ("GET", "HEAD", "POST"))


def _execute_and_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = App.refuse

    async def executing(self: App, asked: Asked, body: bytes, scope: Any, send: Any) -> None:
        asked.executed.append(asked.body)
        await refuse(self, asked, body, scope, send)

    monkeypatch.setattr(App, "refuse", executing)


def _keep_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fits(self: KeptBody, limit: int = 0) -> bool:
        return True

    monkeypatch.setattr(KeptBody, "fits", fits)


def _keep_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was passed on as it came is taken for kept."""
    read = KeptBody._read

    async def reading(self: KeptBody) -> bytes:
        piece = await read(self)
        self.is_kept = True
        return piece if len(self._kept) <= kept_body.KEPT_BYTES else b""

    monkeypatch.setattr(KeptBody, "_read", reading)


PLANTED: Final = {
    "what may have been carried out is sent again": _send_again,
    "what changes something is sent to the next owner": _send_to_next_owner,
    "a lane carries out what it refuses": _execute_and_refuse,
    "a body is not kept for the next lane": _keep_no_body,
    "a body that is not whole is sent again": _keep_short,
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[fault](monkeypatch)
    for seed in range(SEEDS):
        try:
            run_world(seed)
        except AssertionError as error:
            assert "I45" in str(error)
            return
    pytest.fail(f"no world shows it: {fault}")
