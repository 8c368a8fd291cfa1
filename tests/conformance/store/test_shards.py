"""Several owners of one store, each with a shard: what one writes and loses is no matter of the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.ids import RunId
from astraflow.store.cluster import StoredCluster
from astraflow.store.memory import MemoryStore
from astraflow.store.postgres import PostgresStore
from astraflow.store.rows import (
    AuditRow,
    FactSegment,
    RunChange,
    RunRow,
    SentAuditRow,
    SubmissionRow,
    TenantEvent,
    TenantRow,
    WorkerRow,
)
from astraflow.store.store import HOME_SHARD, Retention, Store
from tests.conformance.store.backends import Backend, Desk, MemoryBackend, SqliteBackend
from tests.conformance.store.samples import NOW_MS, PLAN, run

HOMES = {"default": 0, "acme": 3, "globex": 7}


async def _place(store: Store, tenant: str, shard: int) -> None:
    """Say where a tenant lives."""
    if isinstance(store, MemoryStore):
        row = (tenant, 0, shard)
        store.database.writer.connection.execute("INSERT INTO lanes VALUES (?, ?, ?)", row)
        return
    assert isinstance(store, PostgresStore)
    connection = await asyncpg.connect(store.database.site.url)
    try:
        insert = "INSERT INTO astraflow.lanes VALUES ($1, $2, $3)"
        await connection.execute(insert, tenant, 0, shard)
    finally:
        await connection.close()


@asynccontextmanager
async def _desks(backend: Backend) -> AsyncIterator[dict[str, Desk]]:
    """An owner for the shard of each tenant."""
    async with backend.opened() as store:
        desks: dict[str, Desk] = {}
        opened: list[Store] = []
        for tenant, shard in HOMES.items():
            if shard != HOME_SHARD:
                await _place(store, tenant, shard)
            own = store if shard == HOME_SHARD else store.of_shard(shard)
            if own is not store:
                await own.open()
                opened.append(own)
            claim = await own.claim(f"owner of {tenant}")
            assert claim is not None and claim.shard == shard
            desks[tenant] = Desk(own, claim)
        try:
            yield desks
        finally:
            for own in opened:
                await own.close()


def _run(tenant: str) -> RunRow:
    return msgspec.structs.replace(
        run(1), run_id=RunId(f"run-{tenant}"), tenant=tenant, idempotency_key=f"key-{tenant}"
    )


def _worker(tenant: str) -> WorkerRow:
    return WorkerRow(tenant=tenant, worker_id="w", subject="s")


def _tenant(tenant: str) -> TenantRow:
    return TenantRow(tenant, False, b"{}", 1, "", 1)


@pytest.fixture(params=["memory", "postgres"])
def shared(request: pytest.FixtureRequest) -> Backend:
    if request.param == "memory":
        return MemoryBackend()
    made = request.getfixturevalue("postgres")
    assert isinstance(made, Backend)
    return made


async def test_each_owner_loads_what_is_of_its_shard(shared: Backend) -> None:
    async with _desks(shared) as desks:
        for tenant, desk in desks.items():
            await desk.write(
                plans=[PLAN],
                runs=[_run(tenant)],
                workers=[_worker(tenant)],
                events=[TenantEvent(tenant, number, 1, "x", b"{}") for number in (1, 2)],
                audits=[AuditRow(tenant, 1, "who", "what")],
                tenants=[_tenant(tenant)],
            )
        for tenant, desk in desks.items():
            store = desk.store
            assert [row.tenant for row in await store.active_runs()] == [tenant]
            assert [row.tenant for row in await store.workers()] == [tenant]
            assert [row.tenant for row in await store.tenants()] == [tenant]
            assert await store.event_heads() == {tenant: 2}
            keys = [row.key for row in await store.submissions(0)]
            assert keys == [f"key-{tenant}"]
            assert [row.tenant for row in await store.all_tenants()] == sorted(HOMES)
            for other in HOMES:  # what is asked for by name is there for all
                assert await store.find_run(other, RunId(f"run-{other}")) == _run(other)
                found = await store.find_submission(other, f"key-{other}")
                assert isinstance(found, SubmissionRow)


async def test_an_owner_that_is_replaced_keeps_nobody_else_from_writing(shared: Backend) -> None:
    async with _desks(shared) as desks:
        acme, globex = desks["acme"], desks["globex"]
        newer = await acme.store.claim("owner of acme")
        assert newer is not None and newer.epoch == acme.claim.epoch + 1
        with pytest.raises(StoreError) as caught:
            await acme.write(plans=[PLAN], runs=[_run("acme")])
        assert caught.value.code is errors.STORE_FENCED
        await globex.write(plans=[PLAN], runs=[_run("globex")])
        assert await globex.find(_run("globex")) == _run("globex")
        assert await globex.find(_run("acme")) is None


async def test_a_claim_of_one_shard_writes_nothing_for_another(shared: Backend) -> None:
    """The number of a commit and the epoch are compared with the row of the claim's own shard."""
    async with _desks(shared) as desks:
        acme, home = desks["acme"], desks["default"]
        for _ in range(3):
            again = await home.store.claim("owner of default")
            assert again is not None
        await acme.write(plans=[PLAN], runs=[_run("acme")])
        assert await acme.store.is_committed(acme.claim, 1)
        with pytest.raises(StoreError):
            await home.write(plans=[PLAN], runs=[_run("default")])


