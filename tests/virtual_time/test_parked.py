"""A scheduler that is told that its shard is parked, and whose work the stack of a loop shows."""

from __future__ import annotations

import sys
from typing import cast

from astraflow.core.ids import RunId
from astraflow.scheduler.shard_blame import claim_at_work
from astraflow.store.rows import RunRow
from astraflow.store.store import Claim
from tests.sim.shells.disk import Handle
from tests.virtual_time.rig import TENANT, Rig, with_rig


def test_a_parked_scheduler_takes_runs_shows_them_and_goes_on_later() -> None:
    async def test(rig: Rig) -> None:
        await rig.until(lambda: bool(rig.scheduler.workers.of_tenant(TENANT)))
        rig.scheduler.set_parked(True)
        waiting, unwanted = await rig.submit("ok"), await rig.submit("ok")
        await rig.scheduler.runs.cancel(TENANT, RunId(unwanted), "somebody")
        await rig.until(lambda: rig.site.mirror.runs[unwanted].is_finished)
        shown = await rig.scheduler.reader.view_run(TENANT, RunId(waiting))
        assert shown.status == "queued"
        assert shown.nodes[0].waiting_for is not None
        assert "its shard is parked" in shown.nodes[0].waiting_for.detail
        assert rig.scheduler.is_ready()
        assert rig.site.checkers.attempts.executions == 0
        rig.scheduler.set_parked(False)
        await rig.until(lambda: rig.site.mirror.runs[waiting].is_finished)
        assert rig.site.checkers.attempts.executions == 1

    with_rig(test)


def test_the_work_of_a_writer_and_of_a_restore_is_that_of_their_shard() -> None:
    async def test(rig: Rig) -> None:
        found: list[Claim | None] = []
        gate = rig.pass_gate

        async def seen_in_a_commit() -> None:
            found.append(claim_at_work(sys._getframe()))
            await gate()

        rig.pass_gate = seen_in_a_commit  # type: ignore[method-assign]
        await rig.submit("ok")
        assert found[0] is rig.scheduler.serving.claim

        class SeenHandle(Handle):
            async def active_runs(self) -> list[RunRow]:
                found.append(claim_at_work(sys._getframe()))
                return cast("list[RunRow]", await self.__getattr__("active_runs")())

        rig.site.handle_class = SeenHandle
        found.clear()
        process = rig.site.schedulers[0]
        await process.stop()
        process.start()
        await rig.until(lambda: bool(found))
        assert isinstance(found[0], Claim)

    with_rig(test)


def test_what_is_of_no_shard_is_nobodys_work() -> None:
    assert claim_at_work(sys._getframe()) is None
    assert claim_at_work(None) is None
