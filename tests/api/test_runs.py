from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from tests.api.rig import (
    NODE_A,
    NODE_B,
    WORKFLOW,
    Rig,
    definition,
    problem_of,
    serving,
)

RUNS = "/api/v1/runs"


async def test_a_submitted_run_is_answered_with_its_id_and_where_it_is() -> None:
    async with serving() as rig:
        answer = await rig.post(RUNS, json={"workflow": definition(), "inputs": {}})
        assert answer.status_code == 202
        body = answer.json()
        assert body["status"] == "queued"
        assert body["createdAt"].endswith("Z")
        assert answer.headers["location"] == f"{RUNS}/{body['runId']}"
        shown = (await rig.get(answer.headers["location"])).json()
        assert shown["runId"] == body["runId"]
        assert [node["nodeId"] for node in shown["nodes"]] == [NODE_A, NODE_B]


async def test_a_finished_run_shows_results_errors_and_times() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            running = await rig.until(
                f"{RUNS}/{run_id}", lambda body: body["nodes"][0]["status"] == "running"
            )
            assert running["status"] == "running"
            assert running["nodes"][0]["workerId"] == "w1"
            first.succeed({"value": {"deep": [1, 2]}})
            second.fail()
            done = await rig.status(run_id, "failed")
        assert done["finishedAt"] is not None
        assert done["nodes"][0]["result"] == {"value": {"deep": [1, 2]}}
        assert done["nodes"][1]["error"]["code"] == "E.RUNNER.FAILURE"
        assert done["artifacts"] == []
        for name in ("pendingAck", "dispatchId", "ackDeadline", "failures", "waitingFor"):
            assert name in done["nodes"][0]
        bare = (await rig.get(f"{RUNS}/{run_id}?nodes=false")).json()
        assert "nodes" not in bare
        assert "artifacts" not in bare
        assert bare["status"] == "failed"


async def test_large_results_are_left_out_of_the_run_and_are_whole_in_the_node() -> None:
    large = {"value": "x" * (16 * 1024)}

    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            (await worker.tasks(NODE_A, NODE_B))[0].succeed(large)
            path = f"{RUNS}/{run_id}/nodes/{NODE_A}"
            whole = await rig.until(path, lambda body: body["status"] == "succeeded")
            node = (await rig.get(f"{RUNS}/{run_id}")).json()["nodes"][0]
        assert node["result"] is None
        assert node["resultTruncated"] is True
        assert whole["result"] == large
        assert "resultTruncated" not in whole


async def test_results_are_left_out_when_all_of_them_together_are_too_large() -> None:
    count = 300
    ids = [f"00000000-0000-4000-8000-{place:012}" for place in range(count)]
    nodes = [{"id": one, "type": "core.noop"} for one in ids]
    result = {"value": "x" * (16 * 1024 - 64)}

    async with serving() as rig:
        async with rig.worker() as worker:
            answer = await rig.post(RUNS, json={"workflow": definition(nodes=nodes, edges=[])})
            for _ in range(count):
                (await worker.task()).succeed(result)
            shown = (await rig.status(answer.json()["runId"], "succeeded"))["nodes"]
        kept = [node for node in shown if node["result"] is not None]
        assert len(kept) == 4 * 1024 * 1024 // len(msgspec.json.encode(result))
        assert all(node["resultTruncated"] for node in shown if node["result"] is None)


async def test_a_node_tells_its_attempts_and_its_story() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            (await worker.tasks(NODE_A, NODE_B))[0].succeed()
            path = f"{RUNS}/{run_id}/nodes/{NODE_A}"
            node = await rig.until(path, lambda body: body["status"] == "succeeded")
        (attempt,) = node["attempts"]
        told = (attempt["attempt"], attempt["workerId"], attempt["status"])
        assert told == (1, "w1", "succeeded")
        assert attempt["dispatchedAt"] <= attempt["startedAt"] <= attempt["finishedAt"]
        assert [line.split(" ", 1)[1] for line in node["story"]] == [
            "attempt 1 was leased to w1 (boot 1)",
            "attempt 1 was taken by its worker",
            "succeeded with attempt 1",
        ]
        missing = await rig.get(f"{RUNS}/{run_id}/nodes/{WORKFLOW}")
        problem_of(missing, 404, "E.RUN.NODE_NOT_FOUND")


