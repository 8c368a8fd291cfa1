from __future__ import annotations

import asyncio
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from astraflow.api.app import ROUTES
from astraflow.core.security.policy import Role
from tests.api.rig import LOOK_S, NODE_A, NODE_B, OTHER, TENANT, WAIT_S, problem_of, serving
from tests.api.scripted import token_of
from tests.api.test_packages import publish
from tests.scheduler.packing import pack

WORKERS = "/api/v1/workers"
SLOTS = 400
"""Of a scripted worker."""


async def test_workers_are_listed_and_shown() -> None:
    async with (
        serving() as rig,
        rig.worker("w3"),
        rig.worker("w1"),
        rig.worker("w2"),
        rig.worker("w9", "umbrella"),
    ):
        page = (await rig.get(f"{WORKERS}?limit=2")).json()
        rest = (await rig.get(f"{WORKERS}?limit=2&cursor={page['nextCursor']}")).json()
        listed = [item["workerId"] for item in page["items"] + rest["items"]]
        assert listed == ["w1", "w2", "w3"]
        assert rest["nextCursor"] is None
        shown = (await rig.get(f"{WORKERS}/w1")).json()
        listed_as = page["items"][0]
        assert {name: shown[name] for name in listed_as} == listed_as
        assert shown["lastHeartbeatAt"].endswith("Z")
        assert shown["packages"] == [{"name": "core", "version": "1.0.0", "status": "installed"}]
        assert set(listed_as) == {
            "workerId", "name", "tenant", "status", "version", "hostname", "maxParallel",
            "inflight", "packages", "labels", "lastHeartbeatAt",
        }  # fmt: skip
        problem_of(await rig.get(f"{WORKERS}/w9"), 404, "E.WORKER.NOT_FOUND")


async def test_a_worker_is_shown_with_what_it_offers_and_does() -> None:
    async with serving() as rig:
        async with rig.worker(features=("gpu",), slots=2) as worker:
            before = (await rig.get(f"{WORKERS}/w1")).json()
            assert (before["cpuPct"], before["attempts"]) == (None, [])
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            attempts = [{"task_id": first.names["task_id"], "attempt": 1}]
            metrics = {"cpu_pct": 12.5, "mem_pct": 40, "disk_pct": 99.5, "latency_ms": 2}
            worker.send("control.heartbeat", {"attempts": attempts, "metrics": metrics})
            shown = await rig.until(f"{WORKERS}/w1", lambda one: one["cpuPct"] is not None)
            numbers = [shown[name] for name in ("cpuPct", "memPct", "diskPct", "latencyMs")]
            assert numbers == [12.5, 40, 99.5, 2]
            assert (shown["runtimes"], shown["features"]) == (["python"], ["gpu"])
            assert shown["perNodeLimits"] == {}
            held = {one["nodeId"]: one for one in shown["attempts"]}
            assert held.keys() == {NODE_A, NODE_B}
            assert held[NODE_A] == {
                "runId": run_id, "taskId": first.names["task_id"], "nodeId": NODE_A,
                "nodeType": "core.echo", "attempt": 1, "acknowledged": True,
            }  # fmt: skip
            handlers = {one["nodeType"]: one for one in shown["handlers"]}
            assert handlers["core.echo"]["package"] == "core"
            assert not [one for one in handlers if not one.startswith("core.")]
            first.succeed()
            second.succeed()
            await rig.status(run_id, "succeeded")
            assert (await rig.get(f"{WORKERS}/w1")).json()["attempts"] == []
        gone = await rig.until(f"{WORKERS}/w1", lambda one: one["status"] != "online")
        assert gone["name"] == "w1"


