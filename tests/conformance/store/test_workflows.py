from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import Conflict
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import workflow


async def test_every_version_of_a_workflow_is_kept(backend: Backend) -> None:
    first, second = workflow("a", 1), workflow("a", 2, definition=b"\x00 new")
    async with backend.desk() as desk:
        store = desk.store
        await store.put_workflow(desk.claim, first)
        await store.put_workflow(desk.claim, second)
        assert await store.find_workflow("default", "a") == second
        assert await store.find_workflow("default", "a", 1) == first
        assert await store.find_workflow("default", "a", 2) == second
        assert await store.find_workflow("default", "a", 3) is None
        assert await store.find_workflow("other", "a") is None


@pytest.mark.parametrize("version", [1, 2, 4])
async def test_a_save_that_does_not_follow_the_stored_version_is_a_conflict(
    backend: Backend, version: int
) -> None:
    async with backend.desk() as desk:
        for stored in (1, 2):
            await desk.store.put_workflow(desk.claim, workflow("a", stored))
        with pytest.raises(Conflict) as caught:
            await desk.store.put_workflow(desk.claim, workflow("a", version, name="late"))
        assert caught.value.code is errors.WORKFLOW_CONFLICT
        assert await desk.store.find_workflow("default", "a") == workflow("a", 2)


async def test_the_newest_versions_of_a_workflow_are_kept(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await store.put_workflow(desk.claim, workflow("b", 1), keep=2)
        for version in range(1, 6):
            await store.put_workflow(desk.claim, workflow("a", version), keep=3)
        found = [await store.find_workflow("default", "a", version) for version in range(1, 6)]
        assert found == [None, None, *(workflow("a", version) for version in (3, 4, 5))]
        assert await store.find_workflow("default", "a") == workflow("a", 5)
        assert await store.find_workflow("default", "b") == workflow("b", 1)
        await store.put_workflow(desk.claim, workflow("a", 6), keep=1)
        found = [await store.find_workflow("default", "a", version) for version in range(1, 7)]
        assert found == [*[None] * 5, workflow("a", 6)]
        await store.put_workflow(desk.claim, workflow("a", 7))
        assert await store.find_workflow("default", "a", 6) == workflow("a", 6)


async def test_a_first_save_with_a_later_version_is_a_conflict(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(Conflict):
            await desk.store.put_workflow(desk.claim, workflow("a", 2))
        assert await desk.store.list_workflows("default", limit=10) == []


async def test_a_removed_workflow_is_gone_with_its_versions_and_may_be_made_again(
    backend: Backend,
) -> None:
    async with backend.desk() as desk:
        store = desk.store
        for version in (1, 2):
            await store.put_workflow(desk.claim, workflow("a", version))
        assert await store.delete_workflow(desk.claim, "default", "a")
        assert not await store.delete_workflow(desk.claim, "default", "a")
        assert await store.find_workflow("default", "a") is None
        assert await store.find_workflow("default", "a", 1) is None
        await store.put_workflow(desk.claim, workflow("a", 1, name="new"))
        assert await store.find_workflow("default", "a", 2) is None


async def test_a_workflow_of_another_tenant_is_not_removed(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.store.put_workflow(desk.claim, workflow("a", 1))
        assert not await desk.store.delete_workflow(desk.claim, "other", "a")
        await desk.store.put_workflow(desk.claim, workflow("a", 1, tenant="other"))
        assert await desk.store.list_workflows("other", limit=10) == [
            workflow("a", 1, tenant="other")
        ]


async def test_workflows_are_listed_by_their_last_save_page_by_page(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        for name in "abcde":
            await store.put_workflow(desk.claim, workflow(name, 1))
        await store.put_workflow(desk.claim, workflow("b", 2, updated_at=7))
        seen = []
        before = None
        while found := await store.list_workflows("default", limit=2, before=before):
            assert len(found) <= 2
            seen += [(row.workflow_id, row.version) for row in found]
            before = (found[-1].updated_at, found[-1].workflow_id)
        assert seen == [("b", 2), ("e", 1), ("d", 1), ("c", 1), ("a", 1)]
