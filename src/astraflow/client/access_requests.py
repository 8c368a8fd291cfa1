"""The requests about who may get in: tokens."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET

from astraflow.client.requests import JSON, ApiRequest, Pages, _as, _as_nothing, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.tokens import ListTokens, NewToken, Token, TokenPage, TokenRequest
from astraflow.core.security.policy import Role

TOKENS: Final = "/api/v1/tokens"


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
