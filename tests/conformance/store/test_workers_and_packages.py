"""Packages, install intents, resources and affinities, on every back end."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.errors import Conflict, StoreError
from astraflow.core.ids import RunId
from astraflow.store.packages import PACKAGES_CHANGE
from astraflow.store.rows import ActiveRow, AffinityRow, RolloutRow, SiteRow
from astraflow.store.store import Retention
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import (
    DAY_MS,
    NOW_MS,
    PLAN,
    intent,
    package,
    resource,
    run,
    worker,
)

replace = msgspec.structs.replace
AFFINITY = AffinityRow("default", "session:7", "w-1", NOW_MS, NOW_MS + 5)


def rollout(number: int, state: str, at: int = NOW_MS) -> RolloutRow:
    return RolloutRow("default", f"rollout-{number}", "acme.texts", state, b"{}", at)


async def test_a_published_version_is_there_for_its_tenant_alone(backend: Backend) -> None:
    mine, theirs = package("1.0.0", signature=b"{}", signed_by="acme"), package("2.0.0", tenant="b")
    async with backend.desk() as desk:
        assert await desk.store.put_package(desk.claim, mine)
        assert await desk.store.put_package(desk.claim, theirs)
        assert await desk.store.packages("default") == [mine]
        assert await desk.store.packages() == [theirs, mine]
        assert await desk.store.find_package("default", mine.name, "1.0.0") == mine
        assert await desk.store.find_package("default", mine.name, "2.0.0") is None


async def test_a_version_is_published_once_and_never_with_another_content(
    backend: Backend,
) -> None:
    row = package("1.0.0")
    async with backend.desk() as desk:
        assert await desk.store.put_package(desk.claim, row)
        again = replace(row, published_at=NOW_MS + 1)
        assert not await desk.store.put_package(desk.claim, again)
        with pytest.raises(Conflict) as caught:
            await desk.store.put_package(desk.claim, replace(row, sha256="another"))
        assert caught.value.code is errors.PKG_CONFLICT
        assert await desk.store.packages() == [row]


async def test_a_version_is_yanked_and_taken_back(backend: Backend) -> None:
    row = package("1.0.0")
    key = (row.tenant, row.name, row.version)
    async with backend.desk() as desk:
        store = desk.store
        await store.put_package(desk.claim, row)
        assert await store.yank_package(desk.claim, *key, NOW_MS, "it loses files")
        yanked = replace(row, yanked_at=NOW_MS, yanked_reason="it loses files")
        assert await store.find_package(*key) == yanked
        assert await store.yank_package(desk.claim, *key, None)
        assert await store.find_package(*key) == row
        assert not await store.yank_package(desk.claim, "default", row.name, "9.9.9", NOW_MS)


async def test_the_active_version_and_rollouts_are_replaced(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        older = ActiveRow("default", "acme.texts", "1.0.0", None, 1)
        running = [rollout(1, "running"), rollout(2, "running", NOW_MS + 1)]
        await desk.write(active_versions=[older], rollouts=running)
        newer = ActiveRow("default", "acme.texts", "2.0.0", "1.0.0", 2, "ann")
        await desk.write(active_versions=[newer], rollouts=[rollout(1, "succeeded", NOW_MS + 2)])
        assert await store.active_versions() == [newer]
        assert await store.rollouts() == [
            rollout(2, "running", NOW_MS + 1),
            rollout(1, "succeeded", NOW_MS + 2),
        ]
        assert await store.rollouts(["running"]) == [rollout(2, "running", NOW_MS + 1)]


async def test_each_change_of_packages_changes_a_value_of_the_site(backend: Backend) -> None:
    row = package("1.0.0")
    key = (row.tenant, row.name, row.version)
    async with backend.desk() as desk:
        store, seen = desk.store, [await desk.store.find_site(PACKAGES_CHANGE)]

        async def note() -> None:
            seen.append(await store.find_site(PACKAGES_CHANGE))

        await store.put_package(desk.claim, row)
        await note()
        for at in (NOW_MS, None, NOW_MS, None):
            await store.yank_package(desk.claim, *key, at)
            await note()
        await desk.write(site=[SiteRow(PACKAGES_CHANGE, "activated")])
        await note()
        assert len(set(seen)) == len(seen)
        await store.put_package(desk.claim, row)
        await store.yank_package(desk.claim, *key[:2], "9.9.9", NOW_MS)
        await note()
        assert seen[-1] == seen[-2], "nothing was changed"


async def test_a_commit_puts_and_removes_what_is_held(backend: Backend) -> None:
    one = resource(1, run_id="run-1", node_id="n", package="acme.texts 1.0.0", size_bytes=3)
    failed = intent("w-1", state="failed", tries=2, error=b'{"code":"E"}', why="demand")
    async with backend.desk() as desk:
        store = desk.store
        await desk.write(
            resources=[resource(1), one, resource(2)],
            affinities=[replace(AFFINITY, worker_id="w-0"), AFFINITY],
            intents=[intent("w-1"), failed, intent("w-2")],
        )
        assert await store.resources() == [resource(2), one]
        assert await store.affinities() == [AFFINITY]
        assert await store.intents() == [failed, intent("w-2")]
        await desk.write(
            resources=[replace(resource(2), state="evicted")],
            resources_gone=[("default", "w-1", "res-1"), ("default", "w-1", "res-2")],
            affinities_gone=[("default", "session:7"), ("default", "nobody's")],
            intents=[intent("w-2", state="installed")],
            intents_gone=[("default", w, "acme.texts", "1.0.0") for w in ("w-1", "w-2")],
        )
        assert await store.resources() == [replace(resource(2), state="evicted")]
        assert await store.affinities() == []
        assert await store.intents() == [intent("w-2", state="installed")]


async def test_a_commit_that_is_refused_leaves_what_is_held_alone(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)], resources=[resource(1)])
        with pytest.raises(StoreError):
            await desk.write(
                runs=[run(1)],
                resources=[resource(2)],
                resources_gone=[("default", "w-1", "res-1")],
                affinities=[AFFINITY],
                intents=[intent("w-1")],
            )
        assert await desk.store.resources() == [resource(1)]
        assert await desk.store.affinities() == []
        assert await desk.store.intents() == []


async def test_resources_are_listed_newest_first_page_by_page_and_by_what_they_are(
    backend: Backend,
) -> None:
    rows = [
        resource(1, run_id="run-1"),
        resource(1, "w-2", type="tensor", run_id="run-1"),
        resource(2, state="evicted"),
        resource(3, tenant="b"),
        resource(4, "w-2", type="tensor"),
    ]
    async with backend.desk() as desk:
        await desk.write(resources=rows)
        ask = desk.store.resources
        first = await ask("default", limit=2)
        assert first == [rows[4], rows[2]]
        place = (first[-1].created_at, first[-1].worker_id, first[-1].resource_id)
        assert await ask("default", limit=9, before=place) == [rows[1], rows[0]]
        assert await ask("default", limit=9, run_id=RunId("run-1")) == [rows[1], rows[0]]
        assert await ask("default", limit=9, run_id=RunId("run-1"), type="file") == [rows[0]]
        assert await ask("default", limit=9, worker_id="w-2") == [rows[4], rows[1]]
        assert await ask("default", limit=9, type="tensor", state="ready") == [rows[4], rows[1]]
        assert await ask("default", limit=9, state="evicted") == [rows[2]]
        assert await ask("b", limit=9) == [rows[3]]


async def test_a_resource_is_found_by_its_id_and_its_worker(backend: Backend) -> None:
    here, there = resource(1), resource(1, "w-2")
    async with backend.desk() as desk:
        await desk.write(resources=[there, here])
        find = desk.store.find_resource
        assert await find("default", "res-1") == [here, there]
        assert await find("default", "res-1", "w-2") == [there]
        assert await find("default", "res-1", "w-3") == []
        assert await find("b", "res-1") == []


async def test_the_copies_that_resources_have_are_listed(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await desk.write(resources=[resource(1, blob="artifacts/x"), resource(2)])
        assert await store.blobs_of_resources() == {"artifacts/x"}
        await desk.write(resources=[resource(1, state="evicted")])
        assert await store.blobs_of_resources() == set()


async def test_what_has_ended_long_ago_goes_and_the_rest_stays(backend: Backend) -> None:
    old = NOW_MS - 8 * DAY_MS
    kept = [
        resource(1, created_at=old),
        resource(2, created_at=NOW_MS - DAY_MS + 1, state="evicted"),
        resource(3, created_at=old, state="evicted", blob="artifacts/x"),
        resource(4, created_at=old, expires_at=NOW_MS, state="released"),
    ]
    gone = [
        resource(5, created_at=old, state="evicted"),
        resource(6, created_at=old, state="released", expires_at=old + 1),
        resource(7, created_at=NOW_MS - 31 * DAY_MS, state="evicted", blob="artifacts/y"),
    ]
    known = intent("w-1", state="installed", updated_at=old)
    wanted = intent("gone", "2.0.0", updated_at=old)
    over = intent("gone", state="installed", updated_at=old)
    async with backend.desk() as desk:
        store = desk.store
        month = NOW_MS - 31 * DAY_MS
        await desk.write(
            resources=[*kept, *gone],
            intents=[known, wanted, over],
            workers=[worker("w-1")],
            rollouts=[
                rollout(1, "succeeded", month),
                rollout(2, "running", month),
                rollout(3, "succeeded"),
            ],
        )
        await store.sweep(desk.claim, Retention(), NOW_MS)
        assert {row.resource_id for row in await store.resources()} == {
            row.resource_id for row in kept
        }
        assert await store.intents() == [wanted, known]
        assert await store.rollouts() == [rollout(2, "running", month), rollout(3, "succeeded")]


async def test_everything_held_is_there_after_a_restart(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(resources=[resource(1)], affinities=[AFFINITY], intents=[intent("w-1")])
        await desk.store.put_package(desk.claim, package("1.0.0"))
    async with backend.opened() as store:
        assert await store.resources() == [resource(1)]
        assert await store.affinities() == [AFFINITY]
        assert await store.intents() == [intent("w-1")]
        assert await store.packages() == [package("1.0.0")]


async def test_one_whose_claim_is_lost_can_write_none_of_it(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(resources=[resource(1)])
        stale = replace(desk.claim, epoch=desk.claim.epoch - 1)
        store = desk.store
        for write in (
            store.put_package(stale, package("1.0.0")),
            store.yank_package(stale, "default", "acme.texts", "1.0.0", NOW_MS),
        ):
            with pytest.raises(StoreError) as caught:
                await write
            assert caught.value.code is errors.STORE_FENCED
        assert await store.packages() == []


async def test_what_cannot_be_stored_is_refused_with_its_place(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(StoreError) as caught:
            await desk.write(resources=[resource(1), resource(2, scope="a\0b")])
        assert caught.value.pointer == "/resources/1/scope"
        with pytest.raises(StoreError):
            await desk.write(intents_gone=[("default", "w\0", "a", "1")])
