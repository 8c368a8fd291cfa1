from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.errors import Conflict, StoreError
from astraflow.store.rows import TriggerFireRow, TriggerRow
from astraflow.store.trigger_changes import TriggerChanges
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import workflow

ROW = TriggerRow("default", "a", "cron-1", b'{"n":1}', 5)


def fire(number: int, outcome: Any = "started", **fields: Any) -> TriggerFireRow:
    given = {"tenant": "default", "workflow_id": "a", "name": "cron-1", "slot": f"s{number}"}
    return TriggerFireRow(
        **{**given, **fields}, number=number, outcome=outcome, body=b"{}", at=number
    )


async def test_triggers_are_saved_with_their_workflow_or_not_at_all(backend: Backend) -> None:
    changes = TriggerChanges((ROW,))
    async with backend.desk() as desk:
        store = desk.store
        await store.put_workflow(desk.claim, workflow("a", 1), triggers=changes)
        assert await store.triggers() == [ROW]
        other = TriggerChanges(
            (TriggerRow("default", "a", "late", b"{}", 6),), (("default", "a", "cron-1"),)
        )
        with pytest.raises(Conflict):
            await store.put_workflow(desk.claim, workflow("a", 1), triggers=other)
        assert await store.triggers() == [ROW]
        bad = TriggerChanges((TriggerRow("default", "a", "\0", b"{}", 6),))
        with pytest.raises(StoreError):
            await store.put_workflow(desk.claim, workflow("a", 2), triggers=bad)
        await store.put_workflow(desk.claim, workflow("a", 2), triggers=other)
        assert await store.triggers() == list(other.triggers)


async def test_a_trigger_is_replaced_and_goes_with_its_workflow(backend: Backend) -> None:
    newer = TriggerRow("default", "a", "cron-1", b'{"n":2}', 9)
    of_other = TriggerRow("other", "a", "cron-1", b"{}", 1)
    async with backend.desk() as desk:
        store = desk.store
        for tenant in ("default", "other"):
            await store.put_workflow(desk.claim, workflow("a", 1, tenant=tenant))
        await store.change_triggers(desk.claim, TriggerChanges((ROW, of_other), (), (fire(1),)))
        await store.change_triggers(desk.claim, TriggerChanges((newer,)))
        assert await store.triggers() == [newer, of_other]
        assert await store.trigger_fires("default", "a", "cron-1", limit=9) == [fire(1)]
        await store.delete_workflow(desk.claim, "default", "a")
        assert await store.triggers() == [of_other]
        assert await store.trigger_fires("default", "a", "cron-1", limit=9) == []


async def test_the_history_is_paged_bounded_and_found_by_slot(backend: Backend) -> None:
    async with backend.desk() as desk:
        store, claim = desk.store, desk.claim
        await store.put_workflow(claim, workflow("a", 1), triggers=TriggerChanges((ROW,)))
        await store.change_triggers(claim, TriggerChanges(fires=(fire(1, "pending"),), keep=3))
        for number in range(2, 7):
            await store.change_triggers(claim, TriggerChanges(fires=(fire(number),), keep=3))
        await store.change_triggers(
            claim, TriggerChanges(fires=(fire(7, "refused", slot="s6"),), keep=3)
        )
        found = await store.trigger_fires("default", "a", "cron-1", limit=9)
        assert [one.number for one in found] == [7, 6, 5, 1], "what is owed is not forgotten"
        page = await store.trigger_fires("default", "a", "cron-1", limit=2, before=7)
        assert [one.number for one in page] == [6, 5]
        newest = await store.find_trigger_fire("default", "a", "cron-1", "s6")
        assert newest is not None and newest.number == 7
        assert await store.find_trigger_fire("default", "a", "cron-1", "s3") is None
        assert await store.find_trigger_fire("other", "a", "cron-1", "s6") is None
        gone = TriggerChanges((ROW,), (("default", "a", "cron-1"),))
        await store.change_triggers(claim, gone)
        assert await store.trigger_fires("default", "a", "cron-1", limit=9) == []
