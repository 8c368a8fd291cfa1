"""`POST /workflows/validate` and `POST /runs` agree: what one refuses the other refuses, with the same problems.

Both are asked as the API asks them, without sockets: with the packages, the secrets, the saved workflows and the pinned
results of a scheduler that serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.core import errors
from astraflow.core.workflow import InvalidDocument
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import DefinitionProblem
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.assembly import assemble
from astraflow.scheduler.runs import Submission
from astraflow.scheduler.service import Scheduler
from astraflow.store import open_store
from tests.api.rig import make_tokens
from tests.conformance.drawn_definitions import CALLED, SECRET, draw_definition
from tests.unit.core.workflow.drafts import uid

TENANT = "default"
DEFINITIONS = 10_000
PARTS = 4
MASTER_KEY = "c2VjcmV0cyBvZiB0aGUgdGVzdHMgb2YgdHJpZ2dlcnM="
HAD = {
    Feature.MAP,
    Feature.SUBGRAPH,
    Feature.CALL,
    Feature.COMPENSATION,
    Feature.MIDDLEWARE,
    Feature.WAIT,
    Feature.APPROVAL,
    Feature.SIGNAL,
    Feature.SIGNAL_ADDRESS,
    Feature.CONDITION,
    Feature.EXPRESSION,
}
"""What some of the definitions that are accepted must have, or the test has gone soft."""

REFUSED = {
    errors.WORKFLOW_CALL.code,
    errors.WORKFLOW_EXPRESSION.code,
    errors.WORKFLOW_INVALID.code,
    errors.WORKFLOW_PARAMETER.code,
    errors.WORKFLOW_UNKNOWN_TYPE.code,
    errors.SECRET_NOT_FOUND.code,
}
"""What some of those that are refused must be refused with."""


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Scheduler]:
    scheduler = assemble(
        SchedulerSettings(data_dir=folder, secrets_key=Secret(MASTER_KEY)),
        store=open_store("memory://"),
        clock=SystemClock(),
        secret=Secret("a secret for tests only"),
        tokens=make_tokens(),
        metrics=Metrics(),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scheduler.run())
        await scheduler.ready.wait()
        try:
            await _furnish(scheduler)
            yield scheduler
        finally:
            running.cancel()


async def _furnish(scheduler: Scheduler) -> None:
    await scheduler.secrets.put(TENANT, SECRET, "value", (), "ann")
    echo: dict[str, Any] = {"id": uid(1), "type": "core.echo", "parameters": {"value": 1}}
    called: dict[str, dict[str, Any]] = {
        "good": {"nodes": [echo]},
        "with inputs": {
            "nodes": [{**echo, "parameters": {"value": "=inputs.a"}}],
            "inputs": {"a": {"schema": {"type": "integer"}}},
            "outputs": {"value": {"source": {"node": uid(1), "port": "value"}}},
        },
        "broken": {"nodes": [{**echo, "type": "x.y"}]},
        "own": {"nodes": [echo, {**echo, "id": uid(2)}]},
    }
    for name, definition in called.items():
        document = msgspec.json.encode({"id": CALLED.get(name, uid(0)), **definition})
        await scheduler.workflows.save(TENANT, document, by="ann")
    for place in (1, 2):
        pinned = b'{"value": "pinned"}'
        await scheduler.pins.put(TENANT, uid(0), uid(place), by="ann", result=pinned, from_run=None)


async def _validated(scheduler: Scheduler, raw: bytes) -> list[DefinitionProblem]:
    """What `validate` says, as the route puts it together."""
    try:
        return await scheduler.workflows.validate(TENANT, raw)
    except InvalidDocument as refused:  # it is no definition
        return list(refused.problems)


async def _submitted(scheduler: Scheduler, submission: Submission) -> list[DefinitionProblem]:
    """What a submission is refused with; nothing if it is accepted."""
    try:
        await scheduler.runs.prepare(submission)
    except InvalidDocument as refused:
        return list(refused.problems)
    return []


@pytest.mark.parametrize("part", range(PARTS))
async def test_both_routes_agree_on_thousands_of_definitions(tmp_path: Path, part: int) -> None:
    accepted, pinned = 0, 0
    had: set[Feature] = set()
    codes: set[str] = set()
    async with serving(tmp_path) as scheduler:
        for seed in range(part, DEFINITIONS, PARTS):
            raw = draw_definition(seed)
            submission = Submission(tenant=TENANT, definition=raw, use_pinned=seed % 3 == 0)
            problems = await _validated(scheduler, raw)
            assert await _submitted(scheduler, submission) == problems, f"{seed}: {raw.decode()}"
            codes |= {one.code for one in problems}
            if not problems:
                made = await scheduler.runs.prepare(submission)
                accepted += 1
                pinned += bool(made.pinned)
                had |= made.planned.plan.features
    assert DEFINITIONS // PARTS * 0.15 < accepted < DEFINITIONS // PARTS * 0.85, accepted
    assert had >= HAD, HAD - had
    assert pinned > 0
    assert codes >= REFUSED, REFUSED - codes
