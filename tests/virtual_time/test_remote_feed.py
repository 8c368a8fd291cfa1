"""Readers at nodes that do not own a shard, in worlds of three nodes where owners change and streams break (I33)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any

import pytest

from astraflow.core.ids import RunId
from astraflow.observe.metrics import Metrics
from astraflow.scheduler import feed_frames, node_followers, remote_feed
from astraflow.scheduler.feed import Feed, FeedKey, Subscription
from astraflow.scheduler.feed_frames import FeedChange, FeedFrameReader, Frame, Published
from astraflow.scheduler.node_followers import NodeFollower, NodeFollowers
from astraflow.scheduler.remote_feed import LinkLost, RemoteFeed
from astraflow.store.rows import FactSegment, TenantEvent
from tests.sim.loop import VirtualLoop, run_virtual

SEEDS = 60
RUNS = tuple(f"run-{number}" for number in range(3))
LANE = "acme"
STEPS = 80


class Store:
    """What is committed, read with the delay of a network."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.segments: dict[str, list[FactSegment]] = {run: [] for run in RUNS}
        self.events: list[TenantEvent] = []

    async def _wait(self) -> None:
        await asyncio.sleep(self._rng.uniform(0, 0.02))

    async def read_segments(self, run_id: str, after: int, limit: int = 0) -> list[FactSegment]:
        await self._wait()
        found = [one for one in self.segments[run_id] if one.last > after][:3]
        await self._wait()
        return found

    async def tenant_events(self, name: str, after: int, limit: int) -> list[TenantEvent]:
        await self._wait()
        found = [one for one in self.events if one.number > after][:limit]
        await self._wait()
        return found


class Node:
    def __init__(self, world: World) -> None:
        self.feed = Feed(world.store)  # type: ignore[arg-type]
        self.remote = RemoteFeed(0, self.feed, lambda shard: world.dial(self))
        self.feed.source = self.remote


class Link:
    """An internal stream, with delays both ways and an end that may come at any moment."""

    def __init__(self, world: World, owner: Node, follower: NodeFollower) -> None:
        self._world = world
        self._owner = owner
        self._follower = follower
        self.is_broken = asyncio.Event()

    async def follow(self, change: FeedChange) -> None:
        await self._world.delay()
        if self.is_broken.is_set() or self._world.owner is not self._owner:
            raise LinkLost
        sent = feed_frames.read_change(feed_frames.change_bytes(change))
        self._follower.change(sent)
        await self._world.delay()

    async def frames(self) -> AsyncIterator[Frame]:
        reader = FeedFrameReader()
        async with aclosing(self._follower.frames()) as frames:
            async for raw in frames:
                await self._world.delay()
                if self.is_broken.is_set():
                    raise LinkLost
                for half in (raw[:3], raw[3:]):
                    for frame in reader.feed(half):
                        yield frame

    async def until_moved(self) -> None:
        await self.is_broken.wait()


class Reader:
    """Reads as a stream does, and notes the numbers."""

    def __init__(self, node: Node, key: FeedKey, after: int) -> None:
        self.key = key
        self.after = after
        self.seen: list[int] = []
        self._node = node
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        feed = self._node.feed
        if self.key[0] == "run":
            async with aclosing(feed.segments(RunId(self.key[1]), self.after)) as runs:
                async for segments in runs:
                    self.seen += [one.last for one in segments]
        else:
            async with aclosing(feed.events(LANE, self.after)) as batches:
                async for events in batches:
                    self.seen += [one.number for one in events]


class World:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.store = Store(self.rng)
        self.nodes = [Node(self) for _ in range(3)]
        self.followers = NodeFollowers(Metrics())
        self.owner: Node | None = None
        self.links: list[Link] = []
        self.opened = 0
        self.readers: list[Reader] = []
        self._numbers = dict.fromkeys((*RUNS, LANE), 0)

    async def delay(self) -> None:
        await asyncio.sleep(self.rng.choice((0.0, 0.001, 0.05)))

    @asynccontextmanager
    async def dial(self, node: Node) -> AsyncIterator[Link]:
        await self.delay()
        owner = self.owner
        if owner is None or owner is node:
            raise LinkLost
        follower = self.followers.open(owner.feed, 0)
        link = Link(self, owner, follower)
        self.links.append(link)
        self.opened += 1
        try:
            yield link
        finally:
            self.links.remove(link)
            self.followers.close(follower)

    async def commit(self) -> None:
        """One transaction of the owner: it is in the store first, and then spoken of."""
        owner = self.owner
        if owner is None:
            return
        run = self.rng.choice(RUNS)
        self._numbers[run] += 1
        self._numbers[LANE] += 1
        number = self._numbers[run]
        segment = FactSegment(RunId(run), number, number, b"x" * self.rng.choice((1, 1, 60)))
        event = TenantEvent(LANE, self._numbers[LANE], 0, "run.status", b"{}")
        self.store.segments[run].append(segment)
        self.store.events.append(event)
        await asyncio.sleep(self.rng.choice((0.0, 0.0, 0.002)))
        if self.owner is owner:  # else it is known from the store alone
            owner.feed.publish([segment], [event])

    async def step(self) -> None:
        dice = self.rng.random()
        if dice < 0.6:
            await self.commit()
        elif dice < 0.75:
            self.come()
        elif dice < 0.85 and self.readers:
            self.rng.choice(self.readers).task.cancel()
        elif dice < 0.92 and self.links:
            self.rng.choice(self.links).is_broken.set()
        elif dice < 0.97:
            await self.change_owner(self.rng.choice(self.nodes))
        await asyncio.sleep(self.rng.choice((0.0, 0.0, 0.01, 0.3)))

    def come(self) -> None:
        keys: list[FeedKey] = [("events", LANE), *(("run", run) for run in RUNS)]
        key = self.rng.choice(keys)
        after = self.rng.randint(0, self._numbers[key[1]])
        self.readers.append(Reader(self.rng.choice(self.nodes), key, after))

    async def change_owner(self, node: Node | None) -> None:
        before, self.owner = self.owner, None
        if before is not None:
            before.feed.pause()
            await self.delay()
        if node is not None:
            self.owner = node
            node.feed.begin()

    def check(self) -> None:
        for reader in self.readers:
            last = self._numbers[reader.key[1]]
            wanted = list(range(reader.after + 1, last + 1))
            if reader.task.cancelled():
                wanted = wanted[: len(reader.seen)]
            assert reader.seen == wanted, (reader.key, reader.after, reader.seen)


