"""The whole authorization matrix, written a second time by hand and compared cell by cell."""

from __future__ import annotations

import itertools

import pytest

from astraflow.core.security.policy import PUBLIC, TABLE, Role, allows, visible

R = Role
READERS = {R.ADMIN, R.OPERATOR, R.EDITOR, R.VIEWER}

# (method, path prefix) -> roles; the longest prefix that fits a route decides.
EXPECTED_ROUTES = {
    ("GET", "/api/v1/"): READERS,
    ("GET", "/api/docs"): set(R),
    ("GET", "/samples/"): set(R),
    ("GET", "/"): set(R),
    ("GET", "/api/openapi.json"): set(R),
    ("GET", "/metrics"): READERS,
    ("GET", "/healthz"): set(R),
    ("GET", "/readyz"): set(R),
    ("POST", "/api/v1/auth/login"): set(R),
    ("POST", "/api/v1/auth/logout"): READERS,
    ("GET", "/api/v1/secrets"): {R.ADMIN, R.OPERATOR, R.EDITOR},
    ("GET", "/api/v1/users"): {R.ADMIN},
    ("GET", "/api/v1/tokens"): {R.ADMIN},
    ("GET", "/api/v1/audit"): {R.ADMIN},
    ("POST", "/api/v1/runs"): {R.ADMIN, R.OPERATOR, R.EDITOR},
    ("POST", "/api/v1/runs/{runId}/rebind"): {R.ADMIN, R.OPERATOR},
    ("POST", "/api/v1/scheduler/"): {R.ADMIN, R.OPERATOR},
    ("POST", "/api/v1/workflows"): {R.ADMIN, R.EDITOR},
    ("POST", "/api/v1/workflows/validate"): READERS,
    ("PUT", "/api/v1/workflows"): {R.ADMIN, R.EDITOR},
    ("DELETE", "/api/v1/workflows"): {R.ADMIN, R.EDITOR},
    ("POST", "/api/v1/schedules"): {R.ADMIN, R.EDITOR},
    ("PUT", "/api/v1/schedules"): {R.ADMIN, R.EDITOR},
    ("DELETE", "/api/v1/schedules"): {R.ADMIN, R.EDITOR},
    ("POST", "/api/v1/webhooks"): {R.ADMIN, R.EDITOR},
    ("DELETE", "/api/v1/webhooks"): {R.ADMIN, R.EDITOR},
    ("POST", "/api/v1/workers"): {R.ADMIN, R.OPERATOR},
    ("POST", "/api/v1/packages"): {R.ADMIN, R.OPERATOR},
    ("PUT", "/api/v1/packages"): {R.ADMIN, R.OPERATOR},
    ("POST", "/api/v1/artifacts"): READERS,
    ("HEAD", "/api/v1/artifacts"): READERS,
    ("PUT", "/api/v1/uploads"): set(),
    ("PATCH", "/api/v1/resources"): {R.ADMIN, R.OPERATOR},
    ("DELETE", "/api/v1/resources"): {R.ADMIN, R.OPERATOR},
    ("POST", "/api/v1/users"): {R.ADMIN},
    ("PUT", "/api/v1/users"): {R.ADMIN},
    ("DELETE", "/api/v1/users"): {R.ADMIN},
    ("POST", "/api/v1/tokens"): {R.ADMIN},
    ("DELETE", "/api/v1/tokens"): {R.ADMIN},
    ("PUT", "/api/v1/secrets"): {R.ADMIN},
    ("DELETE", "/api/v1/secrets"): {R.ADMIN},
    ("POST", "/api/workers/"): {R.ADMIN, R.WORKER},
    ("POST", "/api/v1/tasks/"): {R.TASK},
    ("POST", "/v1/tasks/"): {R.TASK},
}
WORKER_FRAMES = {
    "control.handshake",
    "control.register",
    "control.resume",
    "control.heartbeat",
    "control.ack",
    "control.error",
    "biz.exec.feedback",
    "biz.exec.result",
    "biz.exec.error",
    "biz.exec.next.request",
    "biz.pkg.event",
    "biz.pkg.catalog",
    "biz.resource.event",
}
SCHEDULER_FRAMES = {
    "control.session.accept",
    "control.reset",
    "control.drain",
    "biz.exec.dispatch",
    "biz.exec.cancel",
    "biz.exec.next.response",
    "biz.pkg.install",
    "biz.pkg.uninstall",
    "biz.resource.cleanup",
    "biz.resource.export",
    "biz.resource.touch",
}
ROLES = [None, *Role]


def expected(action: str) -> set[Role]:
    method, _, path = action.partition(" ")
    if method == "frame":
        return {R.ADMIN, R.WORKER} if path in WORKER_FRAMES else set()
    fitting = [
        (len(prefix), roles)
        for (verb, prefix), roles in EXPECTED_ROUTES.items()
        if verb == method and path.startswith(prefix)
    ]
    return max(fitting, key=lambda row: row[0])[1]


@pytest.mark.parametrize(
    ("action", "role"), list(itertools.product(TABLE, ROLES)), ids=lambda value: str(value)
)
def test_every_cell_of_the_matrix(action: str, role: Role | None) -> None:
    wanted = action in PUBLIC if role is None else role in expected(action)
    assert allows(role, action) is wanted


def test_every_frame_of_the_protocol_has_a_row() -> None:
    in_table = {action.split()[1] for action in TABLE if action.startswith("frame ")}
    assert in_table == WORKER_FRAMES | SCHEDULER_FRAMES


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "action", ["", "GET /api/v1/nothing", "get /healthz", "PATCH /api/v1/runs", "frame biz.x"]
)
def test_what_has_no_row_is_allowed_to_nobody(role: Role | None, action: str) -> None:
    assert not allows(role, action)


def test_a_task_token_reports_and_does_nothing_else() -> None:
    allowed = {action for action in TABLE if allows(Role.TASK, action)} - PUBLIC
    assert len(allowed) == 6
    assert all("/v1/tasks/{taskId}/" in action for action in allowed)


def test_another_tenants_thing_is_as_absent_as_none() -> None:
    assert visible("acme", "acme")
    assert not visible("acme", "umbrella")
    assert not visible("acme", None)
    assert not visible("", None)
