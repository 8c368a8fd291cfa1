"""The requests about who may get in: tokens, users, logins, tenants."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from astraflow.client.requests import JSON, ApiRequest, Pages, _as, _as_nothing, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.tenants import (
    LaneList,
    LanesRequest,
    ListTenants,
    Tenant,
    TenantChange,
    TenantPage,
    TenantRequest,
)
from astraflow.core.contract.tokens import ListTokens, NewToken, Token, TokenPage, TokenRequest
from astraflow.core.contract.users import (
    ListUsers,
    LoginLink,
    OfTenant,
    PersonRole,
    TokenLoginRequest,
    User,
    UserChange,
    UserPage,
    UserRequest,
)
from astraflow.core.security.policy import Role

TOKENS: Final = "/api/v1/tokens"
USERS: Final = "/api/v1/users"
AUTH: Final = "/api/v1/auth"
TENANTS: Final = "/api/v1/tenants"


def create_token(
    *,
    role: Role | None = None,
    label: str = "",
    ttl_seconds: int | Literal["default"] | None = "default",
    subject: str | None = None,
    tenant: str | None = None,
) -> ApiRequest[NewToken]:
    """Make a token; its text is in the response and nowhere else. `ttl_seconds` None: it never expires."""
    body = TokenRequest(
        role=role,
        label=label,
        ttl_seconds=UNSET if ttl_seconds == "default" else ttl_seconds,
        subject=subject,
        tenant=tenant,
    )
    raw = msgspec.json.encode(body)
    return ApiRequest("POST", TOKENS, _as(NewToken), headers=JSON, body=raw, again=False)


def renew_token() -> ApiRequest[NewToken]:
    """A successor of the token of a worker."""
    return ApiRequest("POST", f"{TOKENS}/renew", _as(NewToken))


def list_tokens(*, limit: int | None = None, cursor: str | None = None) -> ApiRequest[Page[Token]]:
    params = _query(ListTokens, limit=limit, cursor=cursor)
    return ApiRequest("GET", TOKENS, _as(TokenPage), params)


def iterate_tokens(*, limit: int | None = None, page_size: int = 200) -> Pages[Token]:
    return Pages(lambda cursor: list_tokens(limit=page_size, cursor=cursor), limit)


def revoke_token(token_id: str) -> ApiRequest[None]:
    """Revoke a token; what is open under it ends within a second."""
    return ApiRequest("DELETE", f"{TOKENS}/{_part(token_id)}", _as_nothing)


# -- users ----------------------------------------------------------------------------------


def create_user(
    name: str, password: str, *, role: PersonRole = "viewer", tenant: str | None = None
) -> ApiRequest[User]:
    body = msgspec.json.encode(UserRequest(name=name, password=password, role=role))
    params = _query(OfTenant, tenant=tenant)
    return ApiRequest("POST", USERS, _as(User), params, headers=JSON, body=body, again=False)


def list_users(
    *, tenant: str | None = None, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[User]]:
    params = _query(ListUsers, tenant=tenant, limit=limit, cursor=cursor)
    return ApiRequest("GET", USERS, _as(UserPage), params)


def iterate_users(*, tenant: str | None = None, page_size: int = 200) -> Pages[User]:
    return Pages(lambda cursor: list_users(tenant=tenant, limit=page_size, cursor=cursor))


def get_user(name: str, *, tenant: str | None = None) -> ApiRequest[User]:
    return ApiRequest("GET", _user(name), _as(User), _query(OfTenant, tenant=tenant))


def change_user(
    name: str,
    *,
    role: PersonRole | None = None,
    disabled: bool | None = None,
    password: str | None = None,
    tenant: str | None = None,
) -> ApiRequest[User]:
    """Change a user. What the user loses the right to ends within a second."""
    body = msgspec.json.encode(UserChange(role=role, disabled=disabled, password=password))
    params = _query(OfTenant, tenant=tenant)
    return ApiRequest("PATCH", _user(name), _as(User), params, headers=JSON, body=body)


def delete_user(name: str, *, tenant: str | None = None) -> ApiRequest[None]:
    """Delete a user with all sessions and tokens."""
    return ApiRequest("DELETE", _user(name), _as_nothing, _query(OfTenant, tenant=tenant))


def _user(name: str) -> str:
    return f"{USERS}/{_part(name)}"


# -- logging in -----------------------------------------------------------------------------


def log_in(
    user: str, password: str, *, tenant: str = "default", label: str = ""
) -> ApiRequest[NewToken]:
    """A token for this machine."""
    wanted = TokenLoginRequest(user=user, password=password, tenant=tenant, label=label)
    body = msgspec.json.encode(wanted)
    return ApiRequest("POST", f"{AUTH}/token", _as(NewToken), headers=JSON, body=body, again=False)


def log_out() -> ApiRequest[None]:
    """End the token that this is asked with."""
    return ApiRequest("POST", f"{AUTH}/logout", _as_nothing)


def create_link() -> ApiRequest[LoginLink]:
    """A link that logs in the browser that opens it, once."""
    return ApiRequest("POST", f"{AUTH}/links", _as(LoginLink), again=False)


# -- tenants --------------------------------------------------------------------------------


def create_tenant(tenant: str, **quotas: Any) -> ApiRequest[Tenant]:
    """Make a tenant. `quotas`: fields of `TenantChange`, as `max_runs`; None is no limit."""
    body = msgspec.json.encode(TenantRequest(tenant=tenant, **quotas))
    return ApiRequest("POST", TENANTS, _as(Tenant), headers=JSON, body=body, again=False)


def list_tenants(
    *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[Tenant]]:
    params = _query(ListTenants, limit=limit, cursor=cursor)
    return ApiRequest("GET", TENANTS, _as(TenantPage), params)


def iterate_tenants(*, page_size: int = 200) -> Pages[Tenant]:
    return Pages(lambda cursor: list_tenants(limit=page_size, cursor=cursor))


def get_tenant(tenant: str) -> ApiRequest[Tenant]:
    return ApiRequest("GET", f"{TENANTS}/{_part(tenant)}", _as(Tenant))


def change_tenant(tenant: str, **quotas: Any) -> ApiRequest[Tenant]:
    """Change what a tenant may use; what is not named stays."""
    body = msgspec.json.encode(TenantChange(**quotas))
    return ApiRequest("PATCH", f"{TENANTS}/{_part(tenant)}", _as(Tenant), headers=JSON, body=body)


def suspend_tenant(tenant: str) -> ApiRequest[Tenant]:
    """Give a tenant nothing new, and end its sessions and logins."""
    return ApiRequest("POST", f"{TENANTS}/{_part(tenant)}/suspend", _as(Tenant))


def resume_tenant(tenant: str) -> ApiRequest[Tenant]:
    return ApiRequest("POST", f"{TENANTS}/{_part(tenant)}/resume", _as(Tenant))


def get_lanes(tenant: str) -> ApiRequest[LaneList]:
    """The lanes of a tenant."""
    return ApiRequest("GET", f"{TENANTS}/{_part(tenant)}/lanes", _as(LaneList))


def set_lanes(tenant: str, count: int) -> ApiRequest[LaneList]:
    """Let a tenant have so many lanes that take new runs."""
    body = msgspec.json.encode(LanesRequest(count=count))
    path = f"{TENANTS}/{_part(tenant)}/lanes"
    return ApiRequest("PUT", path, _as(LaneList), headers=JSON, body=body)
