"""What no store can hold is refused before anything is written, in the same words everywhere."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.ids import RunId
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import (
    PLAN,
    audit,
    change,
    event,
    finished,
    run,
    segment,
    worker,
    workflow,
)

BEYOND = 2**63

WRONG: dict[str, tuple[dict[str, list[object]], str]] = {
    "U+0000": ({"runs": [run(1), run(2, name="a\0b")]}, "/runs/1/name"),
    "lone surrogate": ({"runs": [run(1, name="a\ud800b")]}, "/runs/0/name"),
    "key": ({"runs": [run(1, idempotency_key="\0")]}, "/runs/0/idempotency_key"),
    "2^63": ({"runs": [run(1, created_at=BEYOND)]}, "/runs/0/created_at"),
    "-2^63-1": ({"runs": [run(1, created_at=-BEYOND - 1)]}, "/runs/0/created_at"),
    "segment": ({"segments": [segment(run(1), 1, BEYOND)]}, "/segments/0/last"),
    "change": (
        {"run_changes": [change(run(1), started_at=BEYOND)]},
        "/run_changes/0/started_at",
    ),
    "worker": ({"workers": [worker("\udfff")]}, "/workers/0/worker_id"),
    "event": ({"events": [event(1, "a\0")]}, "/events/0/tenant"),
    "audit": ({"audits": [audit(1, at=BEYOND)]}, "/audits/0/at"),
    "over without an end": ({"runs": [run(1, status="failed")]}, "/runs/0/finished_at"),
    "an end but not over": (
        {"run_changes": [change(finished(1, 9), status="running")]},
        "/run_changes/0/finished_at",
    ),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_row_that_cannot_be_stored_is_refused_by_name(backend: Backend, case: str) -> None:
    rows, pointer = WRONG[case]
    async with backend.desk() as desk:
        with pytest.raises(StoreError) as caught:
            await desk.write(plans=[PLAN], **rows)
        assert caught.value.code is errors.STORE_REFUSED
        assert caught.value.pointer == pointer
        assert await desk.store.find_plan(PLAN.plan_id) is None


async def test_a_workflow_that_cannot_be_stored_is_refused(backend: Backend) -> None:
    async with backend.desk() as desk:
        with pytest.raises(StoreError) as caught:
            await desk.store.put_workflow(desk.claim, workflow("a", 1, updated_by="\0"))
        assert caught.value.code is errors.STORE_REFUSED
        with pytest.raises(StoreError):
            await desk.store.delete_workflow(desk.claim, "default", "\0")


async def test_the_limits_themselves_are_stored(backend: Backend) -> None:
    row = run(1, name="\x01\x7f\U0010ffff\ue000", created_at=BEYOND - 1, started_at=-BEYOND)
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[row])
        assert await desk.find(row) == row


@pytest.mark.parametrize("text", ["\0", "\ud800"])
async def test_what_cannot_be_stored_cannot_be_asked_for(backend: Backend, text: str) -> None:
    async with backend.opened() as store:
        for question in (
            store.find_run("default", RunId(text)),
            store.find_run(text, RunId("run")),
            store.list_runs("default", limit=1, before=(1, text)),
            store.list_runs("default", limit=1, workflow_id=text),
            store.find_plan(text),
            store.read_segments(RunId(text)),
            store.read_segments(RunId("run"), after=BEYOND),
            store.submissions(BEYOND),
            store.find_workflow("default", text),
            store.list_workflows(text, limit=1),
            store.tenant_events(text, 0, 1),
            store.audit(text, limit=1),
            store.claim(text),
        ):
            with pytest.raises(StoreError) as caught:
                await question
            assert caught.value.code is errors.STORE_REFUSED
