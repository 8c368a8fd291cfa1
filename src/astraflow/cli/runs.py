"""`astra runs …`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from astraflow.cli import reruns
from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import note
from astraflow.cli.follow import duration, follow, show_end, show_node, show_run
from astraflow.cli.inputs import unreadable
from astraflow.cli.node_output import NodeOutputPrinter
from astraflow.cli.output import AsJson, answer, plain, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.reruns import find_node, find_scope
from astraflow.cli.run import Patience
from astraflow.client import message_requests, requests, scope_requests
from astraflow.client.blocking import Client
from astraflow.client.stream import PATIENCE_S
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.log_levels import LogLevel, is_at_least
from astraflow.core.contract.runs import Node, NodeDetail, RunSummary
from astraflow.core.contract.scope_paths import is_within
from astraflow.core.contract.timelines import TimelineEntry
from astraflow.core.contract.words import NodeStatus

MOST_TOLD: int = 100
"""Maximum number of nodes whose timelines are shown together; each takes one request."""

app = command_group("List, show, follow, cancel, repeat and compare runs.")
app.command("cancel")(reruns.cancel)
app.command("rerun")(reruns.rerun)
app.command("compare")(reruns.compare)

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id")]
NodeName = Annotated[str | None, typer.Option("--node", help="Node id or label")]
ScopePath = Annotated[
    str | None,
    typer.Option(
        "--scope",
        help="Path of a node inside of a map or a called workflow: NODE:ITEM, by ids or labels",
    ),
]
SHOWN_CHARS: int = 60
"""Of the result of an item in a list."""


@app.command("list")
def list_runs(
    status: Annotated[
        str | None,
        typer.Option(help="Filter by status: queued, running, succeeded, failed or cancelled"),
    ] = None,
    workflow: Annotated[str | None, typer.Option(help="Filter by workflow id")] = None,
    trigger: Annotated[str | None, typer.Option(help="Filter by trigger name")] = None,
    by: Annotated[str | None, typer.Option(help="Filter by the user who submitted the run")] = None,
    text: Annotated[str | None, typer.Option(help="Filter by a part of the name or the id")] = None,
    since: Annotated[str | None, typer.Option(help="Accepted at this time or later")] = None,
    until: Annotated[str | None, typer.Option(help="Accepted before this time")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    show_list(
        partial(
            requests.list_runs,
            status=status,
            workflow_id=workflow,
            trigger=trigger,
            by=by,
            text=text,
            since=since,
            until=until,
        ),
        kind=RunSummary,
        columns=("run", "workflow", "status", "created", "duration", "error"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No runs",
    )


def _row(run: RunSummary) -> tuple[object, ...]:
    status = "cancelling" if run.cancel_requested and not run.is_over else run.status
    took = duration(run.created_at, run.finished_at)
    error = run.error.code if run.error else ""
    return (run.run_id, run.name or run.workflow_id, status, run.created_at, took, error)


@app.command()
def show(
    run_id: RunId, node: NodeName = None, scope: ScopePath = None, as_json: AsJson = False
) -> None:
    """Show a run with its nodes, or one node with its full result."""
    _check_scope(scope, node, f"astra runs show {run_id} --node NODE")
    with Client() as client:
        if node is not None:
            found = client.runs.get(run_id)
            scope = find_scope(found, scope)
            node_id = find_node(found, node, scope)
            if as_json:
                show_json(client.perform(requests.get_node(run_id, node_id, scope=scope).raw()))
            else:
                show_node(client, client.runs.node(run_id, node_id, scope=scope))
        elif as_json:
            show_json(client.perform(requests.get_run(run_id).raw()))
        else:
            run = client.runs.get(run_id)
            show_run(client, run, client.runs.definition(run_id))


def _check_scope(scope: str | None, node: str | None, instead: str) -> None:
    if scope is not None and node is None:
        raise unreadable("--scope needs a node", f"{instead} --scope {scope}")


@app.command()
def items(
    run_id: RunId,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Node id or label of the map")],
    scope: ScopePath = None,
    status: Annotated[
        NodeStatus | None, typer.Option(help="Filter by status, for example failed")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List the items of a map, in the order of its list."""
    with Client() as client:
        run = client.runs.get(run_id)
        scope = find_scope(run, scope)
        node_id = find_node(run, node, scope)
    show_list(
        partial(scope_requests.list_items, run_id, node_id, scope=scope, status=status),
        kind=Node,
        columns=("item", "status", "attempt", "worker", "result", "error", "scope"),
        row=_item_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No items",
    )


