from __future__ import annotations

from astraflow.store.retention import KEY_MS, PIECE_BYTES, PIECE_ROWS, PIECE_RUNS, Swept
from astraflow.store.rows import PlanRow
from astraflow.store.store import Retention
from tests.conformance.store.backends import Backend, Desk
from tests.conformance.store.samples import (
    DAY_MS,
    NOW_MS,
    PLAN,
    audit,
    event,
    finished,
    run,
    segment,
    workflow,
)

FOREVER = Retention(
    finished_runs_s=None,
    finished_runs=None,
    max_bytes=None,
    tenant_events_s=None,
    tenant_events=None,
    audit_s=None,
    audits=None,
)
MONTH = Retention(finished_runs_s=30 * 24 * 3600.0, max_bytes=None)


async def sweep(desk: Desk, retention: Retention) -> Swept:
    return await desk.store.sweep(desk.claim, retention, NOW_MS)


async def stored(desk: Desk) -> list[str]:
    return [row.run_id[-1] for row in await desk.store.list_runs("default", limit=200)][::-1]


async def test_nothing_goes_when_everything_is_kept_for_ever(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[finished(1, 1)], events=[event(1, at=1), event(2)])
        await desk.write(audits=[audit(1, at=1)])
        assert await sweep(desk, FOREVER) == Swept()
        assert await stored(desk) == ["1"]


async def test_runs_go_by_the_age_of_their_end_with_their_pages(backend: Backend) -> None:
    old, young = finished(1, NOW_MS - 31 * DAY_MS), finished(2, NOW_MS - 29 * DAY_MS)
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[old, young, run(3)],
            segments=[
                segment(old, 1, 1),
                segment(old, 2, 2),
                segment(young, 1, 1),
                segment(run(3), 1, 1),
            ],
        )
        assert await sweep(desk, MONTH) == Swept(runs=1)
        assert await stored(desk) == ["2", "3"]
        assert await desk.store.read_segments(old.run_id) == []
        assert await desk.store.read_segments(young.run_id) == [segment(young, 1, 1)]
        assert await sweep(desk, MONTH) == Swept()


async def test_beyond_the_count_the_oldest_finished_runs_go(backend: Backend) -> None:
    runs = [finished(number, NOW_MS - number) for number in range(1, 6)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[*runs, run(0), run(6), run(7)])
        limits = Retention(finished_runs=2)
        assert await sweep(desk, limits) == Swept(runs=3)
        assert await stored(desk) == ["0", "1", "2", "6", "7"]


async def test_beyond_the_bytes_the_oldest_finished_runs_go(backend: Backend) -> None:
    runs = [finished(number, NOW_MS - 100 + number) for number in range(1, 9)]
    async with backend.desk() as desk:
        segments = [segment(row, 1, 1, bytes(100_000)) for row in [*runs, run(9)]]
        await desk.write(plans=[PLAN], runs=[*runs, run(9)], segments=segments)
        held = (await desk.store.usage()).bytes
        limits = Retention(finished_runs_s=None, finished_runs=None, max_bytes=held - 250_000)
        assert (await sweep(desk, limits)).runs == 3
        assert await stored(desk) == ["4", "5", "6", "7", "8", "9"]
        assert (await desk.store.usage()).bytes <= held - 250_000
        assert await sweep(desk, limits) == Swept()


async def test_the_bytes_of_removed_plans_count_in_the_next_piece(backend: Backend) -> None:
    count = 2 * PIECE_RUNS + 100
    runs = [finished(number, number + 1, plan_id=f"plan-{number}") for number in range(count)]
    plans = [PlanRow(row.plan_id, b"{}", bytes(4_000)) for row in runs]
    async with backend.desk() as desk:
        await desk.write(plans=plans, runs=runs)
        held = (await desk.store.usage()).bytes
        bound = held - (PIECE_RUNS + PIECE_RUNS // 2) * 4_000
        limits = Retention(finished_runs_s=None, finished_runs=None, max_bytes=bound)
        while (await sweep(desk, limits)).more:
            pass
        assert (await desk.store.usage()).runs == count - 2 * PIECE_RUNS
        assert (await desk.store.usage()).bytes <= bound


async def test_active_runs_are_never_touched(backend: Backend) -> None:
    limits = Retention(finished_runs_s=0.0, finished_runs=0, max_bytes=0)
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[run(1, created_at=1), run(2, created_at=1, status="running", started_at=1)],
            segments=[segment(run(1), 1, 1)],
        )
        assert await sweep(desk, limits) == Swept()
        assert await stored(desk) == ["1", "2"]
        assert await desk.store.read_segments(run(1).run_id) == [segment(run(1), 1, 1)]


