"""What a scheduler promises while its disk is slow or fails: commit then speak, and nothing is lost or left."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.ids import RunId
from astraflow.scheduler import feed as feeds
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.service import Scheduler
from astraflow.scheduler.store_timeouts import STORE_TIMEOUT_S, Undecided
from tests.sim.loop import Hang, VirtualLoop, run_virtual
from tests.virtual_time.rig import TENANT, Rig, with_rig


def test_nothing_is_said_before_it_is_committed() -> None:
    async def test(rig: Rig) -> None:
        await rig.until(lambda: bool(rig.scheduler.workers.of_tenant(TENANT)))
        rig.hold()
        asked = asyncio.create_task(rig.submit("ok"))
        await asyncio.sleep(1.5)  # a dispatch that takes longer to leave is withdrawn
        assert not asked.done()
        assert rig.site.checkers.attempts.executions == 0
        rig.let_go()
        run_id = await asked
        assert run_id in rig.site.mirror.runs
        await rig.until(lambda: rig.site.mirror.runs[run_id].is_finished)
        assert rig.site.checkers.attempts.executions == 1

    with_rig(test)


def test_heartbeats_are_answered_while_a_commit_hangs() -> None:
    async def test(rig: Rig) -> None:
        run_id, scheduler = await rig.submit("endless"), rig.scheduler
        await rig.until(lambda: rig.site.checkers.attempts.executions == 1)
        rig.hold()
        with pytest.raises(Undecided):
            await rig.submit("ok")
        await asyncio.sleep(rig.site.config.lease_s * 3)
        worker = rig.site.workers[0]
        hosts = worker.hosts
        assert hosts is not None
        assert len(hosts.running) == 1, "it was fenced, though its scheduler lives"
        rig.let_go()
        await rig.until(scheduler.is_ready)
        await scheduler.runs.cancel(TENANT, RunId(run_id), "somebody")
        await rig.until(lambda: not hosts.running)

    with_rig(test)


def test_a_view_waits_until_what_it_shows_is_durable() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit("endless")
        await rig.until(lambda: rig.site.checkers.attempts.executions == 1)
        await rig.until(lambda: rig.site.mirror.rows[run_id].status == "running")
        rig.hold()
        cancelling = asyncio.create_task(
            rig.scheduler.runs.cancel(TENANT, RunId(run_id), "somebody")
        )
        await asyncio.sleep(0)
        looking = asyncio.create_task(rig.scheduler.reader.view_run(TENANT, RunId(run_id)))
        await asyncio.sleep(STORE_TIMEOUT_S - 1.0)
        assert not looking.done()
        rig.let_go()
        assert (await looking).cancel_requested is True
        assert rig.site.mirror.rows[run_id].cancel_requested
        await cancelling

    with_rig(test)


def test_a_failing_store_makes_the_scheduler_unready_and_then_ready_again() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit("slow", "ok")
        scheduler = rig.scheduler
        following = asyncio.create_task(rig.events(run_id))
        await asyncio.sleep(0.1)  # it follows by now
        rig.fault = StoreError(errors.STORE_FULL, "planted: the disk is full")
        with pytest.raises(errors.Unavailable):
            await rig.submit("ok")
        await rig.until(lambda: not scheduler.is_ready())
        assert "the store failed" in (scheduler.problem() or "")
        with pytest.raises(errors.Unavailable):
            await scheduler.reader.view_run(TENANT, RunId(run_id))
        seen = await following  # it was let go
        rig.fault = None
        await rig.until(scheduler.is_ready)
        seen += await rig.events(run_id, seen[-1] if seen else 0)
        assert seen == list(range(1, rig.site.mirror.runs[run_id].last_event + 1))
        assert await rig.status(run_id) == "succeeded"

    with_rig(test)


def test_a_store_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    """What the engine had taken in may still be written, so it is unknown; what comes later is refused for certain."""

    async def test(rig: Rig) -> None:
        scheduler = rig.scheduler
        rig.hold()
        with pytest.raises(Undecided) as unknown:
            await rig.submit("ok", key="first")
        assert unknown.value.detail == {"outcome": "unknown"}
        assert not scheduler.is_ready()
        assert "the store has not answered a commit for 5 s" in (scheduler.problem() or "")
        with pytest.raises(errors.Unavailable) as refused:
            await scheduler.runs.submit(rig.submission("ok", key="second"))
        assert refused.value.detail == {"outcome": "refused"}
        with pytest.raises(Undecided):
            await scheduler.events.heads(TENANT)
        rig.let_go()
        await rig.until(scheduler.is_ready)
        first = await scheduler.runs.submit(rig.submission("ok", key="first"))
        second = await scheduler.runs.submit(rig.submission("ok", key="second"))
        assert (first.is_new, second.is_new) == (False, True)
        assert set(rig.site.mirror.runs) == {first.run_id, second.run_id}
        await rig.until(lambda: rig.site.mirror.runs[first.run_id].is_finished)

    with_rig(test)


def test_a_caller_that_gives_up_does_not_harm_the_run_it_asked_for() -> None:
    async def test(rig: Rig) -> None:
        rig.hold()
        first = asyncio.create_task(rig.submit("ok", key="first"))
        await asyncio.sleep(1.0)
        asked = asyncio.create_task(rig.submit("ok", key="second"))
        await asyncio.sleep(1.0)
        asked.cancel()
        await asyncio.wait([asked])
        rig.let_go()
        await first
        again = await rig.scheduler.runs.submit(rig.submission("ok", key="second"))
        assert not again.is_new
        await rig.until(lambda: rig.site.mirror.runs[again.run_id].is_finished)

    with_rig(test)


def test_a_slow_follower_reads_the_store_again_without_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "BUFFER_BYTES", 50)

    async def test(rig: Rig) -> None:
        run_id = await rig.submit("ok", "ok", "ok", "ok")
        seen: list[int] = []
        async for batch in rig.scheduler.reader.follow_run(TENANT, RunId(run_id), 0):
            seen += [event.id for event in batch]
            await asyncio.sleep(3.0)
        assert seen == list(range(1, rig.site.mirror.runs[run_id].last_event + 1))

    with_rig(test)


def test_a_follower_that_comes_when_nothing_serves_is_let_go() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit("ok")
        await rig.until(lambda: rig.site.mirror.runs[run_id].is_finished)
        feed = Feed(rig.site.disk.store)
        feed.end()
        last = rig.site.mirror.runs[run_id].last_event
        assert [pages async for pages in feed.segments(RunId(run_id), last)] == []
        assert [events async for events in feed.events(TENANT, 10**6)] == []
        assert feed.followers == 0

    with_rig(test)


def test_a_scheduler_that_is_stopped_while_it_starts_over_ends() -> None:
    async def test(rig: Rig) -> None:
        rig.fault = StoreError(errors.STORE_UNAVAILABLE, "planted: the store does not answer")
        with pytest.raises(errors.Unavailable):
            await rig.submit("ok")

    with_rig(test)


def test_a_scheduler_that_cannot_give_its_claim_back_ends_all_the_same() -> None:
    async def test(rig: Rig) -> None:
        rig.site.disk.out_until = 10**6  # the site is stopped while the store is out

    with_rig(test)


def test_a_broken_disk_ends_the_scheduler_even_if_its_claim_cannot_be_given_back() -> None:
    async def test(rig: Rig) -> None:
        store = rig.site.handle_class(rig.site.disk)
        parts = msgspec.structs.replace(rig.scheduler._lifecycle._parts, store=store)
        await rig.site.schedulers[0].stop()  # the fault is for the other one
        other = Scheduler(parts, Catalogs([]), Current())
        running = asyncio.create_task(other.run())
        await rig.until(other.is_ready)
        rig.fault = StoreError(errors.STORE_BROKEN, "planted: the disk is broken")
        rig.hold()
        asked = asyncio.create_task(other.runs.submit(rig.submission("ok")))
        await asyncio.sleep(1.0)
        rig.site.disk.out_until = 10**6
        rig.let_go()
        await asyncio.wait([asked, running])
        rig.site.disk.out_until = 0.0
        rig.fault = None
        assert isinstance(asked.exception(), errors.Unavailable)
        ended = running.exception()
        assert isinstance(ended, StoreError)
        assert ended.code is errors.STORE_BROKEN

    with_rig(test)


def test_a_worker_whose_connection_dies_as_it_opens_opens_another() -> None:
    async def test(rig: Rig) -> None:
        network = rig.site.network
        network.mean_delay_s = 0.5
        rig.site.workers[0].crash()
        rig.site.workers[0].boot()
        await rig.until(lambda: bool(network.wires))
        network.wires[0].cut()  # before `connect` has returned
        network.mean_delay_s = 0.002
        run_id = await rig.submit("ok")
        await rig.until(lambda: rig.site.mirror.runs[run_id].is_finished)

    with_rig(test)


def test_a_loop_on_which_everybody_waits_says_who() -> None:
    async def main(loop: VirtualLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Hang, match=r"every task waits and no timer is set(.|\n)*Event.wait"):
        run_virtual(main)