async def test_the_owner_of_the_home_shard_sweeps_the_whole_store(shared: Backend) -> None:
    async with _desks(shared) as desks:
        for tenant, desk in desks.items():
            made = _run(tenant)
            await desk.write(
                plans=[PLAN],
                runs=[made],
                segments=[FactSegment(made.run_id, 1, 1, b"x" * 100)],
            )
            await desk.write(run_changes=[RunChange(made.run_id, "succeeded", False, 1, 2, None)])
        home = desks["default"]
        swept = await home.store.sweep(home.claim, Retention(finished_runs=0), NOW_MS)
        while swept.more:
            swept = await home.store.sweep(home.claim, Retention(finished_runs=0), NOW_MS)
        for tenant, desk in desks.items():
            assert await desk.find(_run(tenant)) is None
            assert await desk.store.read_segments(RunId(f"run-{tenant}")) == []
        assert (await home.store.usage()).runs == 0


async def test_what_is_audited_elsewhere_reaches_the_chain_of_its_tenant_once(
    shared: Backend,
) -> None:
    async with _desks(shared) as desks:
        acme, home = desks["acme"], desks["default"]
        sent = SentAuditRow("3.1.1", "default", 5, "admin", "tenant.suspend", None, None, "acme")
        await acme.write(sent_audits=[sent])
        assert await acme.store.sent_audits(10) == []
        assert await home.store.sent_audits(10) == [sent]
        await home.write(
            audits=[AuditRow("default", 5, "admin", "tenant.suspend")],
            sent_audits_gone=[(sent.sent_id,)],
        )
        assert await home.store.sent_audits(10) == []


async def test_a_file_has_one_owner(sqlite: SqliteBackend) -> None:
    async with sqlite.opened() as store:
        with pytest.raises(StoreError) as caught:
            store.of_shard(1)
        assert "several schedulers need PostgreSQL" in caught.value.message


async def test_new_tenants_go_where_the_fewest_are_and_stay(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        names = [f"t{number}" for number in range(40)]
        for name in names * 2:
            await cluster.assign_lane(name)
        lanes = await cluster.lanes()
        assert sorted(tenant for tenant, _ in lanes) == sorted(names)
        counts = [list(lanes.values()).count(shard) for shard in range(16)]
        assert max(counts) - min(counts) <= 1
        before = dict(lanes)
        await cluster.assign_lane("t0")
        assert await cluster.lanes() == before


async def test_a_look_shows_what_can_be_claimed(postgres: Backend) -> None:
    async with _desks(postgres) as desks:
        store = desks["default"].store
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        await cluster.renew_node("n1", "http://one")
        await cluster.renew_node("n2", "http://two", is_leaving=True)
        one, two = await cluster.nodes()
        assert (one.node_id, one.url, one.is_leaving, two.is_leaving) == (
            "n1", "http://one", False, True,
        )  # fmt: skip
        assert one.is_live and 0 <= one.seen_s < 5
        seen = {shard.shard: shard for shard in await cluster.shards()}
        assert set(seen) == set(HOMES.values())
        assert not any(shard.is_free for shard in seen.values())
        await desks["acme"].store.release(desks["acme"].claim)
        free = [shard.shard for shard in await cluster.shards() if shard.is_free]
        assert free == [HOMES["acme"]]
        await cluster.remove_node("n1")
        assert [node.node_id for node in await cluster.nodes()] == ["n2"]