def run_world(seed: int) -> World:
    async def main(loop: VirtualLoop) -> World:
        world = World(seed)
        await world.change_owner(world.nodes[0])
        for _ in range(4):
            world.come()
        for _ in range(STEPS):
            await world.step()
        if world.owner is None:
            await world.change_owner(world.nodes[1])
        await world.commit()
        await asyncio.sleep(30)
        try:
            world.check()
        finally:
            for reader in world.readers:
                reader.task.cancel()
            await asyncio.gather(*(one.task for one in world.readers), return_exceptions=True)
            for node in world.nodes:
                node.feed.end()
            await asyncio.sleep(0)
        return world

    return run_virtual(main)


def test_each_reader_sees_each_event_once_in_order_whoever_owns_the_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_followers, "NODE_BUFFER_BYTES", 700)
    opened = sum(run_world(seed).opened for seed in range(SEEDS))
    assert opened > SEEDS


def _place_without_reading(self: RemoteFeed, change: FeedChange) -> None:
    """The feed is joined, and the store is not read after that."""
    self._placed.update(change.add)


def _publish_too_early(self: RemoteFeed, frame: Published) -> None:
    """What comes of keys that are not placed yet is published."""
    self._feed.publish(frame.segments, frame.events)


def _forget_what_was_lost(self: Subscription[Any]) -> bool:
    was, self.has_overflown = self.has_overflown, False
    return was and not self.is_of_node


PLANTED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "joined before the store was read": (RemoteFeed, "_place", _place_without_reading),
    "published before it was placed": (RemoteFeed, "_publish", _publish_too_early),
    "a slow node is not told": (Subscription, "read_again", _forget_what_was_lost),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_followers, "NODE_BUFFER_BYTES", 700)
    owner, name, planted = PLANTED[fault]
    monkeypatch.setattr(owner, name, planted)
    found = False
    for seed in range(SEEDS):
        try:
            run_world(seed)
        except AssertionError:
            found = True
            break
    assert found, f"no world shows it: {fault}"


def test_many_readers_of_one_node_have_one_stream() -> None:
    async def main(loop: VirtualLoop) -> tuple[int, int]:
        world = World(1)
        await world.change_owner(world.nodes[0])
        for number in range(1_000):
            key: FeedKey = ("run", RUNS[number % len(RUNS)])
            world.readers.append(Reader(world.nodes[1], key, 0))
        for _ in range(20):
            await world.commit()
        await asyncio.sleep(5)
        world.check()
        streams, kept = world.opened, len(world.links)
        for reader in world.readers:
            reader.task.cancel()
        await asyncio.sleep(remote_feed.LINGER_S + 1)
        assert not world.links, "a stream that nobody needs is closed"
        for node in world.nodes:
            node.feed.end()
        await asyncio.sleep(0)
        return streams, kept

    assert run_virtual(main) == (1, 1)


def test_a_feed_that_failed_is_begun_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = World(2)
        await world.change_owner(world.nodes[0])
        dial, failures = world.dial, [RuntimeError("a bug")]

        @asynccontextmanager
        async def fail_once(node: Node) -> AsyncIterator[Link]:
            if failures:
                raise failures.pop()
            async with dial(node) as link:
                yield link

        world.dial = fail_once  # type: ignore[method-assign]
        world.readers.append(Reader(world.nodes[1], ("run", RUNS[0]), 0))
        for _ in range(10):
            await world.commit()
            await asyncio.sleep(1)
        assert not failures
        world.check()
        world.readers[0].task.cancel()
        await asyncio.sleep(remote_feed.LINGER_S + 1)
        for node in world.nodes:
            node.feed.end()
        await asyncio.sleep(0)

    run_virtual(main)
