"""Pinned results, as a client sees them: set, listed, removed, and used by runs that ask for them alone."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from astraflow.core.contract.events import NodeState
from astraflow.core.contract.pins import MAX_PINNED_BYTES, MAX_PINS
from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, NODE_B, OTHER, WORKFLOW, Rig, definition, problem_of, serving
from tests.api.scripted import token_of

RUNS = "/api/v1/runs"
FLOWS = "/api/v1/workflows"
PINS = f"{FLOWS}/{WORKFLOW}/pins"
MIDDLE = "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"


def chain(**more: Any) -> dict[str, Any]:
    """A feeds B."""
    nodes = [
        {"id": NODE_A, "type": "core.echo", "label": "A", "parameters": {"value": 1}},
        {"id": NODE_B, "type": "core.echo", "label": "B"},
    ]
    port = "value"
    edge = {"source": {"node": NODE_A, "port": port}, "target": {"node": NODE_B, "port": port}}
    return definition(nodes=nodes, edges=[edge], **more)


async def save(rig: Rig, document: dict[str, Any]) -> None:
    saved = await rig.post(FLOWS, json=document)
    assert saved.status_code == 201, saved.text


async def put(rig: Rig, node_id: str = NODE_A, **body: Any) -> Any:
    return await rig.client.put(f"{PINS}/{node_id}", json=body)


async def test_a_run_that_asks_for_it_has_the_pinned_result() -> None:
    async with serving() as rig, rig.worker() as worker:
        await save(rig, chain())
        pinned = await put(rig, result={"value": "pinned"})
        assert pinned.status_code == 200, pinned.text
        body = pinned.json()
        assert (body["nodeId"], body["result"], body["fromRun"]) == (
            NODE_A,
            {"value": "pinned"},
            None,
        )
        assert body["pinnedBy"] == "admin of default"
        asked = {"workflowId": WORKFLOW, "usePinned": True}
        run_id = (await rig.post(RUNS, json=asked)).json()["runId"]
        (task,) = await worker.tasks(NODE_B)
        assert task.payload["parameters"] == {"value": "pinned"}
        task.succeed({"value": "b"})
        run = await rig.status(run_id, "succeeded")
        first, second = run["nodes"]
        assert (first["status"], first["attempt"], first["pinned"]) == ("succeeded", 0, True)
        assert "pinned" not in second
        detail = (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_A}")).json()
        assert detail["story"][0].endswith("took its pinned result")
        assert (detail["pinned"], detail["parameters"]) == (True, None)


async def test_what_is_upstream_of_a_pinned_node_runs_and_changes_nothing() -> None:
    async with serving() as rig, rig.worker() as worker:
        await save(rig, chain())
        await put(rig, NODE_B, result={"value": "pinned"})
        asked = {"workflow": chain(), "usePinned": True}
        run_id = (await rig.post(RUNS, json=asked)).json()["runId"]
        (task,) = await worker.tasks(NODE_A)
        task.succeed({"value": "a"})
        run = await rig.status(run_id, "succeeded")
        assert [node["result"] for node in run["nodes"]] == [{"value": "a"}, {"value": "pinned"}]
        again = await rig.post(f"{RUNS}/{run_id}/rerun", json={})
        assert sorted(again.json()["kept"]) == sorted([NODE_A, NODE_B])


async def test_other_runs_do_not_use_it() -> None:
    async with serving() as rig, rig.worker() as worker:
        await save(rig, chain())
        await put(rig, result={"value": "pinned"})
        for body in ({"workflowId": WORKFLOW}, {"workflow": chain(), "usePinned": False}):
            await rig.post(RUNS, json=body)
            (task,) = await worker.tasks(NODE_A)
            assert task.payload["parameters"] == {"value": 1}


async def triggered(rig: Rig, trigger: dict[str, Any]) -> None:
    """Make a trigger start a run."""
    path = f"{FLOWS}/{WORKFLOW}/triggers/{trigger['id']}"
    if trigger["type"] == "webhook":
        shown = (await rig.get(path)).json()
        assert (await rig.post(shown["hookPath"])).status_code == 202
    elif trigger["type"] == "manual":
        assert (await rig.post(f"{path}/run")).status_code == 202


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "cron", "id": "t", "expression": "* * * * * *"},
        {"type": "webhook", "id": "t"},
        {"type": "manual", "id": "t"},
    ],
    ids=lambda one: one["type"],
)
async def test_a_triggered_run_never_uses_it(trigger: dict[str, Any]) -> None:
    async with serving() as rig, rig.worker() as worker:
        await save(rig, chain(triggers=[trigger]))
        await put(rig, result={"value": "pinned"})
        await triggered(rig, trigger)
        (task,) = await worker.tasks(NODE_A)
        assert task.payload["parameters"] == {"value": 1}


async def test_a_run_after_another_workflow_never_uses_it() -> None:
    other = "11111111-7f7c-4c1b-9d61-0c3a2f6d1b11"
    async with serving() as rig, rig.worker() as worker:
        first = definition(nodes=[{"id": MIDDLE, "type": "core.noop"}], edges=[]) | {"id": other}
        await save(rig, first)
        await save(rig, chain(triggers=[{"type": "workflow", "id": "t", "workflowId": other}]))
        await put(rig, result={"value": "pinned"})
        await rig.post(RUNS, json={"workflowId": other, "usePinned": True})
        (task,) = await worker.tasks(MIDDLE)
        task.succeed({})
        (task,) = await worker.tasks(NODE_A)
        assert task.payload["parameters"] == {"value": 1}


async def test_the_result_of_a_run_can_be_pinned() -> None:
    async with serving() as rig, rig.worker() as worker:
        await save(rig, chain())
        run_id = (await rig.post(RUNS, json={"workflowId": WORKFLOW})).json()["runId"]
        problem_of(await put(rig, runId=run_id), 404, "E.RUN.NODE_NOT_FOUND")
        (task,) = await worker.tasks(NODE_A)
        task.succeed({"value": "made"})
        (task,) = await worker.tasks(NODE_B)
        kept = {"resource_id": "r1", "worker_id": "w1", "type": "file"}
        task.succeed({"value": "b"}, artifacts=[kept])
        await rig.status(run_id, "succeeded")
        made = (await put(rig, runId=run_id)).json()
        assert (made["result"], made["fromRun"]) == ({"value": "made"}, run_id)
        problem_of(await put(rig, NODE_B, runId=run_id), 400, "E.REQUEST.INVALID")
        problem_of(await put(rig, runId="nobody"), 404, "E.RUN.NOT_FOUND")


async def test_pins_are_listed_replaced_and_removed_with_their_workflow() -> None:
    async with serving() as rig:
        await save(rig, chain())
        for value in (1, 2):
            await put(rig, result={"value": value})
        await put(rig, NODE_B, result={"value": 3})
        items = (await rig.get(PINS)).json()["items"]
        assert {one["nodeId"]: one["result"]["value"] for one in items} == {NODE_A: 2, NODE_B: 3}
        assert (await rig.client.delete(f"{PINS}/{NODE_A}")).status_code == 204
        gone = await rig.client.delete(f"{PINS}/{NODE_A}")
        problem_of(gone, 404, "E.WORKFLOW.NO_PIN")
        assert len((await rig.get(PINS)).json()["items"]) == 1
        assert (await rig.client.delete(f"{FLOWS}/{WORKFLOW}")).status_code == 204
        problem_of(await rig.get(PINS), 404, "E.WORKFLOW.NOT_FOUND")
        await save(rig, chain())
        assert (await rig.get(PINS)).json()["items"] == []


async def test_a_draft_with_problems_can_have_them_and_they_end_with_it() -> None:
    async with serving() as rig:
        draft = f"{FLOWS}/{WORKFLOW}/draft"
        broken = {"id": WORKFLOW, "nodes": [{"id": NODE_A, "type": "not.yet"}, "?"]}
        await rig.client.put(draft, json=broken)
        assert (await put(rig, result={"value": 1})).status_code == 200
        problem_of(await put(rig, NODE_B, result={}), 422, "E.WORKFLOW.UNKNOWN_NODE")
        await rig.client.put(draft, json={"id": WORKFLOW, "nodes": "?"})
        problem_of(await put(rig, result={}), 422, "E.WORKFLOW.UNKNOWN_NODE")
        assert (await rig.client.delete(draft)).status_code == 204
        await save(rig, chain())
        assert (await rig.get(PINS)).json()["items"] == []


async def test_a_result_that_cannot_be_pinned_is_refused() -> None:
    async with serving() as rig:
        problem_of(await put(rig, result={}), 404, "E.WORKFLOW.NOT_FOUND")
        wrapped = chain()
        wrapped["nodes"][0]["middlewares"] = [MIDDLE]
        wrapped["nodes"].append({"id": MIDDLE, "type": "core.noop"})
        await save(rig, wrapped)
        for body in ({}, {"result": {}, "runId": "r"}, {"result": 5}, {"result": [1]}, {"x": 1}):
            assert (await put(rig, **body)).status_code == 400, body
        problem_of(await put(rig, MIDDLE, result={}), 422, "E.WORKFLOW.UNKNOWN_NODE")
        problem_of(await put(rig, "nobody", result={}), 422, "E.WORKFLOW.UNKNOWN_NODE")
        large = {"value": "x" * MAX_PINNED_BYTES}
        problem_of(await put(rig, result=large), 413, "E.REQUEST.TOO_LARGE")
        exact = {"value": "x" * (MAX_PINNED_BYTES - len('{"value":""}'))}
        assert (await put(rig, result=exact)).status_code == 200


async def test_a_workflow_has_a_bounded_number_of_them() -> None:
    ids = [f"00000000-0000-4000-8000-{number:012d}" for number in range(MAX_PINS + 1)]
    async with serving() as rig:
        await save(
            rig, definition(nodes=[{"id": one, "type": "core.noop"} for one in ids], edges=[])
        )
        for one in ids[:-1]:
            assert (await put(rig, one, result={})).status_code == 200
        problem_of(await put(rig, ids[-1], result={}), 400, "E.REQUEST.INVALID")
        assert (await put(rig, ids[0], result={"again": True})).status_code == 200


@pytest.mark.parametrize(
    ("policy", "status", "warned"), [("off", 200, 0), ("warn", 200, 1), ("fail", 422, 0)]
)
async def test_it_fits_the_schema_of_its_node_as_the_policy_wants(
    policy: str, status: int, warned: int
) -> None:
    async with serving(result_schema_policy=policy) as rig:
        document = definition(nodes=[{"id": NODE_A, "type": "core.template"}], edges=[])
        await save(rig, document)
        answer = await put(rig, result={"text": 5})
        assert answer.status_code == status, answer.text
        if status != 200:
            problem_of(answer, 422, "E.RESULT.SCHEMA")
        else:
            assert len(answer.json().get("warnings", [])) == warned


async def test_a_result_that_no_longer_fits_is_refused_when_it_is_used() -> None:
    async with serving(result_schema_policy="fail") as rig:
        await save(rig, definition(nodes=[{"id": NODE_A, "type": "core.echo"}], edges=[]))
        await put(rig, result={"text": 5})
        changed = definition(nodes=[{"id": NODE_A, "type": "core.template"}], edges=[])
        asked = {"workflow": changed, "usePinned": True}
        problem_of(await rig.post(RUNS, json=asked), 422, "E.RESULT.SCHEMA")
        assert (await rig.post(RUNS, json={"workflow": changed})).status_code == 202


async def test_who_may_not_edit_may_not_pin_and_others_see_nothing() -> None:
    viewer = {"authorization": f"Bearer {token_of(Role.VIEWER)}"}
    other = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
    async with serving() as rig:
        await save(rig, chain())
        await put(rig, result={"value": 1})
        body: dict[str, Any] = {"result": {}}
        problem_of(
            await rig.client.put(f"{PINS}/{NODE_A}", json=body, headers=viewer),
            403,
            "E.AUTH.FORBIDDEN",
        )
        assert len((await rig.get(PINS, headers=viewer)).json()["items"]) == 1
        problem_of(await rig.get(PINS, headers=other), 404, "E.WORKFLOW.NOT_FOUND")
        asked = {"workflow": chain(), "usePinned": True}
        run_id = (await rig.post(RUNS, json=asked, headers=other)).json()["runId"]
        run = (await rig.get(f"{RUNS}/{run_id}", headers=other)).json()
        assert all("pinned" not in node for node in run["nodes"])


async def test_the_events_say_it_too() -> None:
    async with serving() as rig:
        await save(rig, chain())
        await put(rig, result={"value": 1})
        asked = {"workflowId": WORKFLOW, "usePinned": True}
        run_id = (await rig.post(RUNS, json=asked)).json()["runId"]
        states: list[NodeState] = []
        async with aclosing(rig.scheduler.reader.follow_run("default", run_id, 0)) as batches:
            async for batch in batches:
                states += [one.body for one in batch if isinstance(one.body, NodeState)]
                if any(state.pinned for state in states):
                    break
        (state,) = [state for state in states if state.pinned]
        assert (state.node_id, state.status, state.reused_from) == (NODE_A, "succeeded", None)
