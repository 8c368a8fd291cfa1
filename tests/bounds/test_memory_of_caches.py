"""What a scheduler keeps in memory beside active work takes no more bytes than its caches may, really measured."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import tracemalloc
import uuid
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core.ids import RunId
from astraflow.core.runs.commands import LeaseTask, Report, Start
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import encode_fact
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow import core_manifest
from astraflow.core.workflow.stored_plan import encode_plan
from astraflow.scheduler import ended_runs, plans
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.ended_runs import EndedRuns
from astraflow.scheduler.plans import Plans
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import FactSegment, PlanRow, RunRow
from tests.definitions import node, workflow
from tests.processes.waiting import until_seen
from tests.unit.plans import AT, make_plan, start

MIB = 1024**2
SLACK = 1.5
"""Sizes are estimates: what is really taken may be so many times as much."""


async def taken(work: Callable[[], Awaitable[None]]) -> int:
    """The bytes that are in use after some work and were not before."""
    gc.collect()
    tracemalloc.start()
    try:
        await work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def definition(nodes: int, size: int) -> bytes:
    """One that nobody has sent before."""
    value = uuid.uuid4().hex * (size // 32)
    parameters = {"value": value}
    made = workflow(*(node("core.echo", parameters=parameters) for _ in range(nodes)))
    return json.dumps(made).encode()


@pytest.mark.parametrize(
    ("count", "nodes", "size"),
    [(100, 1, MIB - 100), (8_000, 1, 32), (40, 1_000, 32)],
    ids=["large parameters", "single nodes", "many small nodes"],
)
async def test_plans_are_bounded_in_bytes(count: int, nodes: int, size: int) -> None:
    kept = Plans(MemoryStore(), Catalogs([core_manifest()]))

    async def work() -> None:
        for _ in range(count):
            await kept.make("acme", definition(nodes, size))

    held = await taken(work)
    assert held < SLACK * plans.CACHE_BYTES, held
    assert kept._cache.bytes <= plans.CACHE_BYTES
    assert len(kept._cache) > 1, "the last ones are kept"


class RunsOfOneSize:
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
        return [] if after else [FactSegment(RunId(run_id), 1, self.last, self.body)]


def row(number: int) -> RunRow:
    return RunRow(
        run_id=RunId(f"run{number}"), tenant="acme", workflow_id="wf", plan_id="plan", created_at=AT
    )


@pytest.mark.parametrize(("count", "size"), [(100, MIB * 3 // 2), (12_000, 100)])
async def test_ended_runs_are_bounded_in_bytes(count: int, size: int) -> None:
    store: Any = RunsOfOneSize(size)
    kept = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))

    async def work() -> None:
        for number in range(count):
            run = await kept.run(row(number))
            assert run.status == "succeeded"

    held = await taken(work)
    assert held < SLACK * ended_runs.CACHE_BYTES, held
    assert len(kept._cache) > 1, "the last ones are kept"


@pytest.mark.parametrize(
    ("size", "is_beside"), [(100, False), (ended_runs.INLINE_BYTES, True)], ids=["small", "large"]
)
async def test_a_large_ended_run_is_folded_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, is_beside: bool
) -> None:
    threads: list[int] = []

    def noted(*given: Any) -> RunRecord:
        threads.append(threading.get_ident())
        return replay(*given)

    monkeypatch.setattr(ended_runs, "replay", noted)
    store: Any = RunsOfOneSize(size)
    kept = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))
    assert (await kept.run(row(1))).status == "succeeded"
    assert [one != threading.get_ident() for one in threads] == [is_beside]


async def test_a_run_that_fits_no_cache_is_held_for_its_reader_and_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_runs, "HELD_S", 0.2)
    store: Any = RunsOfOneSize(ended_runs.LARGEST_BYTES)
    kept = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))
    first, second = await asyncio.gather(kept.run(row(1)), kept.run(row(1)))
    assert first is second is await kept.run(row(1))
    assert len(kept._cache) == 0
    other = await kept.run(row(2))
    assert await kept.run(row(2)) is other
    assert await kept.run(row(1)) is not first, "one at a time is held"
    await until_seen(lambda: kept._held._held is None)