async def test_a_dispatch_that_was_not_taken_yet_says_so() -> None:
    async with serving() as rig:
        async with rig.worker(takes=False) as worker:
            run_id = await rig.submit()
            await worker.task()
            node = (await rig.get(f"{RUNS}/{run_id}")).json()["nodes"][0]
        assert (node["status"], node["pendingAck"]) == ("dispatched", True)
        assert node["dispatchId"] == f"{run_id}-0-1"
        assert node["ackDeadline"].endswith("Z")


async def test_the_definition_comes_back_byte_for_byte() -> None:
    odd = json.dumps(definition(extra={"kept": "äöü ☃"}), indent=3).encode()

    async with serving() as rig:
        body = b'{"workflow":' + odd + b"}"
        answer = await rig.post(RUNS, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 202
        shown = await rig.get(f"{RUNS}/{answer.json()['runId']}/definition")
        assert shown.content == odd


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/workflow"),
        ({"workflow": {}, "workflowId": "x"}, "/workflow"),
        ({"workflowId": 5}, "/workflowId"),
        ({"workflowId": ""}, "/workflowId"),
        ({"workflowId": "x", "version": 0}, "/version"),
        ({"workflowId": "x", "version": "1"}, "/version"),
        ({"workflow": {}, "version": 1}, "/version"),
        ({"workflowId": "x", "inputs": []}, "/inputs"),
        ({"workflowId": "x", "inputs": {"a": "\0"}}, "/inputs"),
        ({"workflowId": "x", "surprise": 1}, ""),
        ([], ""),
    ],
)
async def test_a_request_with_a_wrong_field_is_refused_with_a_pointer(
    body: object, pointer: str
) -> None:
    async with serving() as rig:
        problem = problem_of(await rig.post(RUNS, json=body), 400, "E.REQUEST.INVALID")
        assert problem["errors"][0]["pointer"] == pointer


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b'{"workflowId": "x"',
        b'{"workflowId": "\xff"}',
        b'{"workflowId": "x", "inputs": {"a": NaN}}',
        b'{"workflowId": "x", "inputs": {"a": 1e999}}',
        b'{"workflowId": "x", "inputs": {"a": "\\ud800"}}',
        b'{"workflowId": "x", "inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"workflowId": "x", "inputs": {"a": ' + b"[" * 100 + b"]" * 100 + b"}}",
        b'{"workflowId": ' + b"[" * 100_000,
    ],
    ids=["empty", "words", "cut", "latin", "nan", "infinite", "surrogate", "abyss", "deep", "open"],
)
async def test_a_body_that_is_not_json_that_we_can_hold_is_refused(body: bytes) -> None:
    async with serving() as rig:
        answer = await rig.post(RUNS, content=body, headers=JSON)
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_an_invalid_definition_is_answered_with_all_its_problems() -> None:
    nodes = [
        {"id": NODE_A, "type": "core.echo"},
        {"id": NODE_A, "type": "core.nothing"},
        {"id": "not-a-uuid", "type": "core.noop"},
    ]
    edges = [{"source": {"node": NODE_A}, "target": {"node": NODE_A}}]

    async with serving() as rig:
        answer = await rig.post(RUNS, json={"workflow": definition(nodes=nodes, edges=edges)})
        body = answer.json()
        assert answer.status_code == 422
        codes = {error["code"] for error in body["errors"]}
        assert {"E.WORKFLOW.DUPLICATE_ID", "E.WORKFLOW.BAD_ID"} <= codes
        assert all(error["pointer"].startswith("/") for error in body["errors"])
        assert len(body["errors"]) >= 3


