"""Tenants over HTTP and on live connections, on real sockets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.security.policy import Role
from tests.api.rig import OTHER, WAIT_S, Rig, definition, problem_of, serving
from tests.api.scripted import token_of
from tests.api.test_events import following
from tests.api.test_tokens import bearer, create
from tests.rawsocket import RawSocket, frame, hello

TENANTS = "/api/v1/tenants"
ADMIN = bearer(token_of(Role.ADMIN, OTHER))


async def make_tenant(rig: Rig, tenant: str = OTHER, **quotas: Any) -> dict[str, Any]:
    answer = await rig.post(TENANTS, json={"tenant": tenant, **quotas})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def submit(rig: Rig, **headers: str) -> Any:
    return await rig.post("/api/v1/runs", json={"workflow": definition()}, headers=headers or ADMIN)


async def test_a_tenant_is_made_listed_shown_and_changed() -> None:
    async with serving() as rig:
        made = await make_tenant(rig, "acme", weight=2, maxRuns=5)
        assert (made["weight"], made["maxRuns"], made["maxTasks"]) == (2.0, 5, None)
        assert made["use"] == dict.fromkeys(made["use"], 0)
        problem_of(await rig.post(TENANTS, json={"tenant": "acme"}), 409, "E.TENANT.CONFLICT")
        problem_of(await rig.post(TENANTS, json={"tenant": "default"}), 409, "E.TENANT.CONFLICT")
        first = (await rig.get(f"{TENANTS}?limit=1")).json()
        rest = (await rig.get(f"{TENANTS}?cursor={first['nextCursor']}")).json()
        names = [one["tenant"] for one in first["items"] + rest["items"]]
        assert names == ["acme", "default"]
        body = {"maxRuns": None, "requestsPerSecond": 9.5}
        changed = (await rig.client.patch(f"{TENANTS}/acme", json=body)).json()
        assert (changed["weight"], changed["maxRuns"]) == (2.0, None)
        assert (await rig.get(f"{TENANTS}/acme")).json() == changed
        site = await rig.client.patch(f"{TENANTS}/default", json={"weight": 3})
        assert site.json()["weight"] == 3.0
        resumed = await rig.post(f"{TENANTS}/default/resume")
        assert (resumed.status_code, resumed.json()["tenant"]) == (200, "default")
        problem_of(await rig.post(f"{TENANTS}/default/suspend"), 409, "E.TENANT.CONFLICT")
        problem_of(await rig.get(f"{TENANTS}/nobody"), 404, "E.TENANT.NOT_FOUND")
        audited = (await rig.get("/api/v1/audit")).json()["items"]
        told = [(one["action"], one["detail"].get("subject")) for one in audited]
        assert ("tenant.configure", "acme") in told


async def test_only_an_admin_of_the_site_manages_tenants() -> None:
    async with serving() as rig:
        await make_tenant(rig)
        for answer in (
            await rig.get(TENANTS, headers=ADMIN),
            await rig.post(TENANTS, json={"tenant": "mine"}, headers=ADMIN),
            await rig.client.patch(f"{TENANTS}/{OTHER}", json={"weight": 9}, headers=ADMIN),
            await rig.post(f"{TENANTS}/{OTHER}/resume", headers=ADMIN),
        ):
            problem_of(answer, 403, "E.AUTH.FORBIDDEN")
        foreign = await rig.get(f"{TENANTS}/default", headers=ADMIN)
        problem_of(foreign, 404, "E.TENANT.NOT_FOUND")
        own = await rig.get(f"{TENANTS}/{OTHER}", headers=ADMIN)
        assert own.json()["tenant"] == OTHER


@pytest.mark.parametrize(
    "body",
    [
        {"weight": 0},
        {"weight": -1},
        {"weight": None},
        {"weight": 1e9},
        {"maxRuns": -1},
        {"maxRuns": 2**63},
        {"maxRuns": 1.5},
        {"drainMemPct": 101},
        {"requestsPerSecond": 0},
        {"tenant": "Acme"},
        {"tenant": ""},
        {"tenant": "acme\n"},
        {"colour": "red"},
    ],
)
async def test_what_cannot_be_a_tenant_is_refused(body: dict[str, Any]) -> None:
    async with serving() as rig:
        answer = await rig.post(TENANTS, json={"tenant": "acme", **body})
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_a_suspended_tenant_is_out_within_a_second_and_goes_on_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with serving(url, folder=tmp_path) as rig:
        await make_tenant(rig)
        stored = await create(rig, tenant=OTHER, role="worker")
        async with (
            rig.worker("w1", OTHER, token=stored["token"]) as worker,
            following(rig, "", **ADMIN) as stream,
        ):
            await stream.comment(1)
            run_id = (await submit(rig)).json()["runId"]
            await worker.task()
            suspended = await rig.post(f"{TENANTS}/{OTHER}/suspend")
            assert suspended.json()["suspended"] is True
            assert (await worker.next("control.reset"))["code"] == "E.AUTH.INVALID_TOKEN"
            async with asyncio.timeout(WAIT_S):
                while (event := await stream.next()) is not None:
                    last = event
            assert last["data"]["code"] == "E.AUTH.INVALID_TOKEN"
        problem_of(await submit(rig), 401, "E.AUTH.INVALID_TOKEN")
        assert (await submit(rig, **bearer(token_of(Role.ADMIN)))).status_code == 202
        problem_of(await rig.post(f"{TENANTS}/default/suspend"), 409, "E.TENANT.CONFLICT")
    async with serving(url, folder=tmp_path) as rig:  # who takes over knows it
        problem_of(await submit(rig), 401, "E.AUTH.INVALID_TOKEN")
        assert (await rig.post(f"{TENANTS}/{OTHER}/resume")).json()["suspended"] is False
        shown = await rig.get(f"/api/v1/runs/{run_id}", headers=ADMIN)
        assert shown.json()["status"] in ("queued", "running")
        async with rig.worker("w1", OTHER, token=stored["token"]) as worker:
            for task in [await worker.task(), await worker.task()]:
                task.succeed()
            rig.client.headers.update(ADMIN)
            await rig.status(run_id, "succeeded")


async def test_a_run_beyond_the_quota_is_a_429_that_names_it() -> None:
    async with serving() as rig:
        await make_tenant(rig, maxRuns=1)
        assert (await submit(rig)).status_code == 202
        answer = await submit(rig)
        problem = problem_of(answer, 429, "E.QUOTA.RUNS")
        assert (problem["quota"], problem["limit"]) == ("maxRuns", 1)
        assert answer.headers["retry-after"] == "5"
        assert (await rig.get(f"{TENANTS}/{OTHER}")).json()["use"]["runs"] == 1
        await rig.client.patch(f"{TENANTS}/{OTHER}", json={"maxRuns": 2, "maxTasks": 3})
        problem = problem_of(await submit(rig), 429, "E.QUOTA.TASKS")
        assert problem["quota"] == "maxTasks"


async def test_requests_beyond_the_rate_of_the_tenant_are_a_429() -> None:
    async with serving() as rig:
        await make_tenant(rig, requestsPerSecond=0.5)
        assert (await rig.get("/api/v1/me", headers=ADMIN)).status_code == 200
        answer = await rig.get("/api/v1/me", headers=bearer(token_of(Role.VIEWER, OTHER)))
        problem_of(answer, 429, "E.QUOTA.RATE")
        assert 1 <= int(answer.headers["retry-after"]) <= 2
        assert (await rig.get("/api/v1/me")).status_code == 200  # another tenant is not delayed


async def test_requests_beyond_the_rate_of_a_credential_are_a_429() -> None:
    async with serving(requests_per_second=1) as rig:
        statuses = [(await rig.get("/api/v1/me")).status_code for _ in range(5)]
        assert statuses[:2] == [200, 200]
        assert 429 in statuses
        other = await rig.get("/api/v1/me", headers=bearer(token_of(Role.VIEWER)))
        assert other.status_code == 200


async def test_a_worker_beyond_the_quota_is_told_so() -> None:
    async with serving() as rig:
        await make_tenant(rig, maxWorkers=1)
        async with rig.worker("w1", OTHER):
            socket = await RawSocket.open(rig.port)
            greeting = hello("w2", token_of(Role.WORKER, OTHER))
            socket.send(frame("w2", "control.handshake", greeting, tenant=OTHER))
            _, raw = await asyncio.wait_for(socket.receive(), WAIT_S)
            reset = json.loads(raw)["payload"]
            assert (reset["code"], reset["retry_after_ms"]) == ("E.QUOTA.WORKERS", 30_000)
            await socket.close()
            assert (await rig.get(f"{TENANTS}/{OTHER}")).json()["use"]["workers"] == 1
