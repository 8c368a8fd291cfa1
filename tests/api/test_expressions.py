"""`POST /api/v1/expressions/evaluate`: the preview of an expression."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, NODE_B, OTHER, Rig, definition, problem_of, serving
from tests.api.scripted import token_of

PATH = "/api/v1/expressions/evaluate"
RUNS = "/api/v1/runs"
NODE_C = "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"


async def evaluated(rig: Rig, expression: str, **more: Any) -> dict[str, Any]:
    answer = await rig.post(PATH, json={"expression": expression, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def value_of(rig: Rig, expression: str, **more: Any) -> Any:
    found = await evaluated(rig, expression, **more)
    assert "error" not in found, found
    return found["value"]


async def run_of_three(rig: Rig) -> str:
    """A has succeeded, B inside of a container has not begun."""
    nodes = [
        {"id": NODE_A, "type": "core.echo", "label": "First one", "parameters": {"value": 1}},
        {"id": NODE_C, "type": "core.container", "label": "Box"},
        {"id": NODE_B, "type": "core.noop", "label": "Inside", "parent": NODE_C},
    ]
    inputs = {"name": {"default": "Ada"}}
    body = {"workflow": definition(nodes=nodes, inputs=inputs), "inputs": {"name": "Zoë"}}
    answer = await rig.post(RUNS, json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


async def test_an_expression_reads_what_a_run_has_so_far() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await run_of_three(rig)
        (first, *_) = await worker.tasks(NODE_A)
        first.succeed({"value": 20, "list": [1, 2, 3]})
        path = f"{RUNS}/{run_id}/nodes/{NODE_A}"
        await rig.until(path, lambda node: node["status"] == "succeeded")

        async def value(expression: str, **more: Any) -> Any:
            return await value_of(rig, expression, runId=run_id, **more)

        assert await value('nodes["First one"].results.value + 1') == 21
        assert await value(f'sum(nodes["{NODE_A}"].results.list)') == 6
        assert await value("upper(inputs.name)") == "ZOË"
        assert await value("run.id") == run_id
        assert await value('nodes["First one"].state') == "succeeded"
        assert await value("nodes.Renamed.results.value", nodes={"Renamed": NODE_A}) == 20
        assert await value("inputs.name + x", names={"x": "!"}) == "Zoë!"
        assert await value("inputs.x", names={"inputs": {"x": None}}) is None
        for node_id in (NODE_B, NODE_C, "nobody"):
            assert await value('nodes["First one"].results.value', nodeId=node_id) == 20


async def test_given_values_are_enough() -> None:
    async with serving() as rig:
        assert await value_of(rig, "[x * 2 for x in items]", names={"items": [1, 2]}) == [2, 4]
        assert await value_of(rig, "1 + 1") == 2
        error = (await evaluated(rig, "nodes.A.results", nodes={"A": NODE_A}))["error"]
        assert error["code"] == "E.TASK.EXPRESSION"


@pytest.mark.parametrize(
    ("expression", "code", "position"),
    [
        ("1 +", "E.WORKFLOW.EXPRESSION", 3),
        ("  1 + + )", "E.WORKFLOW.EXPRESSION", 8),
        ("(1,\n 2", "E.WORKFLOW.EXPRESSION", 0),
        (' "ä" + (lambda: 1)', "E.WORKFLOW.EXPRESSION", 8),
        ("nobody", "E.TASK.EXPRESSION", None),
        ("1 / 0", "E.TASK.EXPRESSION", None),
        ("__import__('os')", "E.WORKFLOW.EXPRESSION", None),
        ("", "E.WORKFLOW.EXPRESSION", 0),
        ("1" + "+1" * 3_000, "E.WORKFLOW.EXPRESSION", None),
    ],
)
async def test_an_expression_without_a_value_says_why_and_where(
    expression: str, code: str, position: int | None
) -> None:
    async with serving() as rig:
        found = await evaluated(rig, expression)
        assert found["value"] is None
        assert found["error"]["code"] == code
        assert found["error"]["message"]
        assert found["error"].get("position") == position


async def test_no_secret_and_no_key_is_shown() -> None:
    async with serving() as rig:
        secret = await rig.client.put("/api/v1/secrets/pin", json={"value": "hush-hush"})
        assert secret.status_code < 300, secret.text
        node = {"id": NODE_A, "type": "core.signal", "signal": {"name": "go", "webhook": True}}
        made = await rig.post(RUNS, json={"workflow": definition(nodes=[node])})
        run_id = made.json()["runId"]
        for expression in ("secrets.pin", "upper(secrets.pin)", "secrets", "[secrets.pin]"):
            answer = await rig.post(PATH, json={"expression": expression, "runId": run_id})
            assert answer.json()["error"]["code"] == "E.TASK.EXPRESSION", expression
            assert "hush" not in answer.text
        for expression in ("run.signals.go", "run.signals", "string(run)", "run"):
            answer = await rig.post(PATH, json={"expression": expression, "runId": run_id})
            assert "/api/v1/signals/" not in answer.text, expression


async def test_what_is_too_large_is_left_out_and_nodes_are_no_value() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        found = await evaluated(rig, "x", names={"x": "a" * 70_000})
        assert found == {"value": None, "valueTruncated": True}
        for expression in ("nodes", "[nodes]"):
            error = (await evaluated(rig, expression, runId=run_id))["error"]
            assert error["code"] == "E.TASK.EXPRESSION"
        costly = await evaluated(rig, "[x for x in range(1000000)]")
        assert costly["error"]["code"].endswith(".EXPRESSION")


async def test_who_may_not_read_the_run_evaluates_nothing_of_it() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        body = {"expression": "run.id", "runId": run_id}
        seen = await rig.as_(Role.VIEWER, "POST", PATH, json=body)
        assert seen.json()["value"] == run_id
        headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        foreign = await rig.post(PATH, json=body, headers=headers)
        problem_of(foreign, 404, "E.RUN.NOT_FOUND")
        problem_of(await rig.as_(Role.WORKER, "POST", PATH, json=body), 403, "E.AUTH.FORBIDDEN")
        missing = await rig.post(PATH, json={"expression": "1", "runId": "nope"})
        problem_of(missing, 404, "E.RUN.NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"expression": 1}, "/expression"),
        ({"expression": "x" * 16_385}, "/expression"),
        ({"expression": "1", "names": []}, "/names"),
        ({"expression": "1", "names": {"x": "\x00"}}, "/names"),
        ({"expression": "1", "other": 1}, ""),
    ],
)
async def test_what_is_no_question_is_refused(body: Any, pointer: str) -> None:
    async with serving() as rig:
        problem = problem_of(await rig.post(PATH, json=body), 400, "E.REQUEST.INVALID")
        assert problem["errors"][0]["pointer"] == pointer