async def test_a_body_of_another_kind_is_refused() -> None:
    async with serving() as rig:
        for kind in ("text/plain", "application/xml", "application/jsonx", ""):
            answer = await rig.post(RUNS, content=b"{}", headers={"content-type": kind})
            problem_of(answer, 415, "E.REQUEST.MEDIA_TYPE")
        latin = {"content-type": "application/json; charset=latin-1"}
        problem_of(await rig.post(RUNS, content=b"{}", headers=latin), 415, "E.REQUEST.MEDIA_TYPE")
        other = {**JSON, "content-encoding": "br"}
        problem_of(await rig.post(RUNS, content=b"{}", headers=other), 415, "E.REQUEST.MEDIA_TYPE")
        good = {"content-type": "application/json; charset=utf-8"}
        body = json.dumps({"workflow": definition()}).encode()
        assert (await rig.post(RUNS, content=body, headers=good)).status_code == 202


async def test_a_compressed_body_is_read() -> None:
    body = gzip.compress(json.dumps({"workflow": definition()}).encode())

    async with serving() as rig:
        headers = {**JSON, "content-encoding": "gzip"}
        assert (await rig.post(RUNS, content=body, headers=headers)).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b"not gzip",
        gzip.compress(b"{}")[:-4],
        gzip.compress(b"{}") + b"more",
        gzip.compress(b"{}") * 2,
    ],
    ids=["words", "cut", "rest", "twice"],
)
async def test_a_broken_compressed_body_is_refused(body: bytes) -> None:
    async with serving() as rig:
        headers = {**JSON, "content-encoding": "gzip"}
        answer = await rig.post(RUNS, content=body, headers=headers)
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_a_bomb_is_refused_when_it_has_grown_to_the_limit() -> None:
    bomb = gzip.compress(b"x" * (65 * 1024 * 1024), 1)

    async with serving() as rig:
        headers = {**JSON, "content-encoding": "gzip"}
        answer = await rig.post(RUNS, content=bomb, headers=headers)
        problem_of(answer, 413, "E.REQUEST.TOO_LARGE")


async def test_a_body_that_says_that_it_is_too_large_is_refused_unread() -> None:
    async with serving() as rig:
        head = (
            f"POST {RUNS} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer token-of-default-admin\r\n"
            "content-type: application/json\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n"
        )
        answer = await rig.raw(head.encode())
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"E.REQUEST.TOO_LARGE" in answer


async def test_a_body_without_a_length_is_counted_while_it_arrives() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * (1024 * 1024)

    async with serving() as rig:
        path = "/api/v1/workers/w1/commands"
        answer = await rig.post(path, content=parts(), headers=JSON)
        problem_of(answer, 413, "E.REQUEST.TOO_LARGE")


async def test_the_same_key_and_body_give_the_same_run() -> None:
    async with serving() as rig:
        key = {"idempotency-key": "k-1"}
        first = await rig.post(RUNS, json={"workflow": definition()}, headers=key)
        again = await rig.post(RUNS, json={"workflow": definition()}, headers=key)
        assert (first.status_code, again.status_code) == (202, 202)
        assert first.json() == again.json()
        other = await rig.post(RUNS, json={"workflow": definition(), "inputs": {}}, headers=key)
        problem_of(other, 409, "E.RUN.IDEMPOTENCY_CONFLICT")
        assert len((await rig.get(RUNS)).json()["items"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 10_000, "tab\there", "a b", "\xe4"])
async def test_a_key_that_cannot_be_one_is_refused(key: str) -> None:
    async with serving() as rig:
        headers = {"idempotency-key": key.encode("latin-1")}
        answer = await rig.post(RUNS, json={"workflow": definition()}, headers=headers)
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_a_large_body_is_told_from_another_by_its_key_too() -> None:
    def large_one(letter: str) -> dict[str, Any]:
        node = {"id": NODE_A, "type": "core.echo", "parameters": {"value": letter * 1_000_000}}
        return {"workflow": definition(nodes=[node, {**node, "id": NODE_B}])}

    large, other = large_one("x"), large_one("y")

    async with serving() as rig:
        key = {"idempotency-key": "k-2"}
        first = await rig.post(RUNS, json=large, headers=key)
        assert (await rig.post(RUNS, json=large, headers=key)).json() == first.json()
        again = await rig.post(RUNS, json=other, headers=key)
        problem_of(again, 409, "E.RUN.IDEMPOTENCY_CONFLICT")


