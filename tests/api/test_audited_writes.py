"""Every write over REST leaves one row in the audit: who, what, the id of the request, and what came of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from astraflow.api.app import NOT_AUDITED, ROUTES
from astraflow.api.routes import Route
from astraflow.core.security.policy import Role
from tests.api.rig import Rig, definition, serving
from tests.api.test_audit import items

WRITES = [route for route in ROUTES if route.method not in ("GET", "HEAD")]
AUDITED = [route for route in WRITES if route.action not in NOT_AUDITED]
PIECE = 12
"""Routes per scheduler: it keeps so many kinds of refusals in a minute in full."""
PIECES = [AUDITED[at : at + PIECE] for at in range(0, len(AUDITED), PIECE)]
JSON = {"content-type": "application/json"}


def path_of(route: Route) -> str:
    return re.sub(r"\{[^}]+\}", "nothing", route.path)


async def rows_of(rig: Rig, corr: str) -> list[dict[str, Any]]:
    return await items(rig, f"corr={corr}")


def test_what_leaves_no_row_is_a_write_of_ours_and_has_a_reason() -> None:
    assert NOT_AUDITED.keys() <= {route.action for route in WRITES}
    assert all(NOT_AUDITED.values())


@pytest.mark.parametrize("routes", PIECES)
async def test_every_write_leaves_one_row(routes: list[Route]) -> None:
    async with serving() as rig:
        for route in routes:
            role = Role.ADMIN if route.access.allows(Role.ADMIN) else Role.WORKER
            corr = f"req-{route.name}"
            headers = {**JSON, "x-request-id": corr}
            answer = await rig.as_(
                role, route.method, path_of(route), content=b"{}", headers=headers
            )
            (row,) = await rows_of(rig, corr)
            assert row["who"], route.action
            is_done = answer.status_code < 400
            assert (row["code"] is None) == is_done, (route.action, answer.text)
            if not is_done:
                assert (row["action"], row["code"]) == (route.action, answer.json()["code"])


@pytest.mark.parametrize("routes", PIECES)
async def test_a_write_that_a_role_may_not_do_leaves_one_row(routes: list[Route]) -> None:
    async with serving() as rig:
        for route in routes:
            role = Role.WORKER if not route.access.allows(Role.WORKER) else Role.VIEWER
            corr = f"req-{route.name}"
            headers = {**JSON, "x-request-id": corr}
            await rig.as_(role, route.method, path_of(route), content=b"{}", headers=headers)
            (row,) = await rows_of(rig, corr)
            assert (row["action"], row["code"]) == (route.action, "E.AUTH.FORBIDDEN")


async def test_a_write_that_succeeds_leaves_one_row() -> None:
    async with serving() as rig:
        workflow = definition()
        writes: list[tuple[str, str, Any, str]] = [
            ("POST", "/api/v1/workflows", workflow, "POST /api/v1/workflows"),
            (
                "DELETE",
                f"/api/v1/workflows/{workflow['id']}",
                None,
                "DELETE /api/v1/workflows/{id}",
            ),
            ("POST", "/api/v1/tokens", {"label": "x"}, "token.create"),
            (
                "POST",
                "/api/v1/users",
                {"name": "kim", "password": "a long password"},
                "user.create",
            ),
            ("DELETE", "/api/v1/users/kim", None, "user.delete"),
            ("POST", "/api/v1/tenants", {"tenant": "t2"}, "tenant.configure"),
        ]
        for number, (method, path, body, action) in enumerate(writes):
            headers = {"x-request-id": f"w-{number}"}
            answer = await rig.client.request(method, path, json=body, headers=headers)
            assert answer.status_code < 300, (action, answer.text)
            rows = await rows_of(rig, f"w-{number}")
            assert [row["code"] for row in rows] == [None], action
            assert action.startswith("tenant.") or rows[0]["action"] == action
        (deleted,) = await items(rig, "corr=w-1")
        assert deleted["detail"] == {"subject": workflow["id"]}
        assert "a long password" not in (await rig.get("/api/v1/audit/export")).text


async def test_what_is_not_audited_leaves_no_row() -> None:
    async with serving() as rig:
        await rig.submit(headers={"x-request-id": "run-1"})
        await rig.post("/api/v1/workflows/validate", json=definition())
        assert await items(rig, "outcome=ok&who=admin of default") == []
        refused = await rig.as_(
            Role.VIEWER, "POST", "/api/v1/runs", json={}, headers={"x-request-id": "run-2"}
        )
        assert refused.status_code == 403
        (row,) = await rows_of(rig, "run-2")
        assert row["action"] == "POST /api/v1/runs"


async def test_a_failed_login_leaves_one_row() -> None:
    async with serving() as rig:
        kim = {"name": "kim", "password": "a long password"}
        assert (await rig.post("/api/v1/users", json=kim)).status_code == 201
        body = {"tenant": "default", "user": "kim", "password": "wrong"}
        answer = await rig.client.post(
            "/api/v1/auth/token", json=body, headers={"x-request-id": "l-1"}
        )
        assert answer.status_code == 401, answer.text
        (row,) = await rows_of(rig, "l-1")
        assert (row["action"], row["code"]) == ("login", "E.AUTH.BAD_LOGIN")
