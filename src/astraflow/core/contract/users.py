"""Users, and how they log in."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from astraflow.core.contract.base import (
    JsonObject,
    Page,
    PageQuery,
    Query,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    named,
)
from astraflow.core.contract.tokens import TenantName, Ttl
from astraflow.core.security.policy import Role

MIN_PASSWORD_CHARS = 8
MAX_PASSWORD_CHARS = 1_024
UserName = Annotated[str, named(r"[a-z0-9][a-z0-9._@-]{0,127}")]
Password = Annotated[str, Meta(min_length=MIN_PASSWORD_CHARS, max_length=MAX_PASSWORD_CHARS)]
PersonRole = Literal["admin", "operator", "editor", "viewer"]
_LoginText = Annotated[str, Meta(max_length=MAX_PASSWORD_CHARS)]
_OTHER_TENANT = "Its tenant; only an admin of the site names another than their own."


class User(RestObject, frozen=True, kw_only=True):
    """Somebody who logs in."""

    tenant: Annotated[str, doc("The tenant.")]
    name: Annotated[str, doc("The name, unique in the tenant.")]
    role: Annotated[Role, doc("What the user may do.")]
    disabled: Annotated[bool, doc("Whether the user cannot log in.")]
    created_at: Annotated[Timestamp, doc("When it was made.")]
    created_by: Annotated[str, doc("Who made it.")]
    updated_at: Annotated[Timestamp, doc("When it was changed last.")]
    issuer: Annotated[
        str | None, doc("The OpenID Connect issuer that the user logs in at; null: none.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "tenant": "default",
        "name": "alice",
        "role": "operator",
        "disabled": False,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "createdBy": "bootstrap",
        "updatedAt": "2026-01-15T10:00:00.000Z",
    }


class UserPage(Page[User], frozen=True, kw_only=True):
    """A page of users, by name."""


class OidcCallback(Query, frozen=True, kw_only=True, rename=None):
    """What an OpenID Connect issuer sends a browser back with."""

    IGNORES_OTHERS: ClassVar[bool] = True

    state: Annotated[str, doc("The `state` of the redirect to the issuer.", max_length=1_024)] = ""
    code: Annotated[str, doc("The authorization code.", max_length=4_096)] = ""
    iss: Annotated[str, doc("The issuer (RFC 9207).", max_length=1_024)] = ""
    error: Annotated[str, doc("Why there is no code.", max_length=1_024)] = ""


class OfTenant(Query, frozen=True, kw_only=True):
    """In which tenant."""

    tenant: Annotated[TenantName | None, doc(_OTHER_TENANT)] = None


class ListUsers(PageQuery, frozen=True, kw_only=True):
    """Which users."""

    tenant: Annotated[TenantName | None, doc(_OTHER_TENANT)] = None


class UserRequest(RequestBody, frozen=True, kw_only=True):
    """A user to make."""

    name: Annotated[UserName, doc("The name, in lower case.")]
    password: Annotated[Password, doc("The first password.")]
    role: Annotated[PersonRole, doc("What the user may do.")] = "viewer"

    EXAMPLE: ClassVar[JsonObject] = {
        "name": "alice",
        "password": "correct horse battery",
        "role": "operator",
    }


class UserChange(RequestBody, frozen=True, kw_only=True):
    """What is to change. What is left out stays."""

    role: Annotated[
        PersonRole | None, doc("Ends the sessions, and the tokens that may do more than it.")
    ] = None
    disabled: Annotated[bool | None, doc("True ends all sessions and tokens of the user.")] = None
    password: Annotated[Password | None, doc("Ends the sessions of the user.")] = None

    EXAMPLE: ClassVar[JsonObject] = {"disabled": True}


class LoginRequest(RequestBody, frozen=True, kw_only=True):
    """A name and a password."""

    user: Annotated[_LoginText, doc("The name of the user.")]
    password: Annotated[_LoginText, doc("The password.")]
    tenant: Annotated[_LoginText, doc("The tenant of the user.")] = "default"

    EXAMPLE: ClassVar[JsonObject] = {"user": "alice", "password": "correct horse battery"}


class TokenLoginRequest(LoginRequest, frozen=True, kw_only=True):
    """A name and a password, for a token."""

    label: Annotated[str, doc("What the token is for.", max_length=200)] = ""
    ttl_seconds: Annotated[Ttl | None, doc("How long it lives, 30 days by default.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "user": "alice",
        "password": "correct horse battery",
        "label": "laptop",
    }


class BrowserSession(RestObject, frozen=True, kw_only=True):
    """Who is logged in."""

    tenant: Annotated[str, doc("The tenant.")]
    subject: Annotated[str, doc("Who.")]
    role: Annotated[Role, doc("What they may do.")]
    expires_at: Annotated[Timestamp | None, doc("When the session ends at the latest.")]
    csrf_token: Annotated[
        str | None,
        doc("To be sent as `X-CSRF-Token` with everything but GET; null without a cookie."),
    ]

    EXAMPLE: ClassVar[JsonObject] = {
        "tenant": "default",
        "subject": "alice",
        "role": "operator",
        "expiresAt": "2026-01-22T10:00:00.000Z",
        "csrfToken": "Y3NyZiBvZiB0aGlzIHNlc3Npb24gYWxvbmU",
    }


class LinkRequest(RequestBody, frozen=True, kw_only=True):
    """The code of a login link."""

    code: Annotated[_LoginText, doc("What stands behind `#` in the link.")]

    EXAMPLE: ClassVar[JsonObject] = {"code": "astra_7mXq0E2mW1nQkq1m1yq5l2b3c4d5e6f7g8h9i0j1k2l"}


class LoginLink(RestObject, frozen=True, kw_only=True):
    """A link that logs in whoever opens it, once."""

    path: Annotated[
        str, doc("The page, with the code behind `#`, where no server or proxy sees it.")
    ]
    expires_at: Annotated[Timestamp, doc("Until when it works.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "path": "/login#astra_7mXq0E2mW1nQkq1m1yq5l2b3c4d5e6f7g8h9i0j1k2l",
        "expiresAt": "2026-01-15T10:10:00.000Z",
    }


class PasswordChange(RequestBody, frozen=True, kw_only=True):
    """Another password for oneself."""

    current: Annotated[_LoginText, doc("The password until now.")]
    new: Annotated[Password, doc("The password from now on.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "current": "correct horse battery",
        "new": "staple of another horse",
    }
