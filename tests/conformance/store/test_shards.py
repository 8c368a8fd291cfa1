"""Several owners of one store, each with a shard: what one writes and loses is no matter of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.cluster.lanes import LaneSeen, PackageWant, ReservedKey, lane_name
from astraflow.core.errors import StoreError
from astraflow.core.ids import RunId
from astraflow.store.cluster import StoredCluster
from astraflow.store.memory import MemoryStore
from astraflow.store.postgres import PostgresSite, PostgresStore
from astraflow.store.rows import (
    AuditRow,
    FactSegment,
    ResourceRow,
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


async def _place(store: Store, tenant: str, shard: int, lane: int = 0) -> None:
    """Say where a lane of a tenant lives."""
    if isinstance(store, MemoryStore):
        insert = "INSERT INTO lanes (tenant, lane, shard, name) VALUES (?, ?, ?, ?)"
        row = (tenant, lane, shard, lane_name(tenant, lane))
        store.database.writer.connection.execute(insert, row)
        return
    assert isinstance(store, PostgresStore)
    connection = await asyncpg.connect(store.database.site.url)
    try:
        insert = "INSERT INTO astraflow.lanes (tenant, lane, shard, name) VALUES ($1, $2, $3, $4)"
        await connection.execute(insert, tenant, lane, shard, lane_name(tenant, lane))
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
        assert sorted(lanes) == sorted(names)
        shards = [lane.shard for (lane,) in lanes.values()]
        counts = [shards.count(shard) for shard in range(16)]
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


async def test_the_lanes_of_a_tenant_load_what_is_theirs(shared: Backend) -> None:
    async with shared.opened() as store:
        for lane, shard in enumerate((0, 5, 9)):
            await _place(store, "acme", shard, lane)
        stores = [store, store.of_shard(5), store.of_shard(9)]
        for own in stores[1:]:
            await own.open()
        try:
            for lane, own in enumerate(stores):
                await _write_lane(own, lane)
            for lane, own in enumerate(stores):
                name = lane_name("acme", lane)
                assert [row.run_id for row in await own.active_runs()] == [f"r{lane}"]
                assert [row.tenant for row in await own.workers()] == [name]
                assert [row.resource_id for row in await own.resources()] == [f"x{lane}"]
                assert [row.key for row in await own.submissions(0)] == [f"k{lane}"]
                assert await own.event_heads() == {name: lane + 1}
                assert [row.tenant for row in await own.tenants()] == ["acme"]
                # What is asked for by the name of the tenant is of all lanes.
                assert len(await own.list_runs("acme", limit=10)) == 3
                assert len(await own.resources("acme")) == 3
        finally:
            for own in stores[1:]:
                await own.close()


async def _write_lane(own: Store, lane: int) -> None:
    claim = await own.claim("owner")
    assert claim is not None
    name = lane_name("acme", lane)
    made = msgspec.structs.replace(
        run(1), run_id=RunId(f"r{lane}"), tenant="acme", lane=lane, idempotency_key=f"k{lane}"
    )
    kept = ResourceRow(
        tenant="acme", worker_id="w", resource_id=f"x{lane}", type="file", state="ready",
        created_at=lane, lane=lane,
    )  # fmt: skip
    await Desk(own, claim).write(
        plans=[PLAN],
        runs=[made],
        workers=[_worker(name)],
        resources=[kept],
        events=[TenantEvent(name, number + 1, 1, "x", b"{}") for number in range(lane + 1)],
        tenants=[_tenant("acme")] if lane == 0 else [],
    )


async def _states(cluster: StoredCluster) -> list[str]:
    return [one.state for one in await cluster.lanes_of("acme")]


async def test_shards_are_added_and_never_removed(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        for wanted, found in ((3, 16), (20, 20), (0, 20), (18, 20)):
            await asyncio.gather(*(cluster.add_shards(wanted) for _ in range(3)))
            assert not await cluster.set_lanes("acme", found + 1)
            lanes = (await cluster.lanes())["acme"]
            assert sorted(one.shard for one in lanes) == list(range(found))
        own = store.of_shard(19)
        await own.open()
        claim = await own.claim("its owner")
        assert claim is not None and claim.shard == 19
        await own.close()


async def test_a_tenant_gets_lanes_in_shards_of_their_own(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        await cluster.assign_lane("acme")
        (home,) = (await cluster.lanes())["acme"]
        changes = await cluster.changes()
        assert await cluster.set_lanes("acme", 4)
        assert await cluster.changes() != changes
        lanes = (await cluster.lanes())["acme"]
        assert lanes[0] == home and [one.lane for one in lanes] == [0, 1, 2, 3]
        assert len({one.shard for one in lanes}) == 4
        assert await cluster.lanes_of("acme") == lanes
        assert await _states(cluster) == ["open", "opening", "opening", "opening"]
        await cluster.open_lanes("acme")
        assert await _states(cluster) == ["open"] * 4
        assert await cluster.set_lanes("acme", 2)
        assert await _states(cluster) == ["open", "open", "closing", "closing"]
        assert await cluster.set_lanes("acme", 3)
        assert await _states(cluster) == ["open", "open", "opening", "closing"]
        assert [one.shard for one in await cluster.lanes_of("acme")] == [one.shard for one in lanes]
        assert await cluster.set_lanes("default", 2)  # it had no row: it lives in shard 0
        assert (await cluster.lanes_of("default"))[0] == LaneSeen(0, HOME_SHARD)
        assert not await cluster.set_lanes("acme", 17), "there are 16 shards"


async def test_of_many_who_want_a_key_one_has_it(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        other = PostgresSite(store.database.site.url)
        await other.open()
        try:
            clusters = [StoredCluster(site) for site in (store.database.site, other)]
            for number in range(20):
                key = f"k{number}"
                asked = [
                    clusters[lane % 2].reserve_key("acme", key, ReservedKey(lane, "f"), 10, 5)
                    for lane in range(6)
                ]
                found = await asyncio.gather(*asked)
                assert len(set(found)) == 1, "everybody is told of the same lane"
            await _check_key(clusters[0])
        finally:
            await other.close()


async def _check_key(cluster: StoredCluster) -> None:
    assert await cluster.find_key("acme", "k0", 5) is not None
    assert await cluster.find_key("acme", "k0", 11) is None, "it is too old to count"
    late = await cluster.reserve_key("acme", "k0", ReservedKey(9, "g"), 20, 11)
    assert late == ReservedKey(9, "g")
    await cluster.move_key("acme", "k0", 3, 4)
    assert await cluster.find_key("acme", "k0", 5) == late, "it is not of lane 3"
    await cluster.move_key("acme", "k0", 9, 4)
    assert await cluster.find_key("acme", "k0", 5) == ReservedKey(4, "g")
    assert await cluster.reserve_key("globex", "k0", ReservedKey(0, ""), 20, 11)


async def test_a_key_of_a_run_from_before_the_lanes_is_found(postgres: Backend) -> None:
    async with _desks(postgres) as desks:
        acme, store = desks["acme"], desks["default"].store
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        made = msgspec.structs.replace(_run("acme"), fingerprint="f")
        key, at = made.idempotency_key or "", made.created_at
        assert await cluster.find_key("acme", key, at) is None
        await acme.write(plans=[PLAN], runs=[made])
        assert await cluster.find_key("acme", key, at) == ReservedKey(0, "f")
        assert await cluster.find_key("acme", key, at + 1) is None, "it is too old to count"
        assert await cluster.find_key("globex", key, at) is None
        # Whoever reserves a key has looked for it first: the run does not keep it from being reserved.
        other = ReservedKey(1, "g")
        assert await cluster.reserve_key("acme", key, other, at, at) == other
        assert await cluster.find_key("acme", key, at) == other, "what is reserved counts first"


async def test_lanes_take_runs_when_they_are_opened(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        for tenant in ("acme", "globex"):
            await cluster.assign_lane(tenant)
            assert await cluster.set_lanes(tenant, 3)
        assert [one.state for one in await cluster.lanes_of("acme")] == ["open", *["opening"] * 2]
        changes = await cluster.changes()
        await cluster.open_lanes("acme")
        assert await cluster.changes() != changes
        assert [one.state for one in await cluster.lanes_of("acme")] == ["open"] * 3
        assert [one.state for one in await cluster.lanes_of("globex")][1:] == ["opening"] * 2
        await cluster.set_lanes("acme", 2)
        await cluster.open_lanes("acme")
        states = [one.state for one in await cluster.lanes_of("acme")]
        assert states == ["open", "open", "closing"], "one that closes stays so"


async def test_what_a_lane_wants_is_asked_once_and_refused_once(postgres: Backend) -> None:
    async with postgres.opened() as store:
        assert isinstance(store, PostgresStore)
        cluster = StoredCluster(store.database.site)
        await cluster.want_package("acme", "demo", "1.0.0", 10)
        await cluster.want_package("acme", "demo", "1.0.0", 20)
        (want,) = await cluster.wanted_packages()
        assert want == PackageWant("acme", "demo", "1.0.0", 20, None)
        await cluster.refuse_want(want, b"{}")
        (refused,) = await cluster.wanted_packages()
        assert refused.problem == b"{}"
        await cluster.forget_want(want)
        assert await cluster.wanted_packages() == []
