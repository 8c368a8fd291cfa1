"""What a run says of itself: its header, its lists, its timeline, and pages of its output."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.contract.timelines import TimelineEntry
from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, NODE_B, OTHER, WORKFLOW, Rig, definition, problem_of, serving
from tests.api.scripted import token_of

RUNS = "/api/v1/runs"


async def test_a_run_says_what_it_is_who_submitted_it_and_how_far_it_is() -> None:
    async with serving() as rig, rig.worker() as worker:
        assert (await rig.post("/api/v1/workflows", json=definition())).status_code == 201
        made = await rig.post(RUNS, json={"workflowId": WORKFLOW})
        run_id = made.json()["runId"]
        first, second = await worker.tasks(NODE_A, NODE_B)
        first.succeed()
        run = await rig.until(f"{RUNS}/{run_id}", lambda run: run["counts"].get("succeeded") == 1)
        assert (run["name"], run["workflowVersion"], run["by"]) == ("two", 1, "admin of default")
        assert "trigger" not in run
        assert sum(run["counts"].values()) == 2
        second.succeed()
        ended = await rig.status(run_id, "succeeded")
        assert ended["counts"] == {"succeeded": 2}
        head = (await rig.get(f"{RUNS}/{run_id}?nodes=false")).json()
        assert (head["name"], head["counts"]) == ("two", {"succeeded": 2})
        (row,) = (await rig.get(RUNS)).json()["items"]
        assert (row["by"], row["workflowVersion"]) == ("admin of default", 1)
        node = (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_A}")).json()
        assert node["readyAt"] == ended["createdAt"]
        assert "maxAttempts" not in node


async def test_a_node_says_how_often_it_may_fail_and_when_it_is_tried_again() -> None:
    retry = {"maxAttempts": 3, "initialSeconds": 60}
    nodes = [{"id": NODE_A, "type": "core.echo", "parameters": {"value": 1}, "retry": retry}]
    async with serving() as rig, rig.worker() as worker:
        made = await rig.post(RUNS, json={"workflow": definition(nodes=nodes)})
        assert made.status_code == 202, made.text
        run_id = made.json()["runId"]
        (await worker.task()).fail()
        run = await rig.until(
            f"{RUNS}/{run_id}", lambda run: run["nodes"][0]["status"] == "retrying"
        )
        node = run["nodes"][0]
        assert node["maxAttempts"] == 3
        assert node["retryAt"] == node["waitingFor"]["retryAt"]
        assert run["counts"] == {"retrying": 1}
        (entry,) = [
            one
            for one in (await rig.get(f"{RUNS}/{run_id}/timeline")).json()["items"]
            if one["kind"] == "attempt"
        ]
        assert (entry["status"], entry["error"]["code"]) == ("failed", "E.RUNNER.FAILURE")
        assert entry["retryAt"] > entry["finishedAt"]


async def ended(rig: Rig) -> str:
    async with rig.worker() as worker:
        run_id = await rig.submit()
        first, second = await worker.tasks(NODE_A, NODE_B)
        first.say("one", "two")
        first.succeed()
        second.succeed()
        await rig.status(run_id, "succeeded")
    return run_id


async def test_the_timeline_has_every_attempt_and_every_wait() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        await rig.until(f"{RUNS}/{run_id}", lambda run: run["nodes"][0]["status"] == "waiting")
        async with rig.worker() as worker:
            for task in await worker.tasks(NODE_A, NODE_B):
                task.succeed()
            await rig.status(run_id, "succeeded")
        page = (await rig.get(f"{RUNS}/{run_id}/timeline")).json()
        assert page["nextCursor"] is None
        attempts = [one for one in page["items"] if one["kind"] == "attempt"]
        assert {one["nodeId"] for one in attempts} == {NODE_A, NODE_B}
        for one in attempts:
            assert (one["attempt"], one["status"], one["workerId"]) == (1, "succeeded", "w1")
            assert one["dispatchedAt"] <= one["startedAt"] <= one["finishedAt"]
        waits = [one for one in page["items"] if one["kind"] == "wait"]
        assert {one["nodeId"] for one in waits} == {NODE_A, NODE_B}
        assert all(one["waitingFor"]["kind"] and one["since"] for one in waits)
        only = (await rig.get(f"{RUNS}/{run_id}/timeline?nodeId={NODE_B}")).json()["items"]
        assert {one["nodeId"] for one in only} == {NODE_B}


async def test_a_timeline_in_pages_joins_to_the_whole() -> None:
    async with serving() as rig:
        run_id = await ended(rig)
        path = f"{RUNS}/{run_id}/timeline"
        whole = (await rig.get(path)).json()["items"]
        joined: dict[tuple[object, ...], TimelineEntry] = {}
        cursor: str | None = ""
        pages = 0
        while cursor is not None:
            page = (await rig.get(f"{path}?limit=1&cursor={cursor}")).json()
            for one in page["items"]:
                entry = _entry(one)
                known = joined.get(entry.key)
                joined[entry.key] = entry if known is None else known.joined(entry)
            cursor, pages = page["nextCursor"], pages + 1
        assert pages > 1
        assert list(joined.values()) == [_entry(one) for one in whole]
        problem_of(await rig.get(f"{RUNS}/nope/timeline"), 404, "E.RUN.NOT_FOUND")
        answer = await rig.client.get(
            path, headers={"authorization": f"Bearer {token_of('admin', OTHER)}"}
        )
        problem_of(answer, 404, "E.RUN.NOT_FOUND")


def _entry(one: dict[str, Any]) -> TimelineEntry:
    return msgspec.convert(one, TimelineEntry)


async def test_runs_are_found_by_name_time_and_trigger() -> None:
    async with serving() as rig:
        names = ("Nightly sync", "nightly_report", "100% done")
        made = []
        for name in names:
            body = {"workflow": definition(metadata={"name": name})}
            made.append((await rig.post(RUNS, json=body)).json())

        async def found(query: str) -> list[str]:
            answer = await rig.get(f"{RUNS}?{query}")
            assert answer.status_code == 200, answer.text
            return [one["name"] for one in answer.json()["items"]]

        assert await found("text=NIGHTLY") == ["nightly_report", "Nightly sync"]
        assert await found("text=y_r") == ["nightly_report"]
        assert await found("text=0%25") == ["100% done"]
        assert await found("text=%25") == ["100% done"]
        assert await found(f"text={made[0]['runId'].lower()}") == ["Nightly sync"]
        assert await found("text=nightly&status=succeeded") == []
        assert await found(f"text=nightly&workflowId={WORKFLOW}") == [
            "nightly_report",
            "Nightly sync",
        ]
        assert await found("trigger=every-night") == []
        assert await found(f"since={made[0]['createdAt']}") == list(names[::-1])
        assert await found(f"until={made[0]['createdAt']}") == []
        first = (await rig.get(f"{RUNS}?text=nightly&limit=1")).json()
        assert await found(f"text=nightly&limit=1&cursor={first['nextCursor']}") == ["Nightly sync"]
        other = await rig.get(f"{RUNS}?text=sync&cursor={first['nextCursor']}")
        problem_of(other, 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{RUNS}?since=yesterday"), 400, "E.REQUEST.INVALID")


async def test_workflows_are_found_by_name() -> None:
    async with serving() as rig:
        await rig.post("/api/v1/workflows", json=definition(metadata={"name": "Nightly sync"}))
        for text, count in (("SYNC", 1), ("nope", 0), (WORKFLOW[:8], 1), ("", 1)):
            items = (await rig.get(f"/api/v1/workflows?text={text}")).json()["items"]
            assert len(items) == count, text


async def talked(rig: Rig) -> str:
    async with rig.worker() as worker:
        run_id = await rig.submit()
        first, second = await worker.tasks(NODE_A, NODE_B)
        for number in range(5):
            first.say(f"Line {number}\n")
        chunk = {"channel": "stderr", "index": 0, "text": "oh no", "metadata": {"level": "error"}}
        second._worker.tell("biz.exec.feedback", {**second.names, "chunks": [chunk]})
        first.succeed()
        second.succeed()
        await rig.status(run_id, "succeeded")
    return run_id


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 6),
        ("channel=stderr", 1),
        ("channel=stdout", 5),
        ("attempt=1", 6),
        ("attempt=2", 0),
        ("text=LINE", 5),
        ("text=line+3", 1),
        ("level=error", 1),
        (f"nodeId={NODE_B}", 1),
        (f"nodeId={NODE_B}&channel=stdout", 0),
    ],
)
async def test_output_is_filtered_alike_from_both_ends(query: str, count: int) -> None:
    async with serving() as rig:
        path = f"{RUNS}/{await talked(rig)}/logs?{query}"
        forward = (await rig.get(path)).json()["items"]
        back = (await rig.get(f"{path}&newest=true")).json()["items"]
        assert len(forward) == count
        assert back == forward[::-1]


async def test_the_newest_output_comes_in_pages_and_all_of_it_as_a_file() -> None:
    async with serving() as rig:
        run_id = await talked(rig)
        path = f"{RUNS}/{run_id}/logs"
        whole = (await rig.get(path)).json()["items"]
        seen: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = (await rig.get(f"{path}?newest=true&limit=2&cursor={cursor}")).json()
            assert len(page["items"]) <= 2
            seen += page["items"]
            cursor = page["nextCursor"]
        assert seen == whole[::-1]
        answer = await rig.get(f"{path}/file")
        assert answer.headers["content-disposition"] == f'attachment; filename="{run_id}.log"'
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        lines = answer.text.splitlines()
        assert len(lines) == 6
        assert f" {NODE_A} 1 stdout Line 0" in answer.text
        only = await rig.get(f"{path}/file?channel=stderr")
        assert only.text.endswith(f" {NODE_B} 1 stderr oh no\n")
        problem_of(await rig.get(f"{RUNS}/nope/logs/file"), 404, "E.RUN.NOT_FOUND")
        problem_of(await rig.get(f"{RUNS}/nope/logs?newest=true"), 404, "E.RUN.NOT_FOUND")


async def test_output_before_an_event_ends_there_however_it_is_read() -> None:
    async with serving() as rig:
        path = f"{RUNS}/{await talked(rig)}/logs"
        whole = (await rig.get(path)).json()["items"]
        for bound in (1, whole[2]["id"], whole[-1]["id"] + 1, 2**63):
            wanted = [line for line in whole if line["id"] < bound]
            for newest in ("false", "true"):
                seen: list[Any] = []
                cursor: str | None = ""
                while cursor is not None:
                    query = f"before={bound}&newest={newest}&limit=2&cursor={cursor}"
                    page = (await rig.get(f"{path}?{query}")).json()
                    seen += page["items"]
                    cursor = page["nextCursor"]
                assert seen == (wanted[::-1] if newest == "true" else wanted)
            file = await rig.get(f"{path}/file?before={bound}")
            assert len(file.text.splitlines()) == len(wanted)
        for wrong in ("0", "-1", "x", "1.5"):
            problem_of(await rig.get(f"{path}?before={wrong}"), 400, "E.REQUEST.INVALID")


async def test_a_page_of_output_has_a_thousand_lines() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await rig.submit()
        task = (await worker.tasks(NODE_A, NODE_B))[0]
        for _ in range(11):
            task.say(*("x" for _ in range(100)))
        path = f"{RUNS}/{run_id}/logs"
        await rig.until(f"{RUNS}/{run_id}?nodes=false", lambda run: run["lastEvent"] > 1_100)
        for more in ("?limit=5000", "", "?newest=true"):
            page = (await rig.get(path + more)).json()
            assert len(page["items"]) == 1_000
            assert page["nextCursor"]


async def test_runs_are_found_by_who_submitted_them() -> None:
    async with serving() as rig:
        own = await rig.submit()
        body = {"workflow": definition(metadata={"name": "theirs"})}
        answer = await rig.as_(Role.OPERATOR, "POST", RUNS, json=body)
        theirs = answer.json()["runId"]

        async def found(query: str, role: Role = Role.VIEWER) -> list[str]:
            answer = await rig.as_(role, "GET", f"{RUNS}?{query}")
            assert answer.status_code == 200, answer.text
            return [one["runId"] for one in answer.json()["items"]]

        admin, operator = "admin%20of%20default", "operator%20of%20default"
        assert await found("") == [theirs, own]
        assert await found(f"by={operator}") == [theirs]
        assert await found(f"by={admin}") == [own]
        assert await found(f"by={admin}&text=theirs") == []
        assert await found("by=admin") == []
        assert await found("by=") == [theirs, own]
        second = await rig.submit()
        first = (await rig.get(f"{RUNS}?by={admin}&limit=1")).json()
        assert [one["runId"] for one in first["items"]] == [second]
        assert await found(f"by={admin}&limit=1&cursor={first['nextCursor']}") == [own]
        for other in (f"trigger={admin}", f"by={operator}", f"text={admin}"):
            mixed = await rig.get(f"{RUNS}?{other}&cursor={first['nextCursor']}")
            assert problem_of(mixed, 400, "E.REQUEST.INVALID")["parameter"] == "cursor"
        long = await rig.get(f"{RUNS}?by={'x' * 257}")
        assert problem_of(long, 400, "E.REQUEST.INVALID")["parameter"] == "by"
        headers = {"authorization": f"Bearer {token_of('admin', OTHER)}"}
        foreign = await rig.get(f"{RUNS}?by={admin}", headers=headers)
        assert foreign.json()["items"] == []
