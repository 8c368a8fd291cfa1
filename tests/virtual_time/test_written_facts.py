"""What a scheduler writes while other releases share its store, and what it does if it reads less than is written."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.facts_version import FACTS_VERSION, FIRST_FACTS
from astraflow.core.fleet.facts import Announced
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.scheduler.service import Scheduler
from astraflow.store.rows import SiteRow
from astraflow.store.store import Claim, Store
from astraflow.store.written_facts import WRITTEN_FACTS
from tests.sim.shells.processes import Gauge
from tests.virtual_time.rig import TENANT, Rig, with_rig

NEXT = FACTS_VERSION + 1


class PlantedFact(Announced, frozen=True):
    facts_version: ClassVar[int] = NEXT


def _plant(rig: Rig) -> None:
    """Have the engine decide what the next release would write."""
    writer = rig.scheduler.serving.writer
    view = writer.engine.view
    writer._let(lambda now, at: view.record_note(PlantedFact(TENANT, at, "planted", b"{}")))


async def _events(rig: Rig) -> list[str]:
    rows = await rig.site.disk.store.tenant_events(TENANT, 0, limit=100)
    return [row.type for row in rows]


def test_a_scheduler_alone_writes_all_that_it_reads() -> None:
    async def test(rig: Rig) -> None:
        store = rig.site.disk.store
        assert await store.written_facts() == FACTS_VERSION
        ask = rig.scheduler.serving.engine.ask
        assert ask.may_write(FIRST_FACTS) and ask.may_write(FACTS_VERSION)
        assert not ask.may_write(NEXT)

    with_rig(test)


def test_a_fact_that_may_not_be_written_is_refused_and_work_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[str] = []
    monkeypatch.setattr(Gauge, "failed", lambda _, kind: failures.append(kind))

    async def test(rig: Rig) -> None:
        run_id = await rig.submit("ok", key="before")
        scheduler = rig.scheduler
        served = scheduler.serving
        _plant(rig)
        asked = asyncio.create_task(rig.submit("ok", key="beside"))
        with pytest.raises(errors.Unavailable):
            await asked
        await rig.until(lambda: scheduler.is_serving and scheduler.serving is not served)
        assert failures == ["engine"]
        assert "planted" not in await _events(rig)
        again = await scheduler.runs.submit(rig.submission("ok", key="beside"))
        assert again.is_new, "nothing of its batch was stored"
        for one in (run_id, again.run_id):
            await rig.until(lambda one=one: rig.site.mirror.runs[one].is_finished)  # type: ignore[misc]

    with_rig(test)


def test_a_raised_version_holds_without_a_restart_and_does_not_fall() -> None:
    async def test(rig: Rig) -> None:
        served = rig.scheduler.serving
        for version in (NEXT, FACTS_VERSION):
            served.writer.let_write(version)
            assert served.engine.ask.may_write(NEXT)
        _plant(rig)
        run_id = await rig.submit("ok")
        assert "planted" in await _events(rig)
        assert rig.scheduler.serving is served
        await rig.until(lambda: rig.site.mirror.runs[run_id].is_finished)

    with_rig(test)


def test_an_owner_that_reads_less_than_is_written_ends_before_it_serves() -> None:
    """As one that was away while the version was raised."""

    async def test(rig: Rig) -> None:
        store = rig.site.handle_class(rig.site.disk)
        parts = msgspec.structs.replace(rig.scheduler._lifecycle._parts, store=store)
        await rig.site.schedulers[0].stop()
        await _write(rig.site.disk.store, NEXT)
        other = Scheduler(parts, Catalogs([]), Current())
        with pytest.raises(errors.StoreError) as caught:
            await other.run()
        assert caught.value.code is errors.STORE_NEWER
        assert not other.is_serving
        await _write(rig.site.disk.store, FACTS_VERSION)

    with_rig(test)


async def _write(store: Store, version: int) -> None:
    claim = await store.claim("somebody")
    assert isinstance(claim, Claim)
    row = SiteRow(WRITTEN_FACTS, str(version))
    await store.put_site(claim, row.name, row.value)
    await store.release(claim)
