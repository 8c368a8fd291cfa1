"""Roles, and what they may do.

1. A route declares its `Access` where it is defined (`api.routes.route`); the table of docs/reference/authorization.md
   is made from those declarations. The roles in `WORKER_SESSION` may open a worker's session; which frames a peer may
   send there is decided by the session itself.
2. A role says what one may do, the tenant says to what. What belongs to another tenant is not found, whatever the role.
3. People have admin, operator, editor or viewer. A worker's credential may open a session, say whose it is and renew
   itself, and nothing else. An admin's token may open a session too, so that one bootstrap token is enough for a first
   worker.
4. A credential of role metrics reads the metrics of all tenants, and nothing else: what collects them belongs to no
   tenant, and must not be able to do what an admin of the site can. Only the tenant of the site has such credentials.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Role(enum.StrEnum):
    """What a credential may do in its tenant."""

    ADMIN = "admin"
    OPERATOR = "operator"
    EDITOR = "editor"
    VIEWER = "viewer"
    WORKER = "worker"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may take an action: credentials of these roles, everybody, or whoever has a signed URL."""

    roles: frozenset[Role]
    is_public: bool = False
    is_signed: bool = False
    is_task: bool = False
    """The token of an attempt opens it, which the endpoint verifies."""
    is_site: bool = False
    """Only in the tenant of the site."""

    def allows(self, role: Role) -> bool:
        """Whether a credential of this role may take the action."""
        return role in self.roles


SITE_TENANT: Final = "default"
"""The tenant whose admins are those of the whole site."""

PERSON_ROLES: Final = frozenset(Role) - {Role.WORKER, Role.METRICS}
"""What a user may have. The others are for programs alone."""

_ADMIN: Final = frozenset({Role.ADMIN})
_OPERATE: Final = _ADMIN | {Role.OPERATOR}
_EDIT: Final = _ADMIN | {Role.EDITOR}
_READ: Final = _OPERATE | _EDIT | {Role.VIEWER}

ADMIN: Final = Access(_ADMIN)
OPERATE: Final = Access(_OPERATE)
EDIT: Final = Access(_EDIT)
START: Final = Access(_OPERATE | _EDIT)
READ: Final = Access(_READ)
PUBLIC: Final = Access(frozenset(Role), is_public=True)
READ_OR_SIGNED: Final = Access(_READ, is_signed=True)
"""Without a credential the signed URL is checked, with one the role."""
SIGNED: Final = Access(frozenset(), is_signed=True)
"""The signed URL is the only key."""

SITE: Final = Access(_ADMIN, is_site=True)
"""An admin of the site: of the tenant `SITE_TENANT`."""
OWN: Final = Access(_READ)
"""What belongs to whoever asks: everybody but a worker has such things."""
SELF: Final = Access(frozenset(Role) - {Role.METRICS})
"""Every credential, about itself; one that collects metrics has nothing to ask."""
SCRAPE: Final = Access(_READ | {Role.METRICS})
"""Who may read metrics: those of the own tenant, or of all (`sees_all_metrics`)."""
RENEW: Final = Access(frozenset({Role.WORKER}))
"""A worker renews its own token."""
TASK: Final = Access(frozenset(), is_task=True)
"""The callbacks of HTTP workers."""

WORKER_SESSION: Final = Access(_ADMIN | {Role.WORKER})
"""Who may open the session of a worker."""

_GRANTS: Final = {
    Role.ADMIN: frozenset(Role),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.VIEWER}),
    Role.EDITOR: frozenset({Role.EDITOR, Role.VIEWER}),
    Role.VIEWER: frozenset({Role.VIEWER}),
    Role.WORKER: frozenset[Role](),
    Role.METRICS: frozenset[Role](),
}


def grants_of(role: Role) -> frozenset[Role]:
    """The roles that a credential of this role may hand on: those that may do no more than it."""
    return _GRANTS[role]


def sees_all_metrics(tenant: str, role: Role) -> bool:
    """Whether a credential reads the metrics of all tenants, and not those of its own only."""
    return role is Role.METRICS and tenant == SITE_TENANT
