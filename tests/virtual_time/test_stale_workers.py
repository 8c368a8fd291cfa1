"""Workers that have not been there for long go from lists and from the store; those that are there stay."""

from __future__ import annotations

from astraflow.scheduler.stale_workers import NOTE_MS, forget_stale_workers
from tests.virtual_time.rig import TENANT, Rig, with_rig

MONTH_S = 30 * 24 * 3600.0


def test_a_worker_that_stays_away_is_forgotten_and_may_come_back() -> None:
    async def test(rig: Rig) -> None:
        away, there = rig.site.workers
        await rig.until(lambda: len(rig.scheduler.workers.of_tenant(TENANT)) == 2)
        await rig.until(
            lambda: all(one.status == "online" for one in rig.scheduler.workers.of_tenant(TENANT))
        )
        names = {one.worker_id for one in rig.scheduler.workers.of_tenant(TENANT)}
        away.crash()
        await rig.until(
            lambda: any(one.status == "lost" for one in rig.scheduler.workers.of_tenant(TENANT))
        )
        (lost,) = (one for one in rig.scheduler.workers.of_tenant(TENANT) if one.status == "lost")
        writer = rig.scheduler.serving.writer
        now_ms = rig.site.clock.wall_ms()

        async def sweep(at_ms: int, keep_s: float | None = MONTH_S) -> set[str]:
            forget_stale_workers(writer, keep_s, at_ms)
            await writer.barrier()
            listed = {one.worker_id for one in rig.scheduler.workers.of_tenant(TENANT)}
            stored = {row.worker_id for row in await rig.site.disk.store.workers()}
            assert listed == stored
            return listed

        month_ms = int(MONTH_S * 1000)
        assert await sweep(0) == names, "nothing is old before the clock has proved itself"
        assert await sweep(now_ms + 10 * month_ms, None) == names, "for ever"
        assert await sweep(now_ms + month_ms - 60_000) == names
        assert await sweep(now_ms + month_ms + 60_000) == names - {lost.worker_id}
        away.boot()
        await rig.until(lambda: len(rig.scheduler.workers.of_tenant(TENANT)) == 2)
        await rig.until(
            lambda: all(one.status == "online" for one in rig.scheduler.workers.of_tenant(TENANT))
        )
        assert {row.worker_id for row in await rig.site.disk.store.workers()} == names
        assert there is not away

    with_rig(test, workers=2)


def test_a_worker_that_is_there_is_written_down_once_a_day() -> None:
    async def test(rig: Rig) -> None:
        async def seen() -> int:
            (row,) = await rig.site.disk.store.workers()
            return row.seen_at

        await rig.until(lambda: len(rig.scheduler.workers.of_tenant(TENANT)) == 1)
        await rig.until(lambda: rig.scheduler.workers.of_tenant(TENANT)[0].status == "online")
        writer = rig.scheduler.serving.writer
        first = await seen()
        await rig.until(lambda: rig.site.clock.wall_ms() > first)
        forget_stale_workers(writer, MONTH_S, first + NOTE_MS)
        await writer.barrier()
        assert await seen() == first
        forget_stale_workers(writer, MONTH_S, first + NOTE_MS + 1)
        await writer.barrier()
        assert await seen() > first

    with_rig(test, workers=1)
