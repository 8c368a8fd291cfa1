"""The authorization table, as data: every action, and the roles that may take it.

1. An action is a REST route (`"POST /api/v1/runs"`) or a frame that a peer sends
   (`"frame biz.exec.result"`). What has no row is allowed to nobody: a new route without a row
   answers 403 to everyone until somebody decides.
2. A role says what one may do, the tenant says to what. The tenant is asked first: what belongs to
   another tenant does not exist (`visible`), whatever the role.
3. People have admin, operator, editor or viewer. A worker's credential may open a session and
   nothing else; a task's token may report its attempt and nothing else. An admin's token may open a
   session too, so that one bootstrap token is enough for a first worker.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PUBLIC", "SIGNED", "TABLE", "Role", "allows", "visible"]


class Role(enum.StrEnum):
    """What a credential may do in its tenant."""

    ADMIN = "admin"
    OPERATOR = "operator"
    EDITOR = "editor"
    VIEWER = "viewer"
    WORKER = "worker"
    TASK = "task"


_ADMIN: Final = frozenset({Role.ADMIN})
_OPERATE: Final = _ADMIN | {Role.OPERATOR}
_EDIT: Final = _ADMIN | {Role.EDITOR}
_START: Final = _OPERATE | _EDIT
_READ: Final = _START | {Role.VIEWER}
_WORKER: Final = _ADMIN | {Role.WORKER}
_TASK: Final = frozenset({Role.TASK})
_SCHEDULER_ONLY: Final[frozenset[Role]] = frozenset()

PUBLIC: Final = frozenset(
    {
        "GET /healthz",
        "GET /readyz",
        "GET /",
        "GET /samples/login",
        "GET /api/docs",
        "GET /api/openapi.json",
        "POST /api/v1/auth/login",
    }
)
"""Actions that need no credential at all."""

SIGNED: Final = frozenset(
    {
        "GET /api/v1/packages/{name}/{version}/archive",
        "GET /api/v1/artifacts/{id}",
        "HEAD /api/v1/artifacts/{id}",
        "PUT /api/v1/uploads/{token}",
    }
)
"""Actions that a signed link allows, too: without a credential the link is looked at, with one the table."""

_READ_ROUTES = """
GET /metrics
GET /api/v1/me
POST /api/v1/auth/logout
GET /api/v1/roles
GET /api/v1/runs
GET /api/v1/runs/{runId}
GET /api/v1/runs/{runId}/nodes/{nodeId}
GET /api/v1/runs/{runId}/definition
GET /api/v1/runs/{runId}/logs
GET /api/v1/runs/{runId}/artifacts
GET /api/v1/runs/{runId}/artifacts/{artifactId}
GET /api/v1/events
GET /api/v1/workflows
GET /api/v1/workflows/{id}
GET /api/v1/workflows/{id}/versions
GET /api/v1/workflows/{id}/versions/{version}
GET /api/v1/workflows/{id}/diff
POST /api/v1/workflows/validate
GET /api/v1/schedules
GET /api/v1/schedules/{id}
GET /api/v1/webhooks
GET /api/v1/workers
GET /api/v1/workers/{id}
GET /api/v1/packages
GET /api/v1/packages/{name}
GET /api/v1/packages/{name}/rollout
GET /api/v1/packages/{name}/{version}
GET /api/v1/packages/{name}/{version}/archive
GET /api/v1/catalog/nodes
GET /api/v1/catalog/nodes/{type}
GET /api/v1/resources
GET /api/v1/resources/{id}
POST /api/v1/artifacts/{id}
GET /api/v1/artifacts/{id}
HEAD /api/v1/artifacts/{id}
"""
_START_ROUTES = """
POST /api/v1/runs
POST /api/v1/runs/{runId}/cancel
POST /api/v1/runs/{runId}/retry
GET /api/v1/secrets
"""
_EDIT_ROUTES = """
POST /api/v1/workflows
PUT /api/v1/workflows/{id}
DELETE /api/v1/workflows/{id}
POST /api/v1/workflows/{id}/publish
POST /api/v1/workflows/{id}/restore
POST /api/v1/schedules
PUT /api/v1/schedules/{id}
DELETE /api/v1/schedules/{id}
POST /api/v1/webhooks
DELETE /api/v1/webhooks/{id}
"""
_OPERATE_ROUTES = """
POST /api/v1/runs/{runId}/rebind
POST /api/v1/scheduler/runs/{runId}/rebind
POST /api/v1/workers/{id}/commands
POST /api/v1/packages
POST /api/v1/packages/{name}/{version}/yank
POST /api/v1/packages/{name}/{version}/unyank
PUT /api/v1/packages/{name}/active
POST /api/v1/packages/{name}/rollout
POST /api/v1/packages/{name}/rollback
PATCH /api/v1/resources/{id}
DELETE /api/v1/resources/{id}
"""
_ADMIN_ROUTES = """
GET /api/v1/users
POST /api/v1/users
PUT /api/v1/users/{id}
DELETE /api/v1/users/{id}
GET /api/v1/tokens
POST /api/v1/tokens
DELETE /api/v1/tokens/{id}
PUT /api/v1/secrets/{name}
DELETE /api/v1/secrets/{name}
GET /api/v1/audit
"""
_WORKER_ACTIONS = """
POST /api/workers/register
POST /api/workers/heartbeat
frame control.handshake
frame control.register
frame control.resume
frame control.heartbeat
frame control.ack
frame control.error
frame biz.exec.feedback
frame biz.exec.result
frame biz.exec.error
frame biz.exec.next.request
frame biz.pkg.event
frame biz.pkg.catalog
frame biz.resource.event
"""
_TASK_ROUTES = """
POST /v1/tasks/{taskId}/started
POST /v1/tasks/{taskId}/heartbeat
POST /v1/tasks/{taskId}/completed
POST /api/v1/tasks/{taskId}/started
POST /api/v1/tasks/{taskId}/heartbeat
POST /api/v1/tasks/{taskId}/completed
"""
# The link in the path is the only key to it.
_LINK_ROUTES = """
PUT /api/v1/uploads/{token}
"""
# A peer that sends one of these says that it is the scheduler, which nobody is but us.
_SCHEDULER_FRAMES = """
frame control.session.accept
frame control.reset
frame control.drain
frame biz.exec.dispatch
frame biz.exec.cancel
frame biz.exec.next.response
frame biz.pkg.install
frame biz.pkg.uninstall
frame biz.resource.cleanup
frame biz.resource.export
frame biz.resource.touch
"""


def _rows(actions: str, roles: frozenset[Role]) -> Iterable[tuple[str, frozenset[Role]]]:
    return ((action, roles) for action in actions.strip().splitlines())


TABLE: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(
    {
        **dict.fromkeys(sorted(PUBLIC), frozenset(Role)),
        **dict(_rows(_READ_ROUTES, _READ)),
        **dict(_rows(_START_ROUTES, _START)),
        **dict(_rows(_EDIT_ROUTES, _EDIT)),
        **dict(_rows(_OPERATE_ROUTES, _OPERATE)),
        **dict(_rows(_ADMIN_ROUTES, _ADMIN)),
        **dict(_rows(_WORKER_ACTIONS, _WORKER)),
        **dict(_rows(_TASK_ROUTES, _TASK)),
        **dict(_rows(_LINK_ROUTES, frozenset())),
        **dict(_rows(_SCHEDULER_FRAMES, _SCHEDULER_ONLY)),
    }
)
"""Action to roles. Read it through `allows`."""


def allows(role: Role | None, action: str) -> bool:
    """Say whether a credential of this role (None: no credential) may take this action."""
    if role is None:
        return action in PUBLIC
    return role in TABLE.get(action, ())


def visible(tenant_of_token: str, tenant_of_thing: str | None) -> bool:
    """Say whether a thing exists for the bearer of a token. If not, the answer is 404.

    A thing that does not exist has no tenant, and gets the same answer as another tenant's.
    """
    return tenant_of_thing is not None and tenant_of_thing == tenant_of_token
