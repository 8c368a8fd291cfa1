"""What a scheduler keeps in memory beside active work is bounded in bytes, whatever the sizes of what it keeps."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
import uuid
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec

from astraflow.core.runs.commands import LeaseTask, Report, Start
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import encode_fact
from astraflow.core.workflow import core_manifest
from astraflow.core.workflow.plan import encode_plan
from astraflow.scheduler import ended_runs, feed, plans
from astraflow.scheduler.byte_cache import ByteCache
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.ended_runs import EndedRuns
from astraflow.scheduler.feed import Feed, Subscription
from astraflow.scheduler.plans import Plans
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import FactSegment, PlanRow, RunRow, TenantEvent
from tests.unit.plans import AT, make_plan, start

MIB = 1024**2
SLACK = 1.5
"""Sizes are estimates: what is really taken may be so many times as much."""


def taken(work: Callable[[], Awaitable[None]]) -> int:
    """The bytes that are in use after some work and were not before."""

    async def measured() -> int:
        gc.collect()
        tracemalloc.start()
        try:
            await work()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    return asyncio.run(measured())


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


def definition(nodes: int, size: int) -> bytes:
    """One that nobody has sent before."""
    value = uuid.uuid4().hex * (size // 32)
    return json.dumps(
        {
            "id": str(uuid.uuid4()),
            "nodes": [
                {"id": str(uuid.uuid4()), "type": "core.echo", "parameters": {"value": value}}
                for _ in range(nodes)
            ],
            "edges": [],
        }
    ).encode()


def made(count: int, nodes: int, size: int) -> tuple[Plans, int]:
    kept = Plans(MemoryStore(), Catalogs([core_manifest()]))

    async def work() -> None:
        for _ in range(count):
            await kept.make("acme", definition(nodes, size))

    return kept, taken(work)


def test_plans_with_large_parameters_are_bounded_in_bytes() -> None:
    kept, size = made(100, 1, MIB - 100)
    assert size < SLACK * plans.CACHE_BYTES, size
    assert kept._cache.bytes <= plans.CACHE_BYTES
    assert len(kept._cache) > 1, "the last ones are kept"


def test_plans_of_single_nodes_are_bounded_in_bytes() -> None:
    kept, size = made(8_000, 1, 32)
    assert size < SLACK * plans.CACHE_BYTES, size
    assert len(kept._cache) > 1, "the last ones are kept"


def test_plans_of_many_small_nodes_are_bounded_in_bytes() -> None:
    kept, size = made(40, 1_000, 32)
    assert size < SLACK * plans.CACHE_BYTES, size
    assert kept._cache.bytes <= plans.CACHE_BYTES
    assert len(kept._cache) > 1, "the last ones are kept"


async def test_an_equal_definition_is_planned_once() -> None:
    kept = Plans(MemoryStore(), Catalogs([core_manifest()]))
    same = definition(3, 1_000)
    assert await kept.make("acme", same) is await kept.make("acme", same)


class Shelf:
    """The part of a store that has runs with results of one size, as many as are asked for."""

    def __init__(self, size: int) -> None:
        plan = make_plan(1)
        self.plan = PlanRow("plan", b"{}", encode_plan(plan))
        first = start(plan)
        result = msgspec.Raw(b'{"v":"%b"}' % (b"x" * size))
        facts = [*first.facts]
        for command in (
            LeaseTask(0, "w1", 1, 30_000),
            Start(0, 1, "w1"),
            Report(0, 1, "w1", "SUCCEEDED", result),
        ):
            facts += decide(first.run, command, AT, Random(1)).facts
        assert first.run.is_terminal
        self.last = first.run.last_event
        self.body = b"\n".join(map(encode_fact, facts))

    async def find_plan(self, plan_id: str) -> PlanRow:
        return self.plan

    async def read_segments(self, run_id: str, after: int, max_bytes: int = 0) -> list[FactSegment]:
        return [] if after else [FactSegment(run_id, 1, self.last, self.body)]


def test_ended_runs_with_large_results_are_bounded_in_bytes() -> None:
    store: Any = Shelf(MIB * 3 // 2)
    kept = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))

    async def work() -> None:
        for number in range(100):
            run = await kept.run(row(number))
            assert run.status == "succeeded"

    assert (size := taken(work)) < SLACK * ended_runs.CACHE_BYTES, size
    assert len(kept._cache) > 1, "the last ones are kept"


def test_ended_runs_with_small_results_are_bounded_in_bytes() -> None:
    store: Any = Shelf(100)
    kept = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))

    async def work() -> None:
        for number in range(12_000):
            await kept.run(row(number))

    assert (size := taken(work)) < SLACK * ended_runs.CACHE_BYTES, size


def row(number: int) -> RunRow:
    return RunRow(
        run_id=f"run{number}", tenant="acme", workflow_id="wf", plan_id="plan", created_at=AT
    )


def test_a_follower_that_does_not_read_costs_a_bound_in_bytes() -> None:
    subscription = Subscription()
    for number in range(1, 1_000):
        subscription.put(FactSegment("run", number, number, b"x" * 100_000))
        assert sum(len(page.body) for page in subscription._buffer) <= feed.BUFFER_BYTES
    assert subscription.has_overflown


async def test_a_listener_of_a_tenant_that_does_not_read_costs_a_bound_in_bytes() -> None:
    store = MemoryStore()
    await store.open()
    all_events = Feed(store)
    with all_events._listening("acme") as listener:
        for number in range(1, 1_000):
            event = TenantEvent("acme", number, AT, "run.status", b"x" * 10_000)
            all_events.publish((), [event])
            assert sum(len(one.body) for one in listener.events) <= feed.BUFFER_BYTES
        assert listener.has_overflown
    await store.close()
