"""Drafts, versions and their differences, as a client sees them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, NODE_B, OTHER, WORKFLOW, Rig, definition, problem_of, serving
from tests.api.scripted import token_of

PATH = "/api/v1/workflows"
ONE = f"{PATH}/{WORKFLOW}"
DRAFT = f"{ONE}/draft"
BROKEN: dict[str, Any] = {"id": WORKFLOW, "nodes": "not yet", "metadata": {"name": "wip"}}


async def put_draft(rig: Rig, body: Any, **headers: str) -> Any:
    answer = await rig.client.put(DRAFT, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_draft_is_saved_in_any_state_and_makes_no_version() -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition())
        for revision in (1, 2, 3):
            saved = await rig.client.put(DRAFT, json=BROKEN)
            assert saved.headers["etag"] == f'"{revision}"'
        shown = await rig.get(DRAFT)
        assert shown.headers["etag"] == '"3"'
        body = shown.json()
        assert body["definition"] == BROKEN
        assert (body["revision"], body["baseVersion"], body["name"]) == (3, 1, "wip")
        assert body["updatedBy"] == "admin of default"
        assert (await rig.get(ONE)).headers["etag"] == '"1"'
        (item,) = (await rig.get(f"{PATH}/drafts")).json()["items"]
        assert (item["id"], item["revision"]) == (WORKFLOW, 3)
        assert "definition" not in item


async def test_a_draft_is_never_saved_over_somebody_elses() -> None:
    async with serving() as rig:
        await put_draft(rig, BROKEN, **{"if-match": '"0"'})
        again = await rig.client.put(DRAFT, json=BROKEN, headers={"if-match": '"0"'})
        problem_of(again, 409, "E.WORKFLOW.CONFLICT")
        await put_draft(rig, definition(), **{"if-match": '"1"'})
        late = await rig.client.put(DRAFT, json=BROKEN, headers={"if-match": '"1"'})
        problem_of(late, 409, "E.WORKFLOW.CONFLICT")
        stale = await rig.client.delete(DRAFT, headers={"if-match": '"1"'})
        problem_of(stale, 409, "E.WORKFLOW.CONFLICT")
        early = await rig.post(f"{ONE}/publish", json={"revision": 1})
        problem_of(early, 409, "E.WORKFLOW.CONFLICT")
        assert (await rig.get(DRAFT)).json()["definition"] == definition()


async def test_of_saves_at_once_each_revision_is_made_once() -> None:
    async with serving() as rig:
        answers = await asyncio.gather(
            *(rig.client.put(DRAFT, json=BROKEN, headers={"if-match": '"0"'}) for _ in range(8))
        )
        assert sorted(one.status_code for one in answers) == [200] + [409] * 7
        assert (await rig.get(DRAFT)).json()["revision"] == 1


async def test_publishing_makes_a_version_and_ends_the_draft() -> None:
    async with serving() as rig:
        await put_draft(rig, BROKEN)
        refused = await rig.post(f"{ONE}/publish")
        assert problem_of(refused, 422, "E.WORKFLOW.INVALID")["errors"]
        unknown = definition(nodes=[{"id": NODE_A, "type": "no.such"}])
        await put_draft(rig, unknown)
        refused = await rig.post(f"{ONE}/publish")
        (error,) = problem_of(refused, 422, "E.WORKFLOW.INVALID")["errors"]
        assert error["pointer"] == "/nodes/0/type"
        await put_draft(rig, definition())
        made = await rig.post(f"{ONE}/publish", json={"note": "first", "revision": 3})
        assert made.status_code == 201
        assert (made.json()["version"], made.json()["note"]) == (1, "first")
        problem_of(await rig.get(DRAFT), 404, "E.WORKFLOW.NO_DRAFT")
        problem_of(await rig.post(f"{ONE}/publish"), 404, "E.WORKFLOW.NO_DRAFT")
        assert (await rig.get(ONE)).json() == definition()
        assert (await rig.post("/api/v1/runs", json={"workflowId": WORKFLOW})).status_code == 202


async def test_a_draft_is_not_published_over_a_version_that_it_does_not_know() -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition())
        await put_draft(rig, definition(tags=["mine"]))
        await rig.client.put(ONE, json=definition(tags=["theirs"]))
        refused = problem_of(await rig.post(f"{ONE}/publish"), 409, "E.WORKFLOW.STALE_DRAFT")
        assert (refused["baseVersion"], refused["version"]) == (1, 2)
        ahead = await rig.client.put(f"{DRAFT}?baseVersion=3", json=definition())
        problem_of(ahead, 400, "E.REQUEST.INVALID")
        merged = await rig.client.put(f"{DRAFT}?baseVersion=2", json=definition(tags=["both"]))
        assert merged.json()["baseVersion"] == 2
        assert (await rig.post(f"{ONE}/publish")).json()["version"] == 3
        await put_draft(rig, definition(tags=["mine"]))
        await rig.client.put(ONE, json=definition(tags=["theirs"]))
        forced = await rig.post(f"{ONE}/publish", json={"force": True})
        assert forced.json()["version"] == 5
        assert (await rig.get(ONE)).json()["tags"] == ["mine"]


async def test_the_history_says_who_when_and_why() -> None:
    async with serving() as rig:
        await rig.post(f"{PATH}?note=first%20of%20all", json=definition())
        await rig.client.put(f"{ONE}?note=%C3%A4ndert", json=definition(metadata={"name": "new"}))
        await rig.client.put(ONE, json=definition())
        first = (await rig.get(f"{ONE}/versions?limit=2")).json()
        rest = (await rig.get(f"{ONE}/versions?limit=2&cursor={first['nextCursor']}")).json()
        told = first["items"] + rest["items"]
        assert [(one["version"], one["note"]) for one in told] == [
            (3, ""),
            (2, "ändert"),
            (1, "first of all"),
        ]
        assert told[1]["name"] == "new"
        assert all(one["savedBy"] == "admin of default" for one in told)
        assert rest["nextCursor"] is None
        long = await rig.client.put(f"{ONE}?note={'x' * 1001}", json=definition())
        problem_of(long, 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{PATH}/{NODE_A}/versions"), 404, "E.WORKFLOW.NOT_FOUND")


async def test_an_older_version_is_restored_as_a_version_or_as_the_draft() -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition(tags=["one"]))
        await rig.client.put(ONE, json=definition(tags=["two"]))
        done = await rig.post(f"{ONE}/versions/1/restore")
        assert (done.status_code, done.json()["version"]) == (201, 3)
        assert (await rig.get(ONE)).json()["tags"] == ["one"]
        newest = (await rig.get(f"{ONE}/versions")).json()["items"][0]
        assert newest["note"] == "restores version 1"
        draft = await rig.post(f"{ONE}/versions/2/restore", json={"to": "draft"})
        assert (draft.status_code, draft.json()["revision"]) == (201, 1)
        shown = (await rig.get(DRAFT)).json()
        assert (shown["definition"]["tags"], shown["baseVersion"]) == (["two"], 3)
        again = await rig.post(f"{ONE}/versions/1/restore", json={"to": "draft"})
        problem_of(again, 409, "E.WORKFLOW.CONFLICT")
        forced = await rig.post(f"{ONE}/versions/1/restore", json={"to": "draft", "replace": True})
        assert forced.json()["revision"] == 2
        problem_of(await rig.post(f"{ONE}/versions/9/restore"), 404, "E.WORKFLOW.NOT_FOUND")
        problem_of(await rig.post(f"{ONE}/versions/x/restore"), 400, "E.REQUEST.INVALID")


async def test_versions_and_the_draft_are_compared() -> None:
    moved = definition(metadata={"name": "new"})
    moved["nodes"][0]["position"] = {"x": 1, "y": 2}
    moved["nodes"][0]["parameters"] = {"value": 2}
    moved["edges"] = [{"source": {"node": NODE_A}, "target": {"node": NODE_B}}]

    async with serving() as rig:
        await rig.post(PATH, json=definition())
        await rig.client.put(ONE, json=moved)
        found = (await rig.get(f"{ONE}/diff?from=1&to=2")).json()
        assert (found["from"], found["to"]) == ({"version": 1}, {"version": 2})
        (node,) = found["nodes"]["changed"]
        assert node["changes"] == [
            {"pointer": "/parameters/value", "kind": "changed", "before": 1, "after": 2}
        ]
        assert [one["id"] for one in found["moved"]] == [NODE_A]
        assert [one["id"] for one in found["edges"]["added"]] == [f"{NODE_A} -> {NODE_B}"]
        assert [one["pointer"] for one in found["settings"]] == ["/metadata/name"]
        assert found["isEqual"] is False
        await put_draft(rig, moved)
        same = (await rig.get(f"{ONE}/diff")).json()
        assert same["isEqual"] is True
        assert same["to"] == {"revision": 1}
        odd = (await put_draft(rig, BROKEN)) and (await rig.get(f"{ONE}/diff")).json()
        assert any(one["pointer"].startswith("/nodes") for one in odd["settings"])
        for query in ("from=0x1", "from=-1", "to=latest"):
            problem_of(await rig.get(f"{ONE}/diff?{query}"), 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{ONE}/diff?from=7"), 404, "E.WORKFLOW.NOT_FOUND")


async def test_a_large_difference_is_bounded() -> None:
    ids = [f"00000000-0000-4000-8000-{place:012}" for place in range(1_200)]

    def many(value: int) -> dict[str, Any]:
        nodes = [{"id": one, "type": "core.echo", "parameters": {"value": value}} for one in ids]
        return definition(nodes=nodes)

    async with serving() as rig:
        await rig.post(PATH, json=many(1))
        await put_draft(rig, many(2))
        found = (await rig.get(f"{ONE}/diff")).json()
        assert found["isTruncated"] is True
        assert len(found["nodes"]["changed"]) == 1_000


async def test_deleting_a_workflow_deletes_its_draft_and_another_tenant_sees_none() -> None:
    async with serving() as rig:
        await put_draft(rig, BROKEN)
        other = {"authorization": "Bearer admin-umbrella"}
        problem_of(await rig.get(DRAFT, headers=other), 401, "E.AUTH.INVALID_TOKEN")
        assert (await rig.client.delete(ONE)).status_code == 204
        problem_of(await rig.get(DRAFT), 404, "E.WORKFLOW.NO_DRAFT")
        problem_of(await rig.client.delete(ONE), 404, "E.WORKFLOW.NOT_FOUND")


@pytest.mark.parametrize("body", [{"id": NODE_A}, {"id": "x"}, {"nodes": []}, []])
async def test_what_is_no_draft_of_this_workflow_is_refused(body: Any) -> None:
    async with serving() as rig:
        answer = await rig.client.put(DRAFT, json=body)
        assert answer.status_code == 422
        problem_of(await rig.get(DRAFT), 404, "E.WORKFLOW.NO_DRAFT")


async def test_a_viewer_reads_drafts_and_changes_none() -> None:
    async with serving() as rig:
        await put_draft(rig, BROKEN)
        assert (await rig.as_(Role.VIEWER, "GET", DRAFT)).status_code == 200
        for method, path in (("PUT", DRAFT), ("DELETE", DRAFT), ("POST", f"{ONE}/publish")):
            answer = await rig.as_(Role.VIEWER, method, path, json=BROKEN)
            problem_of(answer, 403, "E.AUTH.FORBIDDEN")


async def test_whether_a_workflow_has_a_draft_is_asked_without_an_error() -> None:
    drafts = f"{PATH}/drafts?workflowId="

    async with serving() as rig:
        await rig.post(PATH, json=definition())
        none = await rig.get(f"{drafts}{WORKFLOW}")
        assert (none.status_code, none.json()) == (200, {"items": [], "nextCursor": None})
        await put_draft(rig, BROKEN)
        other = definition(id=NODE_A)
        await rig.client.put(f"{PATH}/{NODE_A}/draft", json=other)
        for role in (Role.VIEWER, Role.ADMIN):
            page = (await rig.as_(role, "GET", f"{drafts}{WORKFLOW}&limit=1")).json()
            assert [(item["id"], item["revision"]) for item in page["items"]] == [(WORKFLOW, 1)]
            assert page["nextCursor"] is None
        assert len((await rig.get(drafts)).json()["items"]) == 2
        headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        foreign = await rig.get(f"{drafts}{WORKFLOW}", headers=headers)
        assert foreign.json()["items"] == []
        cursor = (await rig.get(f"{PATH}/drafts?limit=1")).json()["nextCursor"]
        mixed = await rig.get(f"{drafts}{WORKFLOW}&cursor={cursor}")
        assert problem_of(mixed, 400, "E.REQUEST.INVALID")["parameter"] == "cursor"
        problem_of(await rig.get(f"{drafts}{'x' * 257}"), 400, "E.REQUEST.INVALID")