async def test_a_saved_workflow_is_run_by_its_id_and_version() -> None:
    async with serving() as rig:
        await rig.post("/api/v1/workflows", json=definition())
        answer = await rig.post(RUNS, json={"workflowId": WORKFLOW, "version": 1})
        assert answer.status_code == 202
        (item,) = (await rig.get(RUNS)).json()["items"]
        assert (item["workflowId"], item["workflowVersion"]) == (WORKFLOW, 1)
        missing = await rig.post(RUNS, json={"workflowId": NODE_A})
        problem_of(missing, 404, "E.WORKFLOW.NOT_FOUND")


async def test_cancel_of_unknown_finished_and_cancelled_runs() -> None:
    async with serving() as rig:
        problem_of(await rig.post(f"{RUNS}/nope/cancel"), 404, "E.RUN.NOT_FOUND")
        async with rig.worker() as worker:
            run_id = await rig.submit()
            tasks = await worker.tasks(NODE_A, NODE_B)
            first = await rig.post(f"{RUNS}/{run_id}/cancel")
            assert first.status_code == 200
            assert (first.json()["status"], first.json()["cancelRequested"]) == ("running", True)
            again = await rig.post(f"{RUNS}/{run_id}/cancel")
            assert again.json()["cancelRequested"] is True
            for task in tasks:
                task.cancelled()
            await rig.status(run_id, "cancelled")
            late = await rig.post(f"{RUNS}/{run_id}/cancel")
            assert (late.status_code, late.json()["status"]) == (200, "cancelled")
            done = await rig.submit()
            for task in await worker.tasks(NODE_A, NODE_B):
                task.succeed()
            await rig.status(done, "succeeded")
        problem = problem_of(await rig.post(f"{RUNS}/{done}/cancel"), 409, "E.RUN.TERMINAL")
        assert problem["state"] == "succeeded"


@pytest.mark.parametrize("prefix", ["/api/v1/runs", "/api/v1/scheduler/runs"])
async def test_rebind_answers_on_its_old_path_too(prefix: str) -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        assert (await rig.post(f"{prefix}/{run_id}/rebind")).status_code == 202
        answer = await rig.post(f"{prefix}/{run_id}/rebind", json={"running": "restart"})
        assert answer.json() == {"runId": run_id, "running": "restart"}
        audit = (await rig.get("/api/v1/audit")).json()["items"]
        assert [(one["action"], one["detail"]["subject"]) for one in audit] == [
            ("rebind", run_id)
        ] * 2
        problem_of(await rig.post(f"{prefix}/nope/rebind"), 404, "E.RUN.NOT_FOUND")
        bad = await rig.post(f"{prefix}/{run_id}/rebind", json={"running": "burn"})
        problem_of(bad, 400, "E.REQUEST.INVALID")


async def test_lists_are_pages_newest_first() -> None:
    async with serving() as rig:
        made = [await rig.submit() for _ in range(5)]
        seen: list[str] = []
        cursor = ""
        while True:
            page = (await rig.get(f"{RUNS}?limit=2{cursor}")).json()
            seen += [item["runId"] for item in page["items"]]
            if page["nextCursor"] is None:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == made[::-1]
        assert "nodes" not in page["items"][0]
        for run_id in made[1:]:
            await rig.post(f"{RUNS}/{run_id}/cancel")
        cancelled = (await rig.get(f"{RUNS}?status=cancelled")).json()["items"]
        assert [item["runId"] for item in cancelled] == made[:0:-1]
        assert (await rig.get(f"{RUNS}?workflowId={NODE_A}")).json()["items"] == []


@pytest.mark.parametrize("query", ["limit=-1", "limit=0", "limit=x", "limit=", "limit=1.5", "limit=%2B1",
                                   "limit=000", "status=odd", "status=null", "limit=1&limit=2", "nodes=maybe",
                                   "nodes=null", "%ff=1", "workflowId=a%00b"])  # fmt: skip
