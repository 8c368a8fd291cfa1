"""`GET /api/v1/workflows?package=…`: which workflows use a package."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.security.policy import Role
from astraflow.scheduler import workflows
from tests.api.rig import NODE_A, NODE_B, OTHER, Rig, definition, problem_of, serving
from tests.api.scripted import token_of
from tests.api.test_packages import PATH as PACKAGES
from tests.api.test_packages import publish
from tests.scheduler.packing import pack

PATH = "/api/v1/workflows"


def uid(place: int) -> str:
    return f"00000000-0000-4000-8000-{place:012}"


def say(**more: Any) -> dict[str, Any]:
    return {"id": NODE_A, "type": "demo.say", "parameters": {}, **more}


async def save(rig: Rig, place: int, *nodes: dict[str, Any], **more: Any) -> str:
    made = await rig.post(PATH, json=definition(id=uid(place), nodes=list(nodes), **more))
    assert made.status_code == 201, made.text
    return uid(place)


async def found(rig: Rig, query: str) -> list[str]:
    answer = await rig.get(f"{PATH}?{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_workflows_are_found_by_a_package_of_their_nodes() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        await publish(rig, pack(version="1.1.0"))
        plain = await save(rig, 1, {"id": NODE_A, "type": "core.noop"})
        unnamed = await save(rig, 2, say())
        fixed = await save(rig, 3, say(package={"name": "demo", "version": "1.0.0"}))
        group = {"id": NODE_B, "type": "core.container"}
        nested = await save(rig, 4, group, say(parent=NODE_B, package={"name": "demo"}))
        assert await found(rig, "package=demo") == [nested, fixed, unnamed]
        assert await found(rig, "package=demo%401.0") == [fixed]
        assert await found(rig, "package=demo@1.1.0") == [nested, unnamed]
        assert await found(rig, "package=core") == [nested, plain]
        assert await found(rig, "package=nobody") == []
        assert await found(rig, f"package=demo&text={fixed}") == [fixed]


async def test_only_the_newest_version_counts_and_no_draft() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        one = await save(rig, 1, say())
        draft = definition(id=one, nodes=[{"id": NODE_A, "type": "core.noop"}])
        await rig.client.put(f"{PATH}/{one}/draft", json=draft)
        assert await found(rig, "package=demo") == [one]
        await rig.post(f"{PATH}/{one}/publish")
        assert await found(rig, "package=demo") == []


async def test_a_workflow_is_found_after_the_package_was_withdrawn() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        one = await save(rig, 1, say(package={"name": "demo", "version": "1.0.0"}))
        yanked = await rig.post(f"{PACKAGES}/demo/1.0.0/yank")
        assert yanked.status_code == 200, yanked.text
        assert await found(rig, "package=demo@1.0.0") == [one]


async def test_they_come_in_pages_of_this_filter_alone() -> None:
    async with serving() as rig:
        ids = []
        for place in range(5):
            kind = "core.noop" if place % 2 else "core.echo"
            more = {"parameters": {"value": 1}} if kind == "core.echo" else {}
            ids.append(await save(rig, place, {"id": NODE_A, "type": kind, **more}))
        first = (await rig.get(f"{PATH}?package=core&limit=3")).json()
        assert [item["id"] for item in first["items"]] == ids[:1:-1]
        rest = (await rig.get(f"{PATH}?package=core&limit=3&cursor={first['nextCursor']}")).json()
        assert [item["id"] for item in rest["items"]] == ids[1::-1]
        assert rest["nextCursor"] is None
        whole = (await rig.get(f"{PATH}?package=core&limit=5")).json()
        assert (len(whole["items"]), whole["nextCursor"]) == (5, None)
        for other in (f"{PATH}?cursor=", f"{PATH}?package=demo&cursor="):
            answer = await rig.get(other + first["nextCursor"])
            assert problem_of(answer, 400, "E.REQUEST.INVALID")["parameter"] == "cursor"


async def test_one_request_looks_at_so_many_definitions_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workflows, "SCANNED_ROWS", 2)
    monkeypatch.setattr(workflows, "MAX_SCANNED_WORKFLOWS", 4)
    async with serving() as rig:
        await publish(rig, pack())
        one = await save(rig, 0, say())
        for place in range(1, 7):
            await save(rig, place, {"id": NODE_A, "type": "core.noop"})
        first = (await rig.get(f"{PATH}?package=demo")).json()
        assert first["items"] == []
        rest = (await rig.get(f"{PATH}?package=demo&cursor={first['nextCursor']}")).json()
        assert [item["id"] for item in rest["items"]] == [one]
        assert rest["nextCursor"] is None


async def test_a_large_definition_is_looked_at_as_well() -> None:
    async with serving() as rig:
        nodes = [{"id": uid(100 + place), "type": "core.noop"} for place in range(2_000)]
        one = await save(rig, 1, *nodes)
        assert await found(rig, "package=core") == [one]


@pytest.mark.parametrize("text", ["@1.0", "demo@", "demo@new", "De%20mo", "x" * 257])
async def test_what_names_no_package_is_refused(text: str) -> None:
    async with serving() as rig:
        answer = await rig.get(f"{PATH}?package={text}")
        assert problem_of(answer, 400, "E.REQUEST.INVALID")["parameter"] == "package"


async def test_a_viewer_may_ask_and_another_tenant_sees_nothing_of_it() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        one = await save(rig, 1, say())
        seen = await rig.as_(Role.VIEWER, "GET", f"{PATH}?package=demo")
        assert [item["id"] for item in seen.json()["items"]] == [one]
        headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        other = await rig.get(f"{PATH}?package=demo", headers=headers)
        assert other.json()["items"] == []