def _item_row(node: Node) -> tuple[object, ...]:
    result = "" if node.result is None else msgspec.json.encode(node.result).decode()
    return (
        node.item,
        node.status,
        node.attempt,
        node.worker_id or "",
        result if len(result) <= SHOWN_CHARS else f"{result[:SHOWN_CHARS]}…",
        node.error.code if node.error else "",
        node.scope_path or "",
    )


@app.command()
def watch(run_id: RunId, as_json: AsJson = False, patience: Patience = PATIENCE_S) -> None:
    """Follow a run until it ends. Exits with 0 if it succeeded, else with 1. ^C does not cancel the run."""
    with Client() as client:
        definition = client.runs.definition(run_id)
        follow(client, run_id, definition, as_json=as_json, to_stderr=False, patience_s=patience)
        show_end(client, run_id, definition, as_json=as_json)


@app.command()
def signal(
    run_id: RunId,
    name: Annotated[str, typer.Argument(help="Name that nodes wait for")],
    payload: Annotated[
        str, typer.Option(help="What the node gives on: JSON, or else text")
    ] = "null",
    key: Annotated[
        str | None, typer.Option(help="Key under which it counts once, however often it is sent")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal to a run: to the first node that waits for it, now or later."""
    try:
        value = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        value = payload
    wanted = message_requests.send_signal(run_id, name, value, idempotency_key=key)
    with Client() as client:
        told = client.perform(wanted.raw())
    answer(told, f"Signal {name} was sent to run {run_id}", as_json)


@app.command()
def signals(run_id: RunId, as_json: AsJson = False) -> None:
    """List the addresses at which systems outside send signals to a run."""
    with Client() as client:
        found = client.perform(message_requests.list_signals(run_id))
    rows = [(one.name, "open" if one.open else "closed", one.url) for one in found.items]
    if as_json:
        show_json(found)
    else:
        show_table(("NAME", "STATE", "ADDRESS"), rows)


@app.command()
def logs(
    run_id: RunId,
    node: NodeName = None,
    scope: ScopePath = None,
    level: Annotated[
        LogLevel | None, typer.Option(help="Least level. Output without one is info")
    ] = None,
    channel: Annotated[str | None, typer.Option(help="Channel, for example stderr")] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt number", min=1)] = None,
    text: Annotated[str | None, typer.Option(help="Text that is in the output")] = None,
    newest: Annotated[
        int | None, typer.Option(help="Number of last pieces of output, newest first", min=1)
    ] = None,
    follows: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until the run ends")
    ] = False,
    as_json: AsJson = False,
    patience: Patience = PATIENCE_S,
) -> None:
    """Print the output of the nodes of a run: log lines and streamed text."""
    with Client() as client:
        run = client.runs.get(run_id)
        scope = find_scope(run, scope)
        node_id = None if node is None else find_node(run, node, scope)
        output = NodeOutputPrinter(run.nodes, as_json)
        if follows:
            if channel or attempt or text or newest:
                raise unreadable(
                    "--follow takes --node and --level, and no other filter",
                    "leave out --follow, or the other filters",
                )
            cut = lambda why: note(f"reconnecting: {why}")  # noqa: E731
            for event in client.follow(run_id, patience_s=patience, on_cut=cut):
                if _is_of(event, node_id, scope):
                    _print_output(event, output, level)
        else:
            for line in client.runs.logs(
                run_id,
                node_id=node_id,
                level=level,
                scope=scope,
                channel=channel,
                attempt=attempt,
                text=text,
                newest=newest is not None,
                limit=newest,
            ):
                output.add(msgspec.to_builtins(line))
        output.end()


def _print_output(event: Event, output: NodeOutputPrinter, level: LogLevel | None) -> None:
    if event.type == "node.result.delta":
        if level is None or is_at_least(event.body.get("metadata"), level):
            output.add({"id": event.id, "occurredAt": event.occurred_at, **event.body})
    elif event.type == "node.state" and event.body.get("dropped"):
        output.add_dropped(event.body["nodeId"], event.body.get("scopePath"), event.body["dropped"])


def _is_of(event: Event, node_id: str | None, scope: str | None) -> bool:
    """Whether an event is about a node, and about what is inside of a scope."""
    body = event.body
    writer = body.get("middlewareNodeId") or body.get("nodeId")
    return node_id in (None, writer) and (scope is None or is_within(body.get("scopePath"), scope))


@app.command()
def story(
    run_id: RunId,
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="Node id or label")] = None,
    scope: ScopePath = None,
    as_json: AsJson = False,
) -> None:
    """Print the timeline of a node, or of all nodes."""
    _check_scope(scope, node, f"astra runs story {run_id} NODE")
    with Client() as client:
        run = client.runs.get(run_id)
        scope = find_scope(run, scope)
        chosen = [find_node(run, node, scope)] if node else [one.node_id for one in run.nodes]
        if len(chosen) > MOST_TOLD:
            raise unreadable(
                f"The run has {len(chosen)} nodes; at most {MOST_TOLD} timelines are shown together",
                f"name a node: astra runs story {run_id} NODE",
            )
        lines: list[dict[str, Any]] = []
        for node_id in chosen:
            try:
                lines += _timeline(client.runs.node(run_id, node_id, scope=scope))
            except errors.NotFound:
                if node is not None:  # else it has not begun, or is inside of a map
                    raise
    lines.sort(key=lambda line: str(line["at"]))
    if as_json:
        show_json({"runId": run_id, "story": lines})
        return
    for line in lines:
        typer.echo(f"{line['at']} {plain(line['label'])}: {plain(line['says'])}")


def _timeline(node: NodeDetail) -> list[dict[str, Any]]:
    label = node.label or node.node_id
    parts = (line.partition(" ") for line in node.story)
    return [
        {"at": at, "nodeId": node.node_id, "label": label, "says": says} for at, _, says in parts
    ]


@app.command()
def timeline(run_id: RunId, node: NodeName = None, as_json: AsJson = False) -> None:
    """List all attempts of all nodes, and what the nodes waited for."""
    with Client() as client:
        run = client.runs.get(run_id)
        node_id = None if node is None else find_node(run, node)
        labels = {one.node_id: one.label or one.node_id for one in run.nodes}
        entries: dict[tuple[object, ...], TimelineEntry] = {}
        for entry in client.runs.timeline(run_id, node_id=node_id):
            known = entries.get(entry.key)
            entries[entry.key] = entry if known is None else known.joined(entry)
    if as_json:
        show_json({"runId": run_id, "items": list(entries.values())})
        return
    rows = [_timeline_row(entry, labels) for entry in entries.values()]
    show_table(("AT", "NODE", "ATTEMPT", "STATUS", "WORKER", "DURATION", "REASON"), rows)


def _timeline_row(entry: TimelineEntry, labels: dict[str, str]) -> tuple[object, ...]:
    name = labels.get(entry.node_id, entry.node_id)
    at = entry.dispatched_at or entry.since or entry.finished_at or ""
    reason = entry.error.code if entry.error else ""
    if entry.waiting_for is not None:
        reason = f"{entry.waiting_for.kind}: {entry.waiting_for.detail}"
    return (
        at,
        name if entry.scope_path is None else f"{name} ({entry.scope_path})",
        entry.attempt or "",
        "waiting" if entry.kind == "wait" else entry.status,
        entry.worker_id or "",
        duration(entry.dispatched_at, entry.finished_at) if entry.dispatched_at else "",
        reason,
    )
