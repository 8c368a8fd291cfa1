from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.rows import PlanRow
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import (
    PLAN,
    audit,
    change,
    event,
    finished,
    run,
    segment,
    worker,
)


async def test_everything_of_a_transaction_is_there_after_it(backend: Backend) -> None:
    row = run(
        1,
        workflow_version=3,
        name="Ünïcode ✓ 𝄞",
        error=b'{"code":"E.X"}',
        idempotency_key="key",
        fingerprint="print",
        rerun_of="run-0000",
        started_at=5,
        status="running",
        cancel_requested=True,
    )
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[row],
            segments=[segment(row, 1, 2, b"\x00\xff{}\n")],
            workers=[worker("w-1", labels=b'{"gpu":"1"}', seen_at=7)],
            events=[event(1)],
            audits=[audit(1)],
        )
        store = desk.store
        assert await desk.find(row) == row
        assert await store.find_plan(PLAN.plan_id) == PLAN
        assert await store.read_segments(row.run_id) == [segment(row, 1, 2, b"\x00\xff{}\n")]
        assert await store.workers() == [worker("w-1", labels=b'{"gpu":"1"}', seen_at=7)]
        assert await store.tenant_events("default", 0, 10) == [event(1)]
        assert [kept for _, kept in await store.audit("default", limit=10)] == [audit(1)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": [run(1)]},
        {"runs": [run(2, plan_id="no such plan")]},
        {"run_changes": [change(run(3), status="running")]},
        {"segments": [segment(run(1), 1, 2)]},
        {"events": [event(1)]},
        {"runs": [run(4), run(4)]},
    ],
    ids=[
        "known run",
        "unknown plan",
        "unknown run",
        "known segment",
        "known event",
        "twice in one",
    ],
)
async def test_rows_that_contradict_the_stored_ones_are_refused_with_all_beside_them(
    backend: Backend, wrong: dict[str, Sequence[object]]
) -> None:
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN], runs=[run(1)], segments=[segment(run(1), 1, 2)], events=[event(1)]
        )
        beside: dict[str, Sequence[object]] = {
            "plans": [PlanRow("plan-9", b"", b"")],
            "workers": [worker("w-9")],
        }
        with pytest.raises(StoreError) as caught:
            await desk.write(**beside, **wrong)
        assert caught.value.code is errors.STORE_REFUSED
        assert await desk.store.find_plan("plan-9") is None
        assert await desk.store.workers() == []
        assert await desk.find(run(2)) is None
        assert await desk.find(run(4)) is None
        assert not await desk.store.is_committed(desk.claim, desk.number)


async def test_the_store_goes_on_after_a_refused_commit(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(StoreError):
            await desk.write(runs=[run(1)])
        desk.number -= 1
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await desk.find(run(1)) == run(1)


async def test_equal_plans_are_one_row_and_the_first_stays(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN, PLAN], runs=[run(1)])
        await desk.write(plans=[PlanRow(PLAN.plan_id, b"other", b"other")], runs=[run(2)])
        assert await desk.store.find_plan(PLAN.plan_id) == PLAN


async def test_a_change_replaces_the_changing_half_of_a_run(backend: Backend) -> None:
    row = run(1, name="kept", idempotency_key="key")
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[row])
        await desk.write(
            run_changes=[change(row, status="running", cancel_requested=True, started_at=5)]
        )
        found = await desk.find(row)
        assert found == run(
            1,
            name="kept",
            idempotency_key="key",
            status="running",
            cancel_requested=True,
            started_at=5,
        )
        await desk.write(run_changes=[change(row, status="failed", finished_at=9, error=b"{}")])
        found = await desk.find(row)
        assert found is not None
        assert (found.status, found.cancel_requested, found.started_at) == ("failed", False, None)
        assert (found.finished_at, found.error) == (9, b"{}")


async def test_a_run_may_be_made_and_changed_in_one_transaction(backend: Backend) -> None:
    row = run(1)
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[row],
            run_changes=[change(row, status="running", started_at=5), change(finished(1, 9))],
        )
        assert await desk.find(row) == finished(1, 9)


async def test_of_two_changes_of_a_row_the_last_stays(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        await desk.write(
            run_changes=[change(run(1), status="running", started_at=5), change(finished(1, 9))],
            workers=[worker("w-1", status="online"), worker("w-1", status="lost")],
        )
        assert await desk.find(run(1)) == finished(1, 9)
        assert await desk.store.workers() == [worker("w-1", status="lost")]


async def test_a_worker_that_is_gone_has_no_row_unless_it_is_put(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(workers=[worker("w-1"), worker("w-2"), worker("w-1", tenant="other")])
        gone = [("default", name) for name in ("w-1", "w-2", "nobody")]
        await desk.write(workers=[worker("w-2", version="2")], workers_gone=gone)
        assert await desk.store.workers() == [
            worker("w-2", version="2"),
            worker("w-1", tenant="other"),
        ]


async def test_a_worker_is_put_by_tenant_and_id(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(workers=[worker("w-2", version="1"), worker("w-1")])
        await desk.write(workers=[worker("w-2", version="2"), worker("w-1", tenant="other")])
        assert await desk.store.workers() == [
            worker("w-1"),
            worker("w-2", version="2"),
            worker("w-1", tenant="other"),
        ]


async def test_a_large_transaction_is_written(backend: Backend) -> None:
    segments = [segment(run(1), number, number, b"x" * 1_000) for number in range(1, 1_001)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)], segments=segments)
        assert await desk.store.read_segments(run(1).run_id) == segments


async def test_commits_asked_for_at_once_are_written_in_their_order(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        async with asyncio.TaskGroup() as group:
            for number in range(1, 21):
                group.create_task(desk.write(segments=[segment(run(1), number, number)]))
        segments = await desk.store.read_segments(run(1).run_id)
        assert [one.last for one in segments] == list(range(1, 21))
        assert await desk.store.is_committed(desk.claim, 21)