async def test_a_parameter_that_cannot_be_is_refused(query: str) -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        path = f"{RUNS}/{run_id}" if query.startswith("nodes") else RUNS
        problem_of(await rig.get(f"{path}?{query}"), 400, "E.REQUEST.INVALID")


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("statsu=failed", "did you mean status?"),
        ("Limit=5", "did you mean limit?"),
        (
            "colour=red",
            "known are: limit, cursor, status, workflowId, trigger, by, text, since, until",
        ),
    ],
)
async def test_an_unknown_parameter_is_refused_with_the_name_that_was_meant(
    query: str, hint: str
) -> None:
    async with serving() as rig:
        problem = problem_of(await rig.get(f"{RUNS}?{query}"), 400, "E.REQUEST.INVALID")
        assert problem["parameter"] == query.partition("=")[0]
        assert problem["detail"].endswith(hint)


async def test_a_wrong_parameter_is_named() -> None:
    async with serving() as rig:
        for query, name in (("limit=x", "limit"), ("status=odd", "status"), ("cursor=x", "cursor")):
            problem = problem_of(await rig.get(f"{RUNS}?{query}"), 400, "E.REQUEST.INVALID")
            assert problem["parameter"] == name
            assert name in problem["detail"]


async def test_a_limit_beyond_the_maximum_is_the_maximum() -> None:
    async with serving() as rig:
        for _ in range(3):
            await rig.submit()
        for limit in ("201", "1000000000", "9" * 1_000):
            page = (await rig.get(f"{RUNS}?limit={limit}")).json()
            assert len(page["items"]) == 3


async def test_a_cursor_that_was_forged_or_is_another_tenants_is_refused() -> None:
    async with serving() as rig:
        for _ in range(3):
            await rig.submit()
        cursor = (await rig.get(f"{RUNS}?limit=1")).json()["nextCursor"]
        changed = cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB")
        for bad in (changed, "x", "A" * 600, "%00", "Ä"):
            answer = await rig.get(RUNS, params={"cursor": bad})
            problem_of(answer, 400, "E.REQUEST.INVALID")
        other = {"authorization": "Bearer token-of-umbrella-admin"}
        answer = await rig.get(f"{RUNS}?cursor={cursor}", headers=other)
        problem_of(answer, 400, "E.REQUEST.INVALID")
        elsewhere = await rig.get(f"/api/v1/workflows?cursor={cursor}")
        problem_of(elsewhere, 400, "E.REQUEST.INVALID")


async def test_logs_are_pages_of_what_nodes_said() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            path = f"{RUNS}/{run_id}/logs"
            for task, texts in ((first, ["one", "two", "three"]), (second, ["other"])):
                task.say(*texts)
                await rig.until(path, partial(ends_with, texts[-1]))
            first.say("four")
            whole = await rig.until(path, partial(ends_with, "four"))
        assert said(whole) == ["one", "two", "three", "other", "four"]
        assert whole["nextCursor"] is None
        assert whole["items"][0]["channel"] == "stdout"
        mine = (await rig.get(f"{path}?nodeId={NODE_B}")).json()
        assert said(mine) == ["other"]
        seen, cursor = [], ""
        for _ in range(3):
            page = (await rig.get(f"{path}?limit=2{cursor}")).json()
            seen += said(page)
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == ["one", "two", "three", "other", "four"]
        assert rig.followers == 0


