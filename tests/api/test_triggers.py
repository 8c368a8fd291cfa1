"""Triggers over HTTP, with the scheduler in the process of the test: suspended tenants, overlap."""

from __future__ import annotations

from typing import Any

from astraflow.core.security.policy import Role
from astraflow.core.triggers.loops import MAX_DEPTH
from tests.api.rig import OTHER, Rig, definition, problem_of, serving
from tests.api.scripted import token_of
from tests.processes.waiting import is_seen, until_seen

TICK = {"type": "cron", "id": "tick", "expression": "* * * * * *"}


async def history(rig: Rig, flow: str, headers: Any = None) -> list[dict[str, Any]]:
    path = f"/api/v1/workflows/{flow}/triggers/tick/history?limit=200"
    found: list[dict[str, Any]] = (await rig.get(path, headers=headers)).json()["items"]
    return found


async def test_a_suspended_tenant_fires_nothing_and_goes_on_when_it_is_resumed() -> None:
    headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
    triggers = [{**TICK, "catchUp": "all"}, {"type": "webhook", "id": "hook"}]
    async with serving() as rig:
        await rig.post("/api/v1/tenants", json={"tenant": OTHER})
        saved = await rig.post(
            "/api/v1/workflows", json=definition(triggers=triggers), headers=headers
        )
        assert saved.status_code == 201, saved.text
        flow = saved.json()["id"]
        shown = await rig.get(f"/api/v1/workflows/{flow}/triggers/hook", headers=headers)
        await rig.post(f"/api/v1/tenants/{OTHER}/suspend")
        table = rig.scheduler.triggers.table
        key = (OTHER, flow, "tick")
        since = table.get(key).since
        assert not await is_seen(lambda: table.get(key).since != since, 2.5), "no time is taken"
        problem_of(await rig.post(shown.json()["hookPath"]), 403, "E.TENANT.SUSPENDED")
        await rig.post(f"/api/v1/tenants/{OTHER}/resume")
        await until_seen(lambda: table.get(key).number >= 3)
        slots = [one["scheduledAt"] for one in await history(rig, flow, headers)]
        assert len(slots) == len(set(slots)) >= 3


async def test_a_time_is_skipped_while_the_run_before_it_is_active() -> None:
    """There is no worker: the first run stays active."""
    for overlap, started in (("skip", 1), ("queue", 1)):
        async with serving() as rig:
            saved = await rig.post(
                "/api/v1/workflows", json=definition(triggers=[{**TICK, "overlap": overlap}])
            )
            flow = saved.json()["id"]
            table = rig.scheduler.triggers.table
            await until_seen(lambda: table.get(("default", flow, "tick")).number >= 4)  # noqa: B023
            runs = (await rig.get("/api/v1/runs?trigger=tick")).json()["items"]
            assert [one["trigger"] for one in runs] == ["tick"]
            assert runs[0]["by"] == f"trigger:{flow}/tick"
            entries = await history(rig, flow)
            outcomes = [one["outcome"] for one in reversed(entries)]
            assert outcomes.count("started") == started, outcomes
            assert outcomes.count("pending") == (1 if overlap == "queue" else 0), outcomes
            assert "overlap" in entries[0]["reason"]


async def test_workflows_that_start_each_other_are_warned_of_and_stopped() -> None:
    """The nodes are the scheduler's own: no worker is needed."""
    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2)]

    def flow(own: str, other: str) -> dict[str, Any]:
        wait = {"id": own, "type": "core.wait", "wait": {"seconds": 0.001}}
        after = {"type": "workflow", "id": "after", "workflowId": other}
        return {"id": own, "nodes": [wait], "triggers": [after]}

    one, two = flow(*ids), flow(*reversed(ids))
    async with serving() as rig:
        assert (await rig.post("/api/v1/workflows/validate", json=one)).json()["warnings"] == []
        assert (await rig.post("/api/v1/workflows", json=one)).status_code == 201
        (warning,) = (await rig.post("/api/v1/workflows/validate", json=two)).json()["warnings"]
        assert (warning["pointer"], warning["code"]) == ("/triggers/0/workflowId", "E.TRIGGER.LOOP")
        assert f"{ids[1]} → {ids[0]} → {ids[1]}" in warning["message"]
        assert (await rig.post("/api/v1/workflows", json=two)).status_code == 201
        started = await rig.post("/api/v1/runs", json={"workflowId": ids[0]})
        assert started.status_code == 202, started.text
        path = "/api/v1/workflows/{}/triggers/after/history?limit=200"

        def is_refused(page: Any) -> bool:
            return any(entry["outcome"] == "refused" for entry in page["items"])

        # The run that somebody started is at depth 0: the end of the one at depth 20 is the first that is refused.
        page = await rig.until(path.format(ids[1]), is_refused)
        refused = [entry for entry in page["items"] if entry["outcome"] == "refused"]
        assert [entry["code"] for entry in refused] == ["E.TRIGGER.LOOP"]
        runs = (await rig.get("/api/v1/runs?limit=200")).json()["items"]
        assert len(runs) == MAX_DEPTH + 1
