"""The API with the real scheduler and real stores behind it; no worker is there, so runs wait and say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings
from astraflow.core.engine.commands import KeepAudit
from astraflow.store.store import Retention
from tests.api.rig import (
    NODE_A,
    NODE_B,
    WORKFLOW,
    Rig,
    definition,
    problem_of,
    serving,
)
from tests.api.test_events import following
from tests.scheduler.packing import pack

RUNS = "/api/v1/runs"


@pytest.fixture(params=["memory", "sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'astra.db'}"


async def test_a_run_is_made_shown_listed_and_cancelled(store_url: str) -> None:
    async with serving(store_url) as rig:
        body = {"workflow": definition(), "inputs": {}}
        key = {"idempotency-key": "once"}
        made = await rig.post(RUNS, json=body, headers=key)
        assert made.status_code == 202
        again = await rig.post(RUNS, json=body, headers=key)
        for name in ("runId", "status"):
            assert again.json()[name] == made.json()[name]
        other = await rig.post(RUNS, json={"workflow": definition()}, headers=key)
        problem_of(other, 409, "E.RUN.IDEMPOTENCY_CONFLICT")
        run_id = made.json()["runId"]
        shown = (await rig.get(f"{RUNS}/{run_id}")).json()
        assert shown["status"] in ("queued", "running")
        assert [node["attempt"] for node in shown["nodes"]] == [0, 0]
        (item,) = (await rig.get(RUNS)).json()["items"]
        assert (item["runId"], item["createdAt"]) == (run_id, shown["createdAt"])
        given = (await rig.get(f"{RUNS}/{run_id}/definition")).content
        assert json.loads(given) == definition()
        gone = (await rig.post(f"{RUNS}/{run_id}/cancel")).json()
        assert gone["cancelRequested"] is True
        async with following(rig, f"?runId={run_id}") as stream:
            events = await stream.all()
        assert [int(event["id"]) for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["data"]["data"]["status"] == "cancelled"
        again = await rig.post(f"{RUNS}/{run_id}/cancel")
        assert (again.status_code, again.json()["status"]) == (200, "cancelled")
        last = events[-1]["id"]
        end = await rig.get(f"/api/v1/events?runId={run_id}", headers={"last-event-id": last})
        assert end.status_code == 204
        node = (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_A}")).json()
        assert node["status"] == "cancelled"
        assert any("cancel of the run was requested" in line for line in node["story"])
        assert (await rig.get(f"{RUNS}/{run_id}/logs")).json()["items"] == []


NODE = {"id": NODE_A, "type": "core.echo", "parameters": {"value": 1}}
HTTP = {"id": NODE_B, "type": "core.http", "parameters": {"url": "http://127.0.0.1"}}
WRONG: list[tuple[dict[str, Any], str]] = [
    (definition(nodes=[{**HTTP, "parameters": {"url": 5}}]), "/nodes/0/parameters/url"),
    (definition(nodes=[{**HTTP, "parameters": {}}]), "/nodes/0/parameters/url"),
    (
        definition(nodes=[{**NODE, "schema": {"parameters": {"type": 5}}}]),
        "/nodes/0/schema/parameters/type",
    ),
    (
        definition(inputs={"n": {"schema": {"type": "integer"}, "default": "x"}}),
        "/inputs/n/default",
    ),
    (
        definition(
            nodes=[NODE, HTTP],
            edges=[
                {
                    "source": {"node": NODE_A, "port": "done"},
                    "target": {"node": NODE_B, "port": "url"},
                }
            ],
        ),
        "/edges/0",
    ),
]


@pytest.mark.parametrize(("document", "pointer"), WRONG)
async def test_what_a_schema_refuses_is_refused_alike_by_validate_save_and_submit(
    document: dict[str, Any], pointer: str
) -> None:
    async with serving("memory://") as rig:
        answers = [
            await rig.post("/api/v1/workflows/validate", json=document),
            await rig.post("/api/v1/workflows", json=document),
            await rig.post(RUNS, json={"workflow": document}),
        ]
        listed = [problem_of(one, 422, "E.WORKFLOW.INVALID")["errors"] for one in answers]
        assert [one["pointer"] for one in listed[0]] == [pointer]
        assert listed[0] == listed[1] == listed[2]


async def test_a_run_takes_the_inputs_that_its_workflow_declares() -> None:
    inputs = {
        "city": {"schema": {"type": "string"}, "required": True},
        "days": {"schema": {"type": "integer", "minimum": 1}, "default": 3},
    }
    document = definition(inputs=inputs, outputs={"all": {"source": {"node": NODE_A}}})
    async with serving("memory://") as rig:
        refused = await rig.post(
            RUNS, json={"workflow": document, "inputs": {"days": 0, "dayz": 1}}
        )
        errors = problem_of(refused, 422, "E.WORKFLOW.INPUT")["errors"]
        assert [one["pointer"] for one in errors] == [
            "/inputs/dayz",
            "/inputs/city",
            "/inputs/days",
        ]
        made = await rig.post(RUNS, json={"workflow": document, "inputs": {"city": "Oslo"}})
        assert made.status_code == 202, made.text
        for query in ("", "?nodes=false"):
            shown = (await rig.get(f"{RUNS}/{made.json()['runId']}{query}")).json()
            assert shown["inputs"] == {"city": "Oslo", "days": 3}
            assert "outputs" not in shown


async def test_problems_of_all_kinds_are_told_together() -> None:
    broken = definition(nodes=[{**NODE, "type": "no.such"}, {**NODE, "id": NODE_B, "when": "a"}])

    async with serving("memory://") as rig:
        answers = [
            await rig.post("/api/v1/workflows/validate", json=broken),
            await rig.post("/api/v1/workflows", json=broken),
            await rig.post(RUNS, json={"workflow": broken}),
        ]
        listed = [problem_of(one, 422, "E.WORKFLOW.INVALID")["errors"] for one in answers]
        assert {one["pointer"] for one in listed[0]} == {"/nodes/0/type", "/nodes/1/when"}
        assert listed[0] == listed[1] == listed[2]


async def test_work_in_progress_is_saved_as_a_draft() -> None:
    broken = definition(nodes=[{**NODE, "type": "no.such"}])

    async with serving("memory://") as rig:
        made = await rig.post("/api/v1/workflows?draft=true", json=broken)
        assert (made.status_code, made.json()) == (201, broken)
        path = f"/api/v1/workflows/{WORKFLOW}"
        assert made.headers["location"] == f"{path}/draft"
        problem_of(await rig.client.put(path, json=broken), 404, "E.WORKFLOW.NOT_FOUND")
        saved = await rig.client.put(f"{path}?draft=true", json=broken)
        assert (saved.status_code, saved.headers["etag"]) == (200, '"2"')
        run = await rig.post(RUNS, json={"workflowId": WORKFLOW})
        assert "draft" in problem_of(run, 404, "E.WORKFLOW.NOT_FOUND")["detail"]


async def test_inputs_that_the_workflow_does_not_declare_are_refused() -> None:
    async with serving("memory://") as rig:
        body = {"workflow": definition(), "inputs": {"name": "Ada", "a/b~": 1}}
        refused = problem_of(await rig.post(RUNS, json=body), 422, "E.WORKFLOW.INPUT")
        pointers = [one["pointer"] for one in refused["errors"]]
        assert pointers == ["/inputs/name", "/inputs/a~1b~0"]
        assert (await rig.get(RUNS)).json()["items"] == []


async def test_a_run_that_waits_says_for_what(store_url: str) -> None:
    async with serving(store_url) as rig:
        made = await rig.post(RUNS, json={"workflow": definition()})
        run_id = made.json()["runId"]
        async with following(rig, f"?runId={run_id}") as stream:
            while (event := await stream.next()) is not None:
                if event["data"]["data"].get("waitingFor"):
                    break
        assert event is not None
        assert event["data"]["data"]["waitingFor"]["kind"] in ("worker", "package")
        node = (await rig.get(f"{RUNS}/{run_id}")).json()["nodes"][0]
        assert node["status"] == "waiting"


async def test_what_is_not_there_is_not_found(store_url: str) -> None:
    async with serving(store_url) as rig:
        for path in ("", "/definition", "/logs", f"/nodes/{NODE_A}", "/artifacts"):
            problem_of(await rig.get(f"{RUNS}/nope{path}"), 404, "E.RUN.NOT_FOUND")
        for path in ("/cancel", "/rebind"):
            problem_of(await rig.post(f"{RUNS}/nope{path}"), 404, "E.RUN.NOT_FOUND")
        problem_of(await rig.get("/api/v1/events?runId=nope"), 404, "E.RUN.NOT_FOUND")
        problem_of(await rig.get("/api/v1/workers/nope"), 404, "E.WORKER.NOT_FOUND")
        order = await rig.post("/api/v1/workers/nope/commands", json={"type": "undrain"})
        problem_of(order, 404, "E.WORKER.NOT_FOUND")
        problem_of(await rig.get(f"/api/v1/workflows/{WORKFLOW}"), 404, "E.WORKFLOW.NOT_FOUND")


async def test_workflows_are_kept_by_version(store_url: str) -> None:
    async with serving(store_url) as rig:
        path = f"/api/v1/workflows/{WORKFLOW}"
        assert (await rig.post("/api/v1/workflows", json=definition())).status_code == 201
        again = await rig.post("/api/v1/workflows", json=definition())
        problem_of(again, 409, "E.WORKFLOW.CONFLICT")
        saved = await rig.client.put(path, json=definition(tags=["b"]), headers={"if-match": '"1"'})
        assert saved.headers["etag"] == '"2"'
        late = await rig.client.put(path, json=definition(), headers={"if-match": '"1"'})
        problem_of(late, 409, "E.WORKFLOW.CONFLICT")
        assert (await rig.get(f"{path}?version=1")).json() == definition()
        made = await rig.post(RUNS, json={"workflowId": WORKFLOW})
        assert made.status_code == 202
        (item,) = (await rig.get(RUNS)).json()["items"]
        assert item["workflowVersion"] == 2
        assert (await rig.client.delete(path)).status_code == 204
        problem_of(await rig.get(path), 404, "E.WORKFLOW.NOT_FOUND")


async def test_an_invalid_definition_lists_all_its_problems(store_url: str) -> None:
    nodes = [{"id": NODE_A, "type": "no.such"}, {"id": NODE_A, "type": "core.noop"}]

    async with serving(store_url) as rig:
        for path, body in (
            (RUNS, {"workflow": definition(nodes=nodes)}),
            ("/api/v1/workflows/validate", definition(nodes=nodes)),
        ):
            answer = await rig.post(path, json=body)
            assert answer.status_code == 422
            assert len(answer.json()["errors"]) == 2
        assert (await rig.get(RUNS)).json()["items"] == []


async def test_the_tenants_stream_tells_of_runs(store_url: str) -> None:
    async with serving(store_url) as rig:
        async with following(rig, "") as stream:
            await stream.comment(1)
            made = await rig.post(RUNS, json={"workflow": definition()})
            event = await stream.next()
        assert event is not None
        assert event["event"] == "run.status"
        assert event["data"]["data"]["runId"] == made.json()["runId"]
        ahead = await rig.get("/api/v1/events?lastEventId=999")
        problem_of(ahead, 400, "E.REQUEST.INVALID")


async def test_a_tenants_stream_that_goes_on_behind_retention_says_what_is_missing(
    store_url: str,
) -> None:
    async with serving(store_url) as rig:
        for _ in range(5):
            await rig.submit()
        last = (await rig.scheduler.events.heads("default")).home
        now = rig.scheduler.serving
        old = Retention(tenant_events_s=0.0)
        far = SystemClock().wall_ms() + 1_000
        await rig.scheduler.audits._store.sweep(now.claim, old, far)
        async with following(rig, "?lastEventId=1") as stream:
            reset, event = await stream.next(), await stream.next()
        assert reset is not None
        assert reset["event"] == "stream.reset"
        assert "id" not in reset, "it must not move the place from which a reader goes on"
        gone = {"from": 2, "to": last - 1, "reason": "retention"}
        assert reset["data"]["data"] == gone
        assert event is not None
        assert event["id"] == str(last)
        async with following(rig, f"?lastEventId={last - 1}") as stream:
            told = await stream.next()
        assert told is not None
        assert told["event"] == "run.status", "nothing is missing"


async def test_a_key_whose_run_was_removed_is_still_used_and_says_so(store_url: str) -> None:
    async with serving(store_url) as rig:
        keyed = {"Idempotency-Key": "once"}
        body = {"workflow": definition()}
        made = (await rig.post(RUNS, json=body, headers=keyed)).json()["runId"]
        assert (await rig.post(f"{RUNS}/{made}/cancel")).status_code in (200, 202)
        now = rig.scheduler.serving
        far = SystemClock().wall_ms() + 1_000
        swept = await rig.scheduler.audits._store.sweep(now.claim, Retention(finished_runs=0), far)
        assert swept.runs == 1
        again = await rig.post(RUNS, json=body, headers=keyed)
        assert problem_of(again, 410, "E.RUN.REMOVED")["runId"] == made
        other = await rig.post(RUNS, json={"workflow": definition(nodes=[])}, headers=keyed)
        assert other.status_code in (409, 422)
        assert (await rig.get(RUNS)).json()["items"] == []


async def test_a_store_that_has_reached_its_bound_takes_no_new_run_and_says_so(
    store_url: str,
) -> None:
    async with serving(store_url) as rig:
        kept = await rig.submit()
        now = rig.scheduler.serving
        now._parts = msgspec.structs.replace(now._parts, retention=Retention(max_bytes=1))
        await now.sweep()
        refused = await rig.post(RUNS, json={"workflow": definition()})
        problem_of(refused, 507, "E.STORE.FULL")
        saved = await rig.post("/api/v1/workflows", json=definition())
        problem_of(saved, 507, "E.STORE.FULL")
        assert (await rig.get(f"{RUNS}/{kept}")).status_code == 200
        now._parts = msgspec.structs.replace(now._parts, retention=Retention())
        await now.sweep()
        await rig.submit()


async def test_a_name_is_found_as_it_is_written_and_in_another_case(store_url: str) -> None:
    async with serving(store_url) as rig:
        name = "Über-Straße ΑΒΓ 100%_!"
        saved = definition(metadata={"name": name})
        assert (await rig.post("/api/v1/workflows", json=saved)).status_code == 201
        assert (await rig.post(RUNS, json={"workflow": saved})).status_code == 202
        for text in (name, "Über", "ΑΒΓ", "STRA", "straße", "0%_!"):
            for path in ("/api/v1/workflows", RUNS):
                found = (await rig.client.get(path, params={"text": text})).json()["items"]
                assert len(found) == 1, (path, text)
        for text in ("0__!", "%%", "U_er"):
            for path in ("/api/v1/workflows", RUNS):
                found = (await rig.client.get(path, params={"text": text})).json()["items"]
                assert found == [], (path, text)


async def test_a_key_that_memory_has_no_room_for_is_still_one_run(store_url: str) -> None:
    """P3: what the engine had to forget is found in the store."""

    async with serving(store_url) as rig:

        async def submit(key: str, name: str = "one") -> Any:
            body = {"workflow": definition(metadata={"name": name})}
            return await rig.post(RUNS, json=body, headers={"idempotency-key": key})

        rig.scheduler.serving.engine.view.submissions._max_bytes = 1_500
        made = [(await submit(f"key-{number}")).json()["runId"] for number in range(6)]
        assert len(set(made)) == 6
        assert len(rig.scheduler.serving.engine.view.submissions) < 6
        for number, run_id in enumerate(made):
            assert (await submit(f"key-{number}")).json()["runId"] == run_id
        problem_of(await submit("key-0", "another"), 409, "E.RUN.IDEMPOTENCY_CONFLICT")


async def test_old_versions_of_a_workflow_go_and_their_runs_stay(store_url: str) -> None:
    async with serving(store_url=store_url, retention_workflow_versions=2) as rig:
        document = definition()
        path = f"/api/v1/workflows/{document['id']}"
        assert (await rig.post("/api/v1/workflows", json=document)).status_code == 201
        made = await rig.post(RUNS, json={"workflowId": document["id"], "version": 1})
        run_id = made.json()["runId"]
        for _ in range(2):
            assert (await rig.client.put(path, json=document)).status_code == 200
        problem_of(await rig.get(f"{path}?version=1"), 404, "E.WORKFLOW.NOT_FOUND")
        for version in (2, 3):
            assert (await rig.get(f"{path}?version={version}")).status_code == 200
        assert (await rig.get(f"{RUNS}/{run_id}")).status_code == 200
        assert (await rig.get(f"{RUNS}/{run_id}/definition")).json()["id"] == document["id"]


async def test_audits_take_no_room_of_runs(store_url: str) -> None:
    """Their share is a tenth: what only age removed made every ended run go, and then refused every new one."""

    async with serving(store_url) as rig:
        ended = await rig.submit()
        assert (await rig.post(f"{RUNS}/{ended}/cancel")).status_code in (200, 202)
        now = rig.scheduler.serving
        small = SchedulerSettings(retention_bytes=4 * 1024**2).retention()
        now._parts = msgspec.structs.replace(now._parts, retention=small)
        writer = now.writer
        for number in range(12_000):
            text = f"{number:0250}"
            audit = KeepAudit(tenant="default", by=text, what="try", corr=text)
            rig.scheduler._current.execute(audit)
        await writer.barrier()
        await now.sweep()
        assert (await rig.get(f"{RUNS}/{ended}")).status_code == 200
        await rig.submit()


async def test_a_command_that_a_role_may_not_give_is_audited(store_url: str) -> None:
    async with serving(store_url) as rig:
        for _ in range(30):
            problem_of(await rig.as_("viewer", "POST", RUNS, json={}), 403, "E.AUTH.FORBIDDEN")
        problem_of(await rig.as_("worker", "GET", RUNS), 403, "E.AUTH.FORBIDDEN")
        await rig.scheduler.serving.writer.barrier()
        rows = (await rig.get("/api/v1/audit")).json()["items"]
        said = [(row["who"], row["action"], row["code"]) for row in rows]
        assert said == [("viewer of default", f"POST {RUNS}", "E.AUTH.FORBIDDEN")] * 10


async def test_packages_are_there_after_a_restart_and_runs_keep_their_version(
    tmp_path: Path,
) -> None:
    """A version is chosen when a run is accepted; what is published or yanked later changes nothing for it."""
    url = f"sqlite:///{tmp_path / 'astra.db'}"
    node = {"id": NODE_A, "type": "demo.say", "package": {"name": "demo"}, "parameters": {}}
    body = {"workflow": definition(nodes=[node])}
    archives = {version: pack(version) for version in ("1.0.0", "2.0.0")}
    packages = "/api/v1/packages"

    async def version_of(rig: Rig, run_id: str) -> str:
        row = await rig.scheduler.audits._store.find_run("default", run_id)
        plan = await rig.scheduler.pins._plans.find(row.plan_id)
        version: str = plan.nodes[0].package_version
        return version

    zipped = {"content-type": "application/zip"}
    async with serving(url, folder=tmp_path) as rig:
        problem_of(await rig.post(RUNS, json=body), 422, "E.WORKFLOW.INVALID")
        await rig.post(packages, content=archives["1.0.0"], headers=zipped)
        first = (await rig.post(RUNS, json=body)).json()["runId"]
        await rig.post(packages, content=archives["2.0.0"], headers=zipped)
        second = (await rig.post(RUNS, json=body)).json()["runId"]
        await rig.post(f"{packages}/demo/1.0.0/yank", json={"reason": "old"})
    async with serving(url, folder=tmp_path) as rig:
        assert await version_of(rig, first) == "1.0.0"
        assert await version_of(rig, second) == "2.0.0"
        assert (await rig.get(f"{RUNS}/{first}")).json()["status"] != "failed"
        shown = (await rig.get(f"{packages}/demo/1.0.0")).json()
        assert shown["yankedReason"] == "old"
        fetched = await rig.get(f"{packages}/demo/1.0.0/archive")
        assert fetched.content == archives["1.0.0"]
        audit = (await rig.get("/api/v1/audit")).json()["items"]
        assert [one["action"] for one in audit] == ["pkg.yank", "pkg.publish", "pkg.publish"]