async def test_a_plan_goes_with_the_last_run_that_uses_it(backend: Backend) -> None:
    other = PlanRow("plan-2", b"d", b"p")
    limits = Retention(finished_runs=1)
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN, other],
            runs=[
                finished(1, NOW_MS - 9),
                finished(2, NOW_MS - 8, plan_id="plan-2"),
                finished(3, NOW_MS - 7),
            ],
        )
        assert (await sweep(desk, limits)).runs == 2
        assert await desk.store.find_plan(PLAN.plan_id) == PLAN
        assert await desk.store.find_plan("plan-2") is None


async def test_a_sweep_is_bounded_and_says_when_there_is_more(backend: Backend) -> None:
    runs = [finished(number, number + 1) for number in range(PIECE_RUNS + 5)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=runs, segments=[segment(row, 1, 1) for row in runs])
        assert await sweep(desk, MONTH) == Swept(runs=PIECE_RUNS, more=True)
        assert await sweep(desk, MONTH) == Swept(runs=5)
        assert await desk.store.find_plan(PLAN.plan_id) is None


async def test_a_run_larger_than_a_piece_vanishes_at_once_and_goes_in_pieces(
    backend: Backend,
) -> None:
    quarter = bytes(PIECE_BYTES // 4)
    large, small = finished(1, 1), finished(2, 2)
    segments = [segment(large, number, number, quarter) for number in range(1, 10)]
    async with backend.desk() as desk:
        empty = (await desk.store.usage()).bytes
        await desk.write(
            plans=[PLAN], runs=[large, small], segments=[*segments, segment(small, 1, 1)]
        )
        first = await sweep(desk, MONTH)
        assert first.more
        assert await desk.find(large) is None
        runs = first.runs
        while (swept := await sweep(desk, MONTH)).more:
            runs += swept.runs
        assert runs + swept.runs == 2
        assert await desk.store.read_segments(large.run_id) == []
        assert (await desk.store.usage()).bytes < empty + PIECE_BYTES // 4


async def test_a_key_answers_for_a_day_even_when_its_run_is_gone(backend: Backend) -> None:
    limits = Retention(finished_runs=0)
    young = finished(1, NOW_MS, created_at=NOW_MS - KEY_MS, idempotency_key="young")
    old = finished(2, NOW_MS, created_at=NOW_MS - KEY_MS - 1, idempotency_key="old")
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[young, old])
        assert (await sweep(desk, limits)).runs == 2
        assert await stored(desk) == []
        assert [one.key for one in await desk.store.submissions(0)] == ["young"]


async def test_old_events_go_from_the_front_and_the_last_one_stays(backend: Backend) -> None:
    limits = Retention(tenant_events_s=60.0)
    old = NOW_MS - 61_000
    async with backend.desk() as desk:
        await desk.write(
            events=[
                event(1, at=old),
                event(2),  # before its time: the wall clock had stepped
                event(3, at=old),
                event(4),
                event(5),
                event(1, "other", at=old),
                event(2, "other", at=old),
            ]
        )
        assert await sweep(desk, limits) == Swept(events=4)
        assert await desk.store.tenant_events("default", 0, 10) == [event(4), event(5)]
        assert await desk.store.event_heads() == {"default": 5, "other": 2}


