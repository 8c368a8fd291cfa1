"""The draft of a workflow: one, apart from the versions, and never over somebody else's."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import Conflict, StoreError
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import draft, workflow


async def test_a_draft_has_one_row_and_makes_no_version(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        assert await store.find_draft("default", "a") is None
        await store.put_draft(desk.claim, draft("a", 1))
        await store.put_draft(desk.claim, draft("a", 2, definition=b"\x00 new", base_version=7))
        assert await store.find_draft("default", "a") == draft(
            "a", 2, definition=b"\x00 new", base_version=7
        )
        assert await store.find_draft("other", "a") is None
        assert await store.find_workflow("default", "a") is None
        assert await store.list_workflows("default", limit=10) == []
    async with backend.desk() as desk:
        assert (await desk.store.find_draft("default", "a")) is not None


@pytest.mark.parametrize("revision", [1, 2, 4])
async def test_a_draft_that_does_not_follow_the_stored_one_is_a_conflict(
    backend: Backend, revision: int
) -> None:
    async with backend.desk() as desk:
        for stored in (1, 2):
            await desk.store.put_draft(desk.claim, draft("a", stored))
        with pytest.raises(Conflict) as caught:
            await desk.store.put_draft(desk.claim, draft("a", revision, name="late"))
        assert caught.value.code is errors.WORKFLOW_CONFLICT
        assert await desk.store.find_draft("default", "a") == draft("a", 2)


async def test_a_first_draft_with_a_later_revision_is_a_conflict(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(Conflict):
            await desk.store.put_draft(desk.claim, draft("a", 2))
        assert await desk.store.list_drafts("default", limit=9) == []


async def test_a_version_ends_the_draft_that_it_was_made_of_or_nothing_is_written(
    backend: Backend,
) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await store.put_draft(desk.claim, draft("a", 1))
        await store.put_draft(desk.claim, draft("a", 2))
        with pytest.raises(Conflict):
            await store.put_workflow(desk.claim, workflow("a", 1), draft_revision=1)
        assert await store.find_workflow("default", "a") is None
        await store.put_workflow(desk.claim, workflow("a", 1, note="why"), draft_revision=2)
        assert await store.find_draft("default", "a") is None
        found = await store.find_workflow("default", "a")
        assert found == workflow("a", 1, note="why")
        with pytest.raises(Conflict):
            await store.put_workflow(desk.claim, workflow("a", 2), draft_revision=2)
        assert await store.find_workflow("default", "a") == found


async def test_a_draft_is_discarded_by_its_revision(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await store.put_draft(desk.claim, draft("a", 1))
        for revision in (0, 2):
            with pytest.raises(Conflict):
                await store.delete_draft(desk.claim, "default", "a", revision)
        with pytest.raises(Conflict):
            await store.delete_draft(desk.claim, "other", "a", 1)
        await store.delete_draft(desk.claim, "default", "a", 1)
        assert await store.find_draft("default", "a") is None
        await store.put_draft(desk.claim, draft("a", 1))


async def test_a_workflow_goes_with_its_draft_and_a_draft_alone_too(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await store.put_workflow(desk.claim, workflow("a", 1))
        for name in ("a", "b"):
            await store.put_draft(desk.claim, draft(name, 1))
        assert not await store.delete_workflow(desk.claim, "other", "b")
        assert await store.delete_workflow(desk.claim, "default", "a")
        assert await store.delete_workflow(desk.claim, "default", "b")
        assert await store.list_drafts("default", limit=10) == []
        assert not await store.delete_workflow(desk.claim, "default", "b")


async def test_drafts_are_listed_by_their_last_save_page_by_page(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        for name in "abc":
            await store.put_draft(desk.claim, draft(name, 1))
        await store.put_draft(desk.claim, draft("b", 2))
        await store.put_draft(desk.claim, draft("z", 1, tenant="other"))
        first = await store.list_drafts("default", limit=2)
        rest = await store.list_drafts(
            "default", limit=2, before=(first[-1].updated_at, first[-1].workflow_id)
        )
        assert [row.workflow_id for row in first + rest] == ["b", "c", "a"]


async def test_the_history_of_a_workflow_has_who_when_and_why(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        for version in range(1, 6):
            row = workflow("a", version, note=f"note {version}", updated_by=f"u{version}")
            await store.put_workflow(desk.claim, row, keep=4)
        first = await store.list_versions("default", "a", limit=3)
        rest = await store.list_versions("default", "a", limit=3, before=first[-1].version)
        assert [
            (row.version, row.note, row.updated_by, row.updated_at) for row in first + rest
        ] == [(version, f"note {version}", f"u{version}", version) for version in (5, 4, 3, 2)]
        assert await store.list_versions("other", "a", limit=3) == []


async def test_a_draft_that_cannot_be_stored_is_refused(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(StoreError):
            await desk.store.put_draft(desk.claim, draft("a", 1, updated_by="\0"))
        with pytest.raises(StoreError):
            await desk.store.find_draft("default", "\0")
