"""What readers of a tenant's stream are told of what others change."""

from __future__ import annotations

from typing import Any

from tests.api.rig import NODE_A, NODE_B, WORKFLOW, Rig, definition, serving
from tests.api.test_mixed_stream import Mixed, mixed
from tests.api.test_packages import PATH as PACKAGES
from tests.api.test_packages import publish
from tests.scheduler.packing import pack

PATH = f"/api/v1/workflows/{WORKFLOW}"


async def told(stream: Mixed, *types: str) -> list[dict[str, Any]]:
    """The events of these types, once there is one of each."""

    def of_types(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for one in items if one["type"] in types]

    items = await stream.until(lambda items: {one["type"] for one in of_types(items)} >= set(types))
    return of_types(items)


async def test_changes_of_workflows_are_told() -> None:
    async with serving() as rig, mixed(rig) as stream:
        assert (await rig.post("/api/v1/workflows", json=definition())).status_code == 201
        draft = definition(metadata={"name": "new name"})
        assert (await rig.client.put(f"{PATH}/draft", json=draft)).status_code == 200
        assert (await rig.post(f"{PATH}/publish")).status_code == 201
        assert (await rig.client.put(f"{PATH}/draft", json=draft)).status_code == 200
        assert (await rig.client.delete(f"{PATH}/draft")).status_code == 204
        assert (await rig.client.delete(PATH)).status_code == 204
        items = await told(stream, "workflow.deleted")
        changes = [one for one in stream.items if one["type"].startswith("workflow.")]
        who = {"workflowId": WORKFLOW, "by": "admin of default"}
        assert [(one["type"], one["data"]) for one in changes] == [
            ("workflow.saved", {**who, "name": "two", "version": 1}),
            ("workflow.draft_saved", {**who, "name": "new name", "revision": 1}),
            ("workflow.published", {**who, "name": "new name", "version": 2}),
            ("workflow.draft_saved", {**who, "name": "new name", "revision": 1}),
            ("workflow.draft_discarded", who),
            ("workflow.deleted", who),
        ]
        assert items[0]["id"] == (await rig.scheduler.events.heads("default")).home
        answer = await rig.get("/api/v1/runs")
        assert answer.status_code == 200


async def test_a_save_that_is_refused_is_not_told() -> None:
    async with serving() as rig, mixed(rig) as stream:
        wrong = definition(nodes=[{"id": NODE_A, "type": "nobody.knows"}])
        assert (await rig.post("/api/v1/workflows", json=wrong)).status_code == 422
        assert (await rig.post("/api/v1/workflows", json=definition())).status_code == 201
        assert (await rig.post("/api/v1/workflows", json=definition())).status_code == 409
        await rig.submit()
        await told(stream, "run.status")
        kinds = [one["type"] for one in stream.items if one["type"].startswith("workflow.")]
        assert kinds == ["workflow.saved"]


async def test_changes_of_packages_and_rollouts_are_told() -> None:
    async with serving() as rig, mixed(rig) as stream:
        assert (await publish(rig, pack())).status_code == 201
        body = {"version": "1.0.0", "waves": [100], "soakSeconds": 0}
        answer = await rig.post(f"{PACKAGES}/demo/rollout", json=body)
        assert answer.status_code == 202, answer.text
        items = await told(stream, "package.published", "rollout.running")
        change = {"name": "demo", "version": "1.0.0", "by": "admin of default"}
        assert items[0]["data"] == change
        begun = next(one["data"] for one in items if one["type"] == "rollout.running")
        assert (begun["name"], begun["version"], begun["wave"]) == ("demo", "1.0.0", 0)
        answer = await rig.client.put(f"{PACKAGES}/demo/active", json={"version": "1.0.0"})
        assert answer.status_code == 200, answer.text
        assert (await told(stream, "package.activated"))[0]["data"] == change
        answer = await rig.post(f"{PACKAGES}/demo/1.0.0/yank", json={"reason": "wrong"})
        assert answer.status_code == 200, answer.text
        assert (await told(stream, "package.yanked"))[0]["data"] == change


async def test_the_load_of_workers_is_told_to_those_who_ask() -> None:
    async with serving() as rig, rig.worker() as worker:
        async with mixed(rig, query="&workerLoad=true") as stream:
            (first,) = await told(stream, "worker.load")
            assert [(one["workerId"], one["inflight"]) for one in first["data"]["workers"]] == [
                ("w1", 0)
            ]
            assert "id" not in first
            await rig.submit()
            tasks = await worker.tasks(NODE_A, NODE_B)
            await stream.until(lambda items: _inflight(items) == 2)
            for task in tasks:
                task.succeed()
            await stream.until(lambda items: _inflight(items) == 0)
        async with mixed(rig) as stream:
            await rig.submit()
            await told(stream, "run.status")
            assert not [one for one in stream.items if one["type"] == "worker.load"]


def _inflight(items: list[dict[str, Any]]) -> int:
    loads = [one["data"]["workers"] for one in items if one["type"] == "worker.load"]
    return int(loads[-1][0]["inflight"])


async def test_the_stream_of_the_tenant_alone_has_them_too() -> None:
    async with serving() as rig:
        before = (await rig.scheduler.events.heads("default")).home
        await rig.post("/api/v1/workflows", json=definition())
        assert await _next_type(rig, before) == "workflow.saved"


async def _next_type(rig: Rig, after: int) -> str:
    async with rig.client.stream("GET", f"/api/v1/events?lastEventId={after}") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                return line[7:]
    raise AssertionError("the stream has ended")
