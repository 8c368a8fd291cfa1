from __future__ import annotations

import asyncio

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from tests.conformance.store.backends import Backend, Desk
from tests.conformance.store.samples import (
    NEWEST,
    PLAN,
    audit,
    change,
    event,
    finished,
    run,
    segment,
    worker,
    workflow,
)


async def test_everything_is_there_after_a_restart(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[run(1, idempotency_key="key"), run(2)],
            segments=[segment(run(1), 1, 4)],
            workers=[worker("w-1")],
            events=[event(1)],
            audits=[audit(1)],
        )
        await desk.write(run_changes=[change(finished(2, 9))])
        await desk.store.put_workflow(desk.claim, workflow("a", 1))
    async with backend.opened() as store:
        assert await store.active_runs() == [run(1, idempotency_key="key")]
        assert await store.find_run("default", run(2).run_id) == finished(2, 9)
        assert await store.read_segments(run(1).run_id) == [segment(run(1), 1, 4)]
        assert [one.key for one in await store.submissions(0)] == ["key"]
        assert await store.workers() == [worker("w-1")]
        assert await store.event_heads() == {"default": 1}
        assert [row for _, row in await store.audit("default", limit=9)] == [audit(1)]
        assert await store.find_workflow("default", "a") == workflow("a", 1)


async def test_opening_twice_in_a_row_changes_nothing(backend: Backend) -> None:
    for _ in range(3):
        async with backend.opened() as store:
            assert (await store.usage()).schema_version == NEWEST


async def test_reads_go_on_beside_writes_and_see_whole_transactions(backend: Backend) -> None:
    """A writer adds a segment to two runs at a time; who sees one sees the other."""
    transactions = 50
    first, second = run(1), run(2)

    async def write(desk: Desk) -> None:
        for number in range(1, transactions + 1):
            await desk.write(
                segments=[segment(first, number, number), segment(second, number, number)]
            )

    async def read(desk: Desk) -> None:
        ones = 0
        while ones < transactions:
            ones = len(await desk.store.read_segments(first.run_id))
            others = len(await desk.store.read_segments(second.run_id))
            assert ones <= others <= transactions
            await asyncio.sleep(0)  # memory answers at once: let the writer have its turn

    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[first, second])
        async with asyncio.TaskGroup() as group:
            group.create_task(read(desk))
            group.create_task(write(desk))
        assert await desk.store.is_committed(desk.claim, transactions + 1)


async def test_a_closed_store_refuses_and_does_not_hang(backend: Backend) -> None:
    if backend.name == "memory":
        return  # it has nothing to close
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN])
    for question in (desk.find(run(1)), desk.write(), desk.store.renew(desk.claim)):
        with pytest.raises(StoreError) as caught:
            await question
        assert caught.value.code is errors.STORE_UNAVAILABLE
    await desk.store.open()
    assert await desk.store.find_plan(PLAN.plan_id) == PLAN
    await desk.store.close()
