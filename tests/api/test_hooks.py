"""Addresses of webhooks over HTTP: methods, paths, and floods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.rig import Rig, definition, problem_of, serving


async def save(rig: Rig, *triggers: dict[str, Any]) -> list[str]:
    """A workflow with these webhooks; their addresses."""
    saved = await rig.post("/api/v1/workflows", json=definition(triggers=list(triggers)))
    assert saved.status_code == 201, saved.text
    shown = await rig.get(f"/api/v1/workflows/{saved.json()['id']}/triggers")
    return [one["hookPath"] for one in shown.json()["items"]]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_webhook_takes_the_methods_that_it_names_and_no_other(method: str) -> None:
    async with serving() as rig:
        (address,) = await save(rig, {"type": "webhook", "methods": [method]})
        for one in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            answer = await rig.client.request(one, f"{address}?a=1")
            if one == method:
                assert answer.status_code == 202, answer.text
            else:
                problem_of(answer, 405, "E.REQUEST.METHOD")
                assert answer.headers["allow"] == method


async def test_a_path_is_a_part_of_the_address() -> None:
    async with serving() as rig:
        one, two = await save(
            rig,
            {"type": "webhook", "id": "a", "path": "github/push"},
            {"type": "webhook", "id": "b"},
        )
        assert one.endswith("/github/push")
        for path in (one, f"{one}/", two, f"{two}/"):
            assert (await rig.post(path)).status_code == 202, path
        bare = one.removesuffix("/github/push")
        for path in (
            bare,
            f"{bare}/github",
            f"{one}/x",
            f"{two}/github/push",
            f"{bare}/GITHUB/PUSH",
        ):
            problem_of(await rig.post(path), 404, "E.TRIGGER.NOT_FOUND")


async def test_a_flood_to_one_address_is_refused_and_no_other_is() -> None:
    async with serving(hook_requests_per_second=1) as rig:
        flooded, other = await save(
            rig, {"type": "webhook", "id": "a"}, {"type": "webhook", "id": "b"}
        )
        answers = await asyncio.gather(*(rig.post(flooded, content=b"x" * 1000) for _ in range(50)))
        refused = [one for one in answers if one.status_code != 202]
        assert len(answers) - len(refused) >= 2, "a burst is taken"
        assert len(refused) >= 40
        for one in refused:
            problem_of(one, 429, "E.QUOTA.RATE")
            assert int(one.headers["retry-after"]) >= 1
        assert (await rig.post(other)).status_code == 202
        assert (await rig.get("/api/v1/workflows")).status_code == 200
        for number in range(100):
            problem_of(await rig.post(f"/api/v1/hooks/none-{number}"), 404, "E.TRIGGER.NOT_FOUND")
        text = (await rig.get("/metrics")).text
        counted = f'astraflow_hook_deliveries_total{{outcome="limited",tenant="default"}} {len(refused)}.0'
        assert counted in text, text


async def test_two_webhooks_with_one_path_are_refused_with_a_pointer() -> None:
    async with serving() as rig:
        hooks = [{"type": "webhook", "id": name, "path": "in"} for name in ("a", "b")]
        answer = await rig.post("/api/v1/workflows/validate", json=definition(triggers=hooks))
        problems = answer.json()["errors"]
        assert [(one["pointer"], one["code"]) for one in problems] == [
            ("/triggers/1/path", "E.WORKFLOW.DUPLICATE_ID")
        ]
        run = await rig.post("/api/v1/runs", json={"workflow": definition(triggers=hooks)})
        assert run.status_code == 422, run.text