async def test_metrics_and_levels_of_nodes_reach_events_nodes_and_logs() -> None:
    levels = ["debug", "info", "WARN", "error", "loud", None]
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            chunks = [
                {"channel": "log", "index": index, "text": str(level)}
                | ({} if level is None else {"metadata": {"level": level, "line": index}})
                for index, level in enumerate(levels)
            ]
            names = {"metrics": {"loss": 0.5, "rows": 3}}
            worker.tell("biz.exec.feedback", {**first.names, "chunks": chunks, **names})
            first.say(metrics={"loss": 0.25})
            first.succeed(metrics={"rows": 4})
            second.succeed()
            await rig.status(run_id, "succeeded")
        node = (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_A}")).json()
        assert node["metrics"] == {"loss": 0.25, "rows": 4.0}
        assert "metrics" not in (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_B}")).json()
        events = [
            json.loads(line[6:])
            for line in (await rig.get(f"/api/v1/events?runId={run_id}")).text.splitlines()
            if line.startswith("data: ")
        ]
        told = [one["data"] for one in events if one["type"] == "run.metrics"]
        assert [one["metrics"] for one in told] == [
            {"loss": 0.5, "rows": 3.0}, {"loss": 0.25}, {"rows": 4.0},
        ]  # fmt: skip
        assert {(one["nodeId"], one["attempt"]) for one in told} == {(NODE_A, 1)}
        pieces = [one["data"] for one in events if one["type"] == "node.result.delta"]
        assert [one.get("metadata", {}).get("level") for one in pieces] == levels
        path = f"{RUNS}/{run_id}/logs"
        wanted: dict[str, list[str | None]] = {
            "debug": levels,
            "info": levels[1:],
            "warning": levels[2:4],
            "error": ["error"],
        }
        for level, shown in wanted.items():
            page = (await rig.get(f"{path}?level={level}")).json()
            assert said(page) == [str(one) for one in shown], level
        page = (await rig.get(f"{path}?level=info&limit=2")).json()
        rest = (await rig.get(f"{path}?level=info&limit=2&cursor={page['nextCursor']}")).json()
        assert said(page) + said(rest) == ["info", "WARN", "error", "loud"]
        problem_of(await rig.get(f"{path}?level=loud"), 400, "E.REQUEST.INVALID")


def said(page: dict[str, Any]) -> list[str]:
    return [line["text"] for line in page["items"]]


def ends_with(text: str, page: dict[str, Any]) -> bool:
    return said(page)[-1:] == [text]


async def test_a_failed_run_in_a_list_says_why() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            for task in await worker.tasks(NODE_A, NODE_B):
                task.fail("it broke")
            await rig.status(run_id, "failed")
        (item,) = (await rig.get(RUNS)).json()["items"]
        assert item["error"]["code"] == "E.RUNNER.FAILURE"
        assert item["finishedAt"] is not None


async def test_artifacts_of_a_run_are_a_list() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        answer = await rig.get(f"{RUNS}/{run_id}/artifacts")
        assert answer.json() == {"items": [], "nextCursor": None}


def refuse(rig: Rig, error: Exception) -> None:
    """Let every submission fail with this."""

    async def submit(submission: object) -> None:
        raise error

    rig.scheduler.runs.submit = submit


async def test_what_cannot_be_done_now_says_when_to_come_back() -> None:
    async with serving() as rig:
        refuse(rig, errors.Unavailable(errors.OVERLOADED, "too much is waiting"))
        answer = await rig.post(RUNS, json={"workflow": definition()})
        problem_of(answer, 503, "E.OVERLOADED")
        assert answer.headers["retry-after"] == "1"
        detail = {"retryAfterSeconds": 30}
        refuse(rig, errors.Unavailable(errors.OVERLOADED, "wait", detail=detail))
        answer = await rig.post(RUNS, json={"workflow": definition()})
        assert answer.headers["retry-after"] == "30"


async def test_a_bug_is_answered_without_a_word_about_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as rig:
        refuse(rig, RuntimeError("the password is hunter2"))
        answer = await rig.post(RUNS, json={"workflow": definition()})
        problem = problem_of(answer, 500, "E.INTERNAL")
        assert "hunter2" not in answer.text
        assert problem["requestId"] == answer.headers["x-request-id"]
    assert "hunter2" in caplog.text


async def test_the_example_of_the_older_documents_works_as_written() -> None:
    from tests.conftest import ROOT

    body = (ROOT / "docs/examples/run-request.json").read_bytes()

    async with serving() as rig:
        answer = await rig.post("/api/v1/runs", content=body, headers=JSON)
        assert answer.status_code == 202, answer.text
