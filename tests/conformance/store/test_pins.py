"""Pinned results: one of each node, gone with the workflow."""

from __future__ import annotations

import pytest

from astraflow.core.errors import StoreError
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import draft, pin, workflow


async def test_a_node_has_one_pinned_result(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        assert await store.pins.of_workflow("default", "a") == []
        await store.pins.put(desk.claim, pin("n2"))
        await store.pins.put(desk.claim, pin("n1", from_run="run1"))
        newer = pin("n2", result=b"\x00 any bytes", updated_at=2**53, updated_by="")
        await store.pins.put(desk.claim, newer)
        await store.pins.put(desk.claim, pin("n1", "other"))
        await store.pins.put(desk.claim, pin("n1", tenant="acme"))
        assert await store.pins.of_workflow("default", "a") == [pin("n1", from_run="run1"), newer]
    async with backend.desk() as desk:
        assert len(await desk.store.pins.of_workflow("default", "a")) == 2


async def test_pinned_results_are_removed_one_by_one_or_all(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        for node in ("n1", "n2", "n3"):
            await store.pins.put(desk.claim, pin(node))
        await store.pins.put(desk.claim, pin("n1", "b"))
        assert await store.pins.delete(desk.claim, "default", "a", "n1") == 1
        assert await store.pins.delete(desk.claim, "default", "a", "n1") == 0
        assert await store.pins.delete(desk.claim, "acme", "a") == 0
        assert await store.pins.delete(desk.claim, "default", "a") == 2
        assert len(await store.pins.of_workflow("default", "b")) == 1


async def test_they_go_with_their_workflow(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await store.put_workflow(desk.claim, workflow("a", 1))
        await store.put_draft(desk.claim, draft("b", 1))
        for name in ("a", "b"):
            await store.pins.put(desk.claim, pin("n1", name))
            assert await store.delete_workflow(desk.claim, "default", name)
            assert await store.pins.of_workflow("default", name) == []


async def test_nobody_writes_one_without_the_newest_claim(backend: Backend) -> None:
    async with backend.desk() as desk:
        older = desk.claim
        await desk.store.release(older)
        newer = await desk.store.claim("two")
        assert newer is not None
        with pytest.raises(StoreError):
            await desk.store.pins.put(older, pin("n1"))
        with pytest.raises(StoreError):
            await desk.store.pins.delete(older, "default", "a")
        assert await desk.store.pins.of_workflow("default", "a") == []
