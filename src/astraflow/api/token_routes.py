"""API tokens: make, list, revoke and renew them."""

from __future__ import annotations

from typing import Final, Literal, cast

import msgspec
from msgspec import UNSET

from astraflow.api.access import acting_tenant
from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_strict
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.tokens import ListTokens, NewToken, Token, TokenPage, TokenRequest
from astraflow.core.security.policy import OWN, RENEW, Role
from astraflow.core.timestamps import iso
from astraflow.scheduler.tokens import TokenTerms
from astraflow.store.rows import TokenRow

TOKENS: Final = "/api/v1/tokens"
_request: Final = msgspec.json.Decoder(TokenRequest)


class TokenEndpoints(Endpoints):
    """The endpoints under `/api/v1/tokens`."""

    @route(
        "POST",
        TOKENS,
        OWN,
        "createToken",
        "make a token",
        tag="access",
        text="The text of the token is in this response and nowhere else. A token may do no more than the one that it "
        "is made with, and does not outlive it.",
        body=TokenRequest,
        is_body_required=False,
        replies={201: Reply("The token exists.", NewToken)},
    )
    async def create(self, request: Request[NoQuery]) -> AsgiApp:
        wanted = decode_strict(await request.json_body() or b"{}", _request)
        bearer = request.bearer
        if acting_tenant(bearer, wanted.tenant) != bearer.tenant:
            self._scheduler.tenants.get(acting_tenant(bearer, wanted.tenant))
        terms = TokenTerms(
            tenant=wanted.tenant or bearer.tenant,
            role=wanted.role or bearer.role,
            subject=wanted.subject,
            label=wanted.label,
            ttl_s="default" if wanted.ttl_seconds is UNSET else wanted.ttl_seconds,
        )
        row, text = await self._scheduler.tokens.create(bearer, terms)
        return json_response(new_token(row, text), 201)

    @route(
        "POST",
        f"{TOKENS}/renew",
        RENEW,
        "renewToken",
        "renew the token of a worker",
        tag="access",
        text="A worker asks with the token that is about to expire, and presents the new one from then on. The new "
        "one lives as long as the first one did. Revoking one of them revokes all.",
        replies={201: Reply("The new token.", NewToken)},
    )
    async def renew(self, request: Request[NoQuery]) -> AsgiApp:
        row, text = await self._scheduler.tokens.renew(request.bearer)
        return json_response(new_token(row, text), 201)

    @route(
        "GET",
        TOKENS,
        OWN,
        "listTokens",
        "list tokens and browser sessions, newest first",
        tag="access",
        text="An admin sees those of the tenant, others their own. Those that have ended are listed for 30 days.",
        query=ListTokens,
        replies=TokenPage,
    )
    async def list_tokens(self, request: Request[ListTokens]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        rows = await self._scheduler.tokens.search(
            request.bearer,
            limit=query.count + 1,
            before=self._cursors.read("tokens", tenant, query.cursor, tuple[int, str]),
        )
        page = rows[: query.count]
        after = (page[-1].created_at, page[-1].token_id) if len(rows) > len(page) else None
        cursor = self._cursors.make("tokens", tenant, after)
        return json_response(TokenPage(items=[_view(row) for row in page], next_cursor=cursor))

    @route(
        "DELETE",
        f"{TOKENS}/{{id}}",
        OWN,
        "revokeToken",
        "revoke a token or a browser session",
        tag="access",
        text="What is open under it ends within a second: sessions of workers, event streams, downloads.",
        replies={204: Reply("It is not good any more.")},
    )
    async def revoke(self, request: Request[NoQuery]) -> AsgiApp:
        await self._scheduler.tokens.revoke(request.bearer, request.params["id"])
        return NO_CONTENT


def new_token(row: TokenRow, text: str) -> NewToken:
    return NewToken(
        token=text,
        token_id=row.token_id,
        tenant=row.tenant,
        subject=row.subject,
        role=Role(row.role),
        expires_at=_time(row.expires_at),
    )


def _view(row: TokenRow) -> Token:
    return Token(
        token_id=row.token_id,
        kind=cast("Literal['api', 'session']", row.kind),
        subject=row.subject,
        role=Role(row.role),
        label=row.label,
        created_at=iso(row.created_at),
        created_by=row.created_by,
        expires_at=_time(row.expires_at),
        last_used_at=_time(row.used_at),
        revoked_at=_time(row.revoked_at),
        renewed_from=None if row.family == row.token_id else row.family,
    )


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)