async def test_workers_take_orders() -> None:
    orders: list[dict[str, object]] = [
        {"type": "drain"},
        {"type": "drain", "reason": "update", "deadlineMs": 5_000},
        {"type": "undrain"},
        {"type": "rebind"},
        {"type": "pkg.install", "name": "demo", "version": "1.0.0"},
        {"type": "pkg.uninstall", "name": "demo", "version": "1.0.0"},
    ]

    async with serving() as rig:
        await publish(rig, pack())
        async with rig.worker(features=("pkg.install",)) as worker:
            for body in orders:
                answer = await rig.post(f"{WORKERS}/w1/commands", json=body)
                assert answer.status_code == 202, answer.text
                assert (answer.json()["workerId"], answer.json()["type"]) == ("w1", body["type"])
            assert "reason" not in await worker.next("control.drain")
            drain = await worker.next("control.drain")
            assert (drain["reason"], drain["deadline_ms"]) == ("update", 5_000)
            told = await worker.next("biz.pkg.install")
            assert (told["name"], told["version"]) == ("demo", "1.0.0")
        audit = (await rig.get("/api/v1/audit")).json()["items"]
        done = [row["action"] for row in reversed(audit) if row["action"] != "pkg.publish"]
        assert [one for one in done if one in {body["type"] for body in orders}] == [
            body["type"] for body in orders
        ]
        missing = await rig.post(f"{WORKERS}/w2/commands", json={"type": "undrain"})
        problem_of(missing, 404, "E.WORKER.NOT_FOUND")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": "explode"},
        {"type": "drain", "deadlineMs": -1},
        {"type": "drain", "deadlineMs": "soon"},
        {"type": "drain", "surprise": 1},
        {"type": "pkg.install", "name": "core"},
        {"type": "pkg.install", "name": "", "version": "1"},
        [],
    ],
)
async def test_an_order_that_cannot_be_is_refused(body: object) -> None:
    async with serving() as rig, rig.worker():
        answer = await rig.post(f"{WORKERS}/w1/commands", json=body)
        problem_of(answer, 400, "E.REQUEST.INVALID")
        assert (await rig.get(f"{WORKERS}/w1")).json()["status"] == "online"


async def test_a_scheduler_that_serves_is_healthy_and_ready() -> None:
    async with serving() as rig:
        assert (await rig.get("/readyz")).json() == {"status": "ready"}
        assert (await rig.get("/healthz")).json() == {"status": "ok"}


async def test_a_scheduler_that_starts_is_healthy_and_not_ready() -> None:
    async with serving(is_running=False) as rig:
        assert (await rig.get("/healthz")).status_code == 200
        answer = await rig.get("/readyz")
        body = problem_of(answer, 503, "E.SCHEDULER.NOT_READY")
        assert "starting" in body["detail"]
        assert answer.headers["retry-after"] == "1"
        assert (await rig.get("/metrics")).status_code == 200
        for route in ROUTES:
            if route.path not in ("/healthz", "/readyz", "/metrics"):
                path = re.sub(r"{\w+}", "x", route.path)
                asked = await rig.client.request(route.method, path)
                if route.method == "HEAD":
                    assert asked.status_code == 503
                    continue
                told = problem_of(asked, 503, "E.SCHEDULER.NOT_READY")
                assert "starting" in told["detail"], route.action


async def test_metrics_show_the_tenants_own_samples_and_those_of_none() -> None:
    async with serving() as rig:
        rig.metrics.dispatches.add("default", "core.noop")
        rig.metrics.dispatches.add("umbrella", "core.secret")
        answer = await rig.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        families = {one.name: one for one in text_string_to_metric_families(answer.text)}
        (sample,) = families["cmd_dispatch"].samples
        assert sample.labels == {"tenant": "default", "node_type": "core.noop"}
        assert "umbrella" not in answer.text
        assert "astraflow_queue_depth" in families


async def test_a_token_for_metrics_shows_those_of_all_tenants_and_opens_no_other_route() -> None:
    async with serving() as rig:
        for tenant in (TENANT, OTHER):
            rig.metrics.dispatches.add(tenant, "core.noop")
        made = await rig.post("/api/v1/tokens", json={"role": "metrics", "ttlSeconds": None})
        assert made.status_code == 201, made.text
        headers = {"authorization": f"Bearer {made.json()['token']}"}
        text = (await rig.get("/metrics", headers=headers)).text
        for tenant in (TENANT, OTHER):
            assert f'cmd_dispatch_total{{node_type="core.noop",tenant="{tenant}"}}' in text
        for route in ROUTES:
            if route.path == "/metrics" or route.access.is_public or route.access.is_task:
                continue
            path = re.sub(r"{\w+}", "x", route.path)
            answer = await rig.client.request(route.method, path, headers=headers)
            assert answer.status_code == 403, route.action
        # A reader of one tenant, and a token for metrics that another tenant could have got: their own only.
        for role in (Role.VIEWER, Role.METRICS):
            headers = {"authorization": f"Bearer {token_of(role, OTHER)}"}
            text = (await rig.get("/metrics", headers=headers)).text
            assert f'tenant="{OTHER}"' in text
            assert f'tenant="{TENANT}"' not in text


