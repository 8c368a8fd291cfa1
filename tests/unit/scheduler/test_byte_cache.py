"""What a scheduler keeps in memory beside active work is bounded in bytes, whatever the sizes of what it keeps."""

from __future__ import annotations

import json
import uuid

from astraflow.core.ids import RunId
from astraflow.core.workflow import core_manifest
from astraflow.scheduler import feed
from astraflow.scheduler.byte_cache import ByteCache
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.feed import Feed, Subscription
from astraflow.scheduler.plans import Plans
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import FactSegment, TenantEvent
from tests.unit.plans import AT


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache: ByteCache[str, int] = ByteCache(10, 10)
    for number, key in enumerate("abc"):
        cache.put(key, number, 4)
    assert (cache.find("a"), cache.find("b"), cache.find("c")) == (None, 1, 2)
    assert cache.find("b") == 1
    cache.put("d", 3, 4)
    assert (cache.find("b"), cache.find("c"), cache.find("d")) == (1, None, 3)
    assert cache.bytes == 8
    assert len(cache) == 2


def test_one_that_is_too_large_pushes_nothing_out() -> None:
    cache: ByteCache[str, int] = ByteCache(10, 5)
    cache.put("a", 1, 5)
    cache.put("b", 2, 6)
    assert cache.find("a") == 1
    assert cache.find("b") is None
    assert cache.bytes == 5


def test_what_was_made_twice_at_once_is_kept_and_counted_once() -> None:
    cache: ByteCache[str, int] = ByteCache(10, 5)
    cache.put("a", 1, 5)
    cache.put("a", 2, 5)
    assert cache.find("a") == 1
    assert cache.bytes == 5


async def test_an_equal_definition_is_planned_once() -> None:
    kept = Plans(MemoryStore(), Catalogs([core_manifest()]))
    node = {"id": str(uuid.uuid4()), "type": "core.noop"}
    same = json.dumps({"id": str(uuid.uuid4()), "nodes": [node], "edges": []}).encode()
    assert await kept.make("acme", same) is await kept.make("acme", same)


def test_a_follower_that_does_not_read_costs_a_bound_in_bytes() -> None:
    subscription: Subscription[FactSegment] = Subscription()
    for number in range(1, 1_000):
        subscription.put(FactSegment(RunId("run"), number, number, b"x" * 100_000))
        assert sum(len(page.body) for page in subscription._buffer) <= feed.BUFFER_BYTES
    assert subscription.has_overflown


async def test_a_listener_of_a_tenant_that_does_not_read_costs_a_bound_in_bytes() -> None:
    store = MemoryStore()
    await store.open()
    all_events = Feed(store)
    with all_events.subscribed(Subscription(), (), "acme") as listener:
        for number in range(1, 1_000):
            event = TenantEvent("acme", number, AT, "run.status", b"x" * 10_000)
            all_events.publish((), [event])
            assert sum(len(one.body) for one in listener._buffer) <= feed.BUFFER_BYTES
        assert listener.has_overflown
    await store.close()
