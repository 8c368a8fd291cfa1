"""API tokens: who may do what, until when."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from astraflow.core.contract.base import (
    Id,
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    named,
)
from astraflow.core.security.policy import Role

Subject = Annotated[str, named(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}")]
TENANT_NAME = r"[a-z0-9][a-z0-9-]{0,62}"
TenantName = Annotated[str, named(TENANT_NAME)]
Ttl = Annotated[int, Meta(ge=1, le=10 * 365 * 24 * 3600)]


class Token(RestObject, frozen=True, kw_only=True):
    """A token or a browser session, without its text."""

    token_id: Annotated[Id, doc("Its id, which is no secret.")]
    kind: Annotated[
        Literal["api", "session"], doc("`session`: the cookie of a browser that is logged in.")
    ]
    subject: Annotated[str, doc("Whom it stands for.")]
    role: Annotated[Role, doc("What it may do.")]
    label: Annotated[str, doc("What it is for.")]
    created_at: Annotated[Timestamp, doc("When it was made.")]
    created_by: Annotated[str, doc("Who made it.")]
    expires_at: Annotated[Timestamp | None, doc("Until when it can be used; null is for ever.")]
    last_used_at: Annotated[
        Timestamp | None, doc("When it was used last, to the minute; null: not yet.")
    ]
    revoked_at: Annotated[Timestamp | None, doc("When it was revoked; null: it was not.")]
    renewed_from: Annotated[Id | None, doc("The token that its worker began with.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "tokenId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "kind": "api",
        "subject": "alice",
        "role": "operator",
        "label": "nightly job",
        "createdAt": "2026-01-15T10:00:00.000Z",
        "createdBy": "alice",
        "expiresAt": "2026-02-14T10:00:00.000Z",
        "lastUsedAt": None,
        "revokedAt": None,
    }


class NewToken(RestObject, frozen=True, kw_only=True):
    """A token that was just made. Its text is shown here and never again."""

    token: Annotated[str, doc("The text, for `Authorization: Bearer`.")]
    token_id: Annotated[Id, doc("Its id, which is no secret.")]
    tenant: Annotated[str, doc("Its tenant.")]
    subject: Annotated[str, doc("Whom it stands for.")]
    role: Annotated[Role, doc("What it may do.")]
    expires_at: Annotated[Timestamp | None, doc("Until when it can be used; null is for ever.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "token": "astra_7mXq0E2mW1nQkq1m1yq5l2b3c4d5e6f7g8h9i0j1k2l",
        "tokenId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "tenant": "default",
        "subject": "alice",
        "role": "operator",
        "expiresAt": "2026-02-14T10:00:00.000Z",
    }


class TokenPage(Page[Token], frozen=True, kw_only=True):
    """A page of tokens, newest first."""


class ListTokens(PageQuery, frozen=True, kw_only=True):
    """Which tokens."""


class TokenRequest(RequestBody, frozen=True, kw_only=True):
    """A token to make."""

    role: Annotated[
        Role | None, doc("What it may do; your own role by default, and never more than it.")
    ] = None
    label: Annotated[str, doc("What it is for.", max_length=200)] = ""
    ttl_seconds: Annotated[
        Ttl | UnsetType | None,
        doc("How long it lives: 30 days by default, one day for a worker; null is for ever."),
    ] = UNSET
    subject: Annotated[Subject | None, doc("Whom it stands for; only an admin names another.")] = (
        None
    )
    tenant: Annotated[
        TenantName | None, doc("Its tenant; only an admin of the site names another.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "role": "worker",
        "label": "build machines",
        "ttlSeconds": 3600,
    }