async def test_waiting_tasks_and_free_slots_are_shown_by_tenant_and_package() -> None:
    async with serving() as rig:

        async def shown() -> tuple[float, float]:
            families = text_string_to_metric_families((await rig.get("/metrics")).text)
            found = {one.name: one.samples for one in families}
            depth, slots = found["astraflow_queue_depth"], found["astraflow_slots_free"]
            for samples in (depth, slots):
                assert [one.labels for one in samples] == [{"tenant": TENANT, "package": "core"}]
            return depth[0].value, slots[0].value

        async def until(*wanted: float) -> None:
            async with asyncio.timeout(WAIT_S):
                while True:
                    if await shown() == wanted:
                        return
                    await asyncio.sleep(LOOK_S)

        await rig.submit()  # of two tasks; without a worker its depth is what a pool is started by
        await until(2, 0)
        async with rig.worker() as worker:
            tasks = [await worker.task() for _ in range(2)]
            await until(0, SLOTS - 2)
            for task in tasks:
                task.succeed()
            await until(0, SLOTS)
        await until(0, 0)


async def test_who_am_i() -> None:
    async with serving() as rig:
        assert (await rig.get("/api/v1/me")).json() == {
            "tenant": "default",
            "subject": "admin of default",
            "role": "admin",
            "expiresAt": None,
        }


async def test_node_types_are_found_by_words() -> None:
    async with serving() as rig:
        path = "/api/v1/catalog/nodes"
        whole = (await rig.get(f"{path}?limit=200")).json()["items"]
        types = {node["type"] for node in whole}
        assert {"core.noop", "core.http", "core.python"} <= types
        core = [node for node in whole if node["type"].startswith("core.")]
        assert all(node["package"] == {"name": "core", "version": "1.0.0"} for node in core)
        found = (await rig.get(f"{path}?q=ECHO")).json()["items"]
        assert [node["type"] for node in found] == ["core.echo"]
        assert (await rig.get(f"{path}?q=nothing+like+this")).json()["items"] == []
        seen: list[str] = []
        cursor = ""
        while True:
            page = (await rig.get(f"{path}?limit=5{cursor}")).json()
            seen += [node["type"] for node in page["items"]]
            if page["nextCursor"] is None:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == [node["type"] for node in whole]


async def test_the_audit_is_read_in_pages_newest_first() -> None:
    async with serving() as rig:
        runs = [await rig.submit() for _ in range(5)]
        for run_id in runs:
            await rig.post(f"/api/v1/runs/{run_id}/cancel")
        page = (await rig.get("/api/v1/audit?limit=3")).json()
        rest = (await rig.get(f"/api/v1/audit?limit=3&cursor={page['nextCursor']}")).json()
        rows = page["items"] + rest["items"]
        assert [(one["action"], one["detail"]["subject"]) for one in rows] == [
            ("cancel", run_id) for run_id in reversed(runs)
        ]
        assert rows[0]["who"] == "admin of default"
        assert rows[0]["detail"] == {"subject": runs[-1]}


async def test_the_page_of_the_description_needs_nothing_from_elsewhere() -> None:
    async with serving() as rig:
        page = await rig.get("/api/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert "http://" not in page.text
        assert "https://" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        document = (await rig.get("/api/openapi.json")).json()
        assert document["openapi"] == "3.1.0"
        assert "/api/v1/runs" in document["paths"]


async def test_requests_are_counted_by_action_and_status() -> None:
    async with serving() as rig:
        await rig.get("/api/v1/runs/nope")
        await rig.get("/nothing")
        await rig.get("/healthz", headers={"host": "evil.test"})
        count = rig.metrics.requests.value
        assert count("GET /api/v1/runs/{runId}", "404") == 1
        assert count("none", "404") == 1
        assert count("gate", "400") == 1
