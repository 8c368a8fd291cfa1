"""`astra approvals …`."""

from __future__ import annotations

from typing import Annotated

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable, values_of
from astraflow.cli.output import AsJson, answer
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.client import message_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.messages import OpenApproval

app = command_group("List the nodes that wait for a person; approve or reject.")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id")]
NodeName = Annotated[
    str | None, typer.Argument(metavar="[NODE]", help="Node id or label; the only one, if left out")
]
Comment = Annotated[str, typer.Option("--comment", "-m", help="Why")]


@app.command("list")
def list_approvals(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List the nodes that wait for a person."""
    show_list(
        requests.list_approvals,
        kind=OpenApproval,
        columns=("run", "node", "asks", "since", "until", "roles"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="Nothing waits for a person",
    )


def _row(one: OpenApproval) -> tuple[object, ...]:
    return (
        one.run_id,
        one.label if one.scope_path is None else f"{one.scope_path}/{one.node_id}",
        one.message,
        one.since or "",
        one.until or "",
        ", ".join(one.roles),
    )


@app.command()
def approve(
    run_id: RunId,
    node: NodeName = None,
    comment: Comment = "",
    value: Annotated[
        list[str] | None,
        typer.Option("--value", help="NAME=VALUE of the form, repeatable; VALUE is JSON or text"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Approve at a node that waits for a person."""
    _decide(run_id, node, True, comment, value, as_json)


@app.command()
def reject(
    run_id: RunId, node: NodeName = None, comment: Comment = "", as_json: AsJson = False
) -> None:
    """Reject at a node that waits for a person."""
    _decide(run_id, node, False, comment, None, as_json)


def _decide(
    run_id: str,
    node: str | None,
    approved: bool,
    comment: str,
    value: list[str] | None,
    as_json: bool,
) -> None:
    values = values_of(value, "value")
    with Client() as client:
        found = _find(client, run_id, node)
        client.perform(
            requests.decide_approval(
                run_id,
                found.node_id,
                approved,
                comment=comment,
                values=values,
                scope=found.scope_path,
            )
        )
    said = "Approved" if approved else "Rejected"
    told = b'{"approved":true}' if approved else b'{"approved":false}'
    answer(told, f"{said}: {found.message or found.label}", as_json)


def _find(client: Client, run_id: str, node: str | None) -> OpenApproval:
    """The node that waits: the one that is named, or the only one of the run."""
    waiting = [one for one in client.approvals.iterate() if one.run_id == run_id]
    named = [
        one
        for one in waiting
        if node is None or node in (one.node_id, one.label, f"{one.scope_path}/{one.node_id}")
    ]
    if len(named) == 1:
        return named[0]
    if not named:
        place = f" at {node}" if node else ""
        message = f"Nothing waits for a person in run {run_id}{place}"
        raise unreadable(message, hint="list what waits with `astra approvals list`")
    labels = ", ".join(one.label for one in named[:10])
    hint = "name the node by its id, inside of a map with its path: SCOPE/NODE"
    raise unreadable(f"Several nodes of the run wait: {labels}", hint=hint)
