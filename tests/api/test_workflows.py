from __future__ import annotations

import json

import pytest

from tests.api.rig import NODE_A, WORKFLOW, definition, problem_of, serving

PATH = "/api/v1/workflows"
ONE = f"{PATH}/{WORKFLOW}"


async def test_a_workflow_is_saved_shown_changed_and_deleted() -> None:
    async with serving() as rig:
        made = await rig.post(PATH, json=definition())
        assert made.status_code == 201
        assert made.headers["location"] == ONE
        assert made.headers["etag"] == '"1"'
        assert made.json() == definition()
        shown = await rig.get(ONE)
        assert (shown.json(), shown.headers["etag"]) == (definition(), '"1"')
        changed = definition(metadata={"name": "changed"})
        saved = await rig.client.put(ONE, json=changed, headers={"if-match": '"1"'})
        assert (saved.status_code, saved.headers["etag"]) == (200, '"2"')
        (item,) = (await rig.get(PATH)).json()["items"]
        assert (item["id"], item["name"], item["version"]) == (WORKFLOW, "changed", 2)
        assert item["updatedBy"] == "admin of default"
        older = await rig.get(f"{ONE}?version=1")
        assert (older.json(), older.headers["etag"]) == (definition(), '"1"')
        gone = await rig.client.delete(ONE)
        assert (gone.status_code, gone.content) == (204, b"")
        problem_of(await rig.get(ONE), 404, "E.WORKFLOW.NOT_FOUND")
        problem_of(await rig.client.delete(ONE), 404, "E.WORKFLOW.NOT_FOUND")


async def test_unknown_fields_and_spaces_survive() -> None:
    odd = json.dumps(
        definition(extension={"kept": [1, "ä"]}), indent=4, ensure_ascii=False
    ).encode()

    async with serving() as rig:
        headers = {"content-type": "application/json"}
        assert (await rig.post(PATH, content=odd, headers=headers)).content == odd
        assert (await rig.get(ONE)).content == odd


async def test_a_save_over_somebody_elses_change_is_a_conflict() -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition())
        await rig.client.put(ONE, json=definition(tags=["a"]))
        late = await rig.client.put(ONE, json=definition(), headers={"if-match": '"1"'})
        problem_of(late, 409, "E.WORKFLOW.CONFLICT")
        assert (await rig.get(ONE)).json() == definition(tags=["a"])
        stale = await rig.client.delete(ONE, headers={"if-match": '"1"'})
        problem_of(stale, 409, "E.WORKFLOW.CONFLICT")
        again = await rig.post(PATH, json=definition())
        problem_of(again, 409, "E.WORKFLOW.CONFLICT")
        right = await rig.client.delete(ONE, headers={"if-match": 'W/"2"'})
        assert right.status_code == 204


async def test_any_version_is_matched_by_a_star() -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition())
        saved = await rig.client.put(ONE, json=definition(), headers={"if-match": "*"})
        assert saved.headers["etag"] == '"2"'


@pytest.mark.parametrize("tag", ["1", '"x"', '"1", "2"', '"-1"', '""'])
async def test_a_tag_that_is_none_of_ours_is_refused(tag: str) -> None:
    async with serving() as rig:
        await rig.post(PATH, json=definition())
        answer = await rig.client.put(ONE, json=definition(), headers={"if-match": tag})
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_a_change_of_what_is_not_there_is_not_found() -> None:
    async with serving() as rig:
        answer = await rig.client.put(ONE, json=definition())
        problem_of(answer, 404, "E.WORKFLOW.NOT_FOUND")
        await rig.post(PATH, json=definition())
        other = await rig.client.put(ONE, json=definition(id=NODE_A))
        problem_of(other, 422, "E.WORKFLOW.INVALID")
        problem_of(await rig.get(f"{ONE}?version=0"), 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{ONE}?version=7"), 404, "E.WORKFLOW.NOT_FOUND")


async def test_what_is_no_definition_is_not_saved() -> None:
    async with serving() as rig:
        answer = await rig.post(PATH, json={"id": 5, "nodes": {}})
        body = problem_of(answer, 422, "E.WORKFLOW.INVALID")
        assert {error["pointer"] for error in body["errors"]} >= {"/id", "/nodes"}
        assert (await rig.get(PATH)).json()["items"] == []


async def test_validation_says_all_that_is_wrong_and_saves_nothing() -> None:
    nodes = [{"id": NODE_A, "type": "no.such"}, {"id": NODE_A, "type": "core.noop"}]

    async with serving() as rig:
        good = await rig.post(f"{PATH}/validate", json=definition())
        assert (good.status_code, good.json()) == (
            200,
            {"valid": True, "errors": [], "warnings": []},
        )
        unsure = definition()
        unsure["nodes"][0]["retries"] = 3
        (warning,) = (await rig.post(f"{PATH}/validate", json=unsure)).json()["warnings"]
        assert warning == {
            "pointer": "/nodes/0/retries",
            "code": "E.WORKFLOW.UNKNOWN_FIELD",
            "message": "a node has no field of this name: 'retries'; did you mean 'retry'?",
        }
        unsure = definition()
        unsure["nodes"][0]["retry"] = {"attempts": 3}
        (warning,) = (await rig.post(f"{PATH}/validate", json=unsure)).json()["warnings"]
        assert warning["pointer"] == "/nodes/0/retry/attempts"
        assert warning["message"].endswith("did you mean 'maxAttempts'?")
        bad = await rig.post(f"{PATH}/validate", json=definition(nodes=nodes))
        body = problem_of(bad, 422, "E.WORKFLOW.INVALID")
        assert len(body["errors"]) == 2
        assert (await rig.get(PATH)).json()["items"] == []
        problem_of(await rig.get(f"{PATH}/validate"), 405, "E.REQUEST.METHOD")


async def test_a_large_definition_is_validated_as_well() -> None:
    ids = [f"00000000-0000-4000-8000-{place:012}" for place in range(2_000)]
    nodes = [{"id": one, "type": "core.noop"} for one in ids]

    async with serving() as rig:
        good = await rig.post(f"{PATH}/validate", json=definition(nodes=nodes))
        assert good.status_code == 200
        nodes[7]["type"] = "no.such"
        bad = await rig.post(f"{PATH}/validate", json=definition(nodes=nodes))
        (error,) = problem_of(bad, 422, "E.WORKFLOW.INVALID")["errors"]
        assert error["pointer"].startswith("/nodes/7")


async def test_workflows_are_listed_in_pages() -> None:
    async with serving() as rig:
        ids = [f"00000000-0000-4000-8000-{place:012}" for place in range(5)]
        for one in ids:
            await rig.post(PATH, json=definition(id=one))
        first = (await rig.get(f"{PATH}?limit=3")).json()
        rest = (await rig.get(f"{PATH}?limit=3&cursor={first['nextCursor']}")).json()
        assert [item["id"] for item in first["items"] + rest["items"]] == ids[::-1]
        assert rest["nextCursor"] is None