async def test_events_that_a_clock_ahead_has_stamped_go_with_old_ones_behind_them(
    backend: Backend,
) -> None:
    count = PIECE_ROWS + 2
    old = [event(number, at=1) for number in range(2, count + 1)]
    async with backend.desk() as desk:
        await desk.write(events=[event(1, at=NOW_MS + DAY_MS), *old, event(count + 1)])
        events = 0
        while (swept := await sweep(desk, Retention())).more:
            events += swept.events
        assert events + swept.events == count
        assert await desk.store.tenant_events("default", 0, 10) == [event(count + 1)]


async def test_old_events_of_many_tenants_go_in_pieces(backend: Backend) -> None:
    each = PIECE_ROWS // 2 + 100
    tenants = ["a", "b", "c"]
    async with backend.desk() as desk:
        for tenant in tenants:
            await desk.write(events=[event(number, tenant, at=1) for number in range(1, each + 1)])
        assert await sweep(desk, Retention()) == Swept(events=PIECE_ROWS, more=True)
        assert await sweep(desk, Retention()) == Swept(events=3 * (each - 1) - PIECE_ROWS)
        assert await desk.store.event_heads() == dict.fromkeys(tenants, each)


async def test_old_audits_go_and_their_numbers_are_not_used_again(backend: Backend) -> None:
    limits = Retention(audit_s=60.0)
    async with backend.desk() as desk:
        await desk.write(audits=[audit(1, at=NOW_MS - 61_000), audit(2, at=NOW_MS - 61_000)])
        before = await desk.store.audit("default", limit=10)
        assert await sweep(desk, limits) == Swept(audits=2)
        await desk.write(audits=[audit(3)])
        ((number, kept),) = await desk.store.audit("default", limit=10)
        assert kept == audit(3)
        assert number > before[0][0]


async def test_many_old_events_and_audits_go_in_pieces(backend: Backend) -> None:
    count = PIECE_ROWS + 1
    async with backend.desk() as desk:
        await desk.write(
            events=[event(number, at=1) for number in range(1, count + 2)],
            audits=[audit(number, at=1) for number in range(count)],
        )
        events = audits = 0
        has_more = True
        while has_more:
            swept = await sweep(desk, Retention())
            events, audits = events + swept.events, audits + swept.audits
            has_more = swept.more
        assert (events, audits) == (count, count)


async def test_workflows_are_kept_whatever_the_limits(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.store.put_workflow(desk.claim, workflow("a", 1))
        await sweep(desk, Retention(finished_runs=0, max_bytes=0))
        assert await desk.store.find_workflow("default", "a") == workflow("a", 1)


async def test_too_many_events_go_from_the_longest_stream_and_runs_stay(backend: Backend) -> None:
    limits = Retention(tenant_events=6)
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[finished(1, NOW_MS)])
        await desk.write(
            events=[
                *(event(number) for number in range(1, 11)),
                *(event(number, "other") for number in range(1, 3)),
                event(1, "third"),
            ]
        )
        assert await sweep(desk, limits) == Swept(events=7)
        assert await desk.store.tenant_events("default", 0, 10) == [event(8), event(9), event(10)]
        assert len(await desk.store.tenant_events("other", 0, 10)) == 2
        assert await sweep(desk, limits) == Swept()
        assert await stored(desk) == ["1"]


async def test_the_last_event_of_each_tenant_stays_however_few_may(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(events=[event(1), event(2), event(1, "other"), event(2, "other")])
        assert await sweep(desk, Retention(tenant_events=1)) == Swept(events=2)
        assert await desk.store.event_heads() == {"default": 2, "other": 2}


async def test_too_many_audits_go_oldest_first_in_pieces_and_runs_stay(backend: Backend) -> None:
    limits = Retention(audits=5)
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[finished(1, NOW_MS)])
        await desk.write(audits=[audit(number) for number in range(PIECE_ROWS + 10)])
        while (await sweep(desk, limits)).more:
            pass
        left = [row for _, row in await desk.store.audit("default", limit=10)]
        assert left == [audit(number) for number in range(PIECE_ROWS + 9, PIECE_ROWS + 4, -1)]
        assert await stored(desk) == ["1"]
