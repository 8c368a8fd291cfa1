"""What serves here, what comes with it, where something is; and what a browser may show of an artifact."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow import __version__
from astraflow.client import AsyncClient
from astraflow.core.security.policy import Role
from tests.api.rig import OTHER, WORKFLOW, definition, problem_of, serving
from tests.api.scripted import token_of


async def test_a_scheduler_says_what_it_is_and_how_much_room_it_has() -> None:
    async with serving() as rig:
        about = (await rig.get("/api/v1/about")).json()
        assert (about["version"], about["store"]) == (__version__, "memory")
        assert about["schemaVersion"] >= 13
        assert 0 < about["disk"]["freeBytes"] <= about["disk"]["totalBytes"]
        assert about["disk"]["storeBytes"] > 0


async def test_every_example_can_be_shown_and_those_that_can_be_run_are_valid() -> None:
    async with serving() as rig:
        items = (await rig.get("/api/v1/examples")).json()["items"]
        assert "hello" in [one["id"] for one in items]
        assert [one["name"].lower() for one in items] == sorted(
            one["name"].lower() for one in items
        )
        for one in items:
            shown = await rig.get(f"/api/v1/examples/{one['id']}")
            assert shown.status_code == 200
            assert len(shown.json()["nodes"]) == one["nodeCount"]
        hello = (await rig.get("/api/v1/examples/hello")).json()
        assert (await rig.post("/api/v1/workflows/validate", json=hello)).status_code == 200
        assert next(one for one in items if one["id"] == "hello")["runnable"] is True
        for wrong in ("nope", "hello.json"):
            problem_of(await rig.get(f"/api/v1/examples/{wrong}"), 404, "E.WORKFLOW.NOT_FOUND")


async def test_everything_is_found_by_name_in_the_own_tenant_alone() -> None:
    async with serving() as rig, rig.worker("echo-1"), rig.worker("echo-2", OTHER):
        named = definition(metadata={"name": "My Echo"})
        await rig.post("/api/v1/workflows", json=named)
        run_id = (await rig.post("/api/v1/runs", json={"workflow": named})).json()["runId"]

        async def found(query: str, **more: Any) -> list[tuple[str, str]]:
            items = (await rig.get(f"/api/v1/search?{query}", **more)).json()["items"]
            return [(one["kind"], one["id"]) for one in items]

        assert await found("q=ECHO") == [
            ("workflow", WORKFLOW),
            ("run", run_id),
            ("node_type", "core.echo"),
            ("worker", "echo-1"),
        ]
        assert ("package", "core") in await found("q=core")
        assert len(await found("q=core.&limit=1")) == 1
        assert await found("q=") == []
        assert await found("q=+") == []
        other = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        assert await found("q=echo", headers=other) == [
            ("node_type", "core.echo"),
            ("worker", "echo-2"),
        ]
        async with AsyncClient(f"http://127.0.0.1:{rig.port}", token_of(Role.ADMIN)) as client:
            assert (await client.discovery.search("My Echo")).items[0].label == "My Echo"
            assert (await client.discovery.about()).version == __version__
            assert (await client.discovery.examples()).items
            assert (await client.discovery.example("hello"))["metadata"]["name"] == "Hello"


async def test_workers_are_found_by_status_package_and_name() -> None:
    async with serving() as rig, rig.worker("one"), rig.worker("two"):
        drain = await rig.post("/api/v1/workers/two/commands", json={"type": "drain"})
        assert drain.status_code == 202, drain.text

        async def names(query: str) -> list[str]:
            items = (await rig.get(f"/api/v1/workers?{query}")).json()["items"]
            return [one["workerId"] for one in items]

        assert await names("status=online") == ["one"]
        assert await names("status=draining") == ["two"]
        assert await names("text=TW") == ["two"]
        assert await names("package=core") == ["one", "two"]
        assert await names("package=nothing") == []
        problem_of(await rig.get("/api/v1/workers?status=happy"), 400, "E.REQUEST.INVALID")


SAFE = [
    ("image/png", "image/png"),
    ("text/csv", "text/plain; charset=utf-8"),
    ("application/json", "text/plain; charset=utf-8"),
    ("Text/Markdown", "text/plain; charset=utf-8"),
    ("video/mp4", "video/mp4"),
]
ACTIVE = [
    "text/html",
    "image/svg+xml",
    "application/xhtml+xml",
    "application/pdf",
    "text/javascript",
    "application/xml",
    "text/html; charset=utf-8",
    "image/png\r\nx: y",
    "nonsense",
]


@pytest.mark.parametrize(("mime", "shown"), SAFE)
async def test_what_can_do_nothing_is_shown_in_place(mime: str, shown: str) -> None:
    head = await _head_of(mime, "?inline=true")
    assert head["content-disposition"].startswith("inline; ")
    assert head["content-type"] == shown
    assert head["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert head["x-content-type-options"] == "nosniff"
    plain = await _head_of(mime, "")
    assert plain["content-disposition"].startswith("attachment; ")
    assert plain["content-type"] == mime


@pytest.mark.parametrize("mime", ACTIVE)
async def test_what_could_act_is_an_attachment_however_it_is_asked_for(mime: str) -> None:
    head = await _head_of(mime, "?inline=true")
    assert head["content-disposition"].startswith("attachment; ")
    assert head["x-content-type-options"] == "nosniff"


async def _head_of(mime: str, query: str) -> Any:
    async with serving() as rig, rig.worker() as worker:
        worker.serve_exports()
        worker.hold("r1", metadata={"mime": mime, "filename": "a.bin"})
        await rig.until("/api/v1/resources", lambda page: page["items"])
        answer = await rig.get(f"/api/v1/artifacts/r1{query}")
        assert answer.status_code == 200, answer.text
        return answer.headers
