"""`astra tokens …`."""

from __future__ import annotations

from typing import Annotated

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.durations import seconds_of
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.client import access_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.tokens import Token
from astraflow.core.security.policy import Role

app = command_group("Create, list and revoke API tokens.")

NEVER = "never"


def role_of(text: str) -> Role:
    """Raises: Refused, naming the roles there are."""
    if text not in set(Role):
        raise unreadable(f"No such role: {text}", f"use one of: {', '.join(Role)}")
    return Role(text)


@app.command()
def create(
    role: Annotated[
        str | None,
        typer.Option(
            help="admin, operator, editor, viewer, worker or metrics",
            show_default="the role of your token",
        ),
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(
            help="Lifetime, as 1h or 30d, or never", show_default="30d; of a worker's token 1d"
        ),
    ] = None,
    label: Annotated[str, typer.Option(help="Purpose, for the list")] = "",
    subject: Annotated[
        str | None, typer.Option(help="Holder. Only an admin names another", show_default="you")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Tenant. Only an admin of the site names another")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it. It is not shown again."""
    lifetime = "default" if ttl is None else None if ttl == NEVER else seconds_of(ttl, "--ttl")
    with Client() as client:
        made = client.perform(
            requests.create_token(
                role=None if role is None else role_of(role),
                label=label,
                ttl_seconds=lifetime,  # type: ignore[arg-type]
                subject=subject,
                tenant=tenant,
            )
        )
    until = "never expires" if made.expires_at is None else f"expires at {made.expires_at}"
    said = f"Token {made.token_id} of {made.subject} ({made.role}) {until}; it is not shown again"
    answer(made, said, as_json, result=made.token)


@app.command("list")
def list_tokens(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List tokens and browser sessions, newest first."""
    show_list(
        requests.list_tokens,
        kind=Token,
        columns=("token", "kind", "subject", "role", "label", "state", "expires", "used"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No tokens",
    )


def _row(one: Token) -> tuple[object, ...]:
    state = "good" if one.revoked_at is None else "revoked"
    used = one.last_used_at
    return one.token_id, one.kind, one.subject, one.role, one.label, state, one.expires_at, used


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Token id, as listed")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token. What is open under it ends within a second."""
    with Client() as client:
        client.tokens.revoke(token_id)
    answer({"tokenId": token_id, "status": "revoked"}, f"Revoked {token_id}", as_json)
