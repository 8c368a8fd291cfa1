"""`astra runs …`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from astraflow.cli.asking import Yes, confirm
from astraflow.cli.failing import note
from astraflow.cli.listing import Cursor, Limit, show_list
from astraflow.cli.running import Patience
from astraflow.cli.showing import AsJson, plain, show_json
from astraflow.cli.speech import Speech
from astraflow.cli.watching import duration, follow, show_end, show_node, show_run
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.client.stream import PATIENCE_S
from astraflow.core import errors
from astraflow.core.contract.runs import Run, RunSummary

__all__ = ["app"]

MOST_TOLD: int = 100
"""Nodes whose stories are told together; each is a request of its own."""

app = typer.Typer(
    help="Look at runs, watch them, cancel them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

RunId = Annotated[str, typer.Argument(metavar="RUN", help="the id of a run")]
NodeName = Annotated[str | None, typer.Option("--node", help="the id or the label of a node")]


@app.command("list")
def list_runs(
    status: Annotated[
        str | None, typer.Option(help="queued, running, succeeded, failed or cancelled")
    ] = None,
    workflow: Annotated[str | None, typer.Option(help="only of this workflow")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Runs, newest first."""
    with Client() as client:
        show_list(
            client,
            lambda count, after: requests.list_runs(count, after, status, workflow),
            kind=RunSummary,
            columns=("run", "workflow", "status", "created", "duration", "error"),
            row=_row,
            limit=limit,
            cursor=cursor,
            as_json=as_json,
            empty="no runs",
        )


def _row(run: RunSummary) -> tuple[object, ...]:
    status = "cancelling" if run.cancel_requested and not run.is_over else run.status
    took = duration(run.created_at, run.finished_at)
    error = run.error.code if run.error else ""
    return (run.run_id, run.name or run.workflow_id, status, run.created_at, took, error)


@app.command()
def show(run_id: RunId, node: NodeName = None, as_json: AsJson = False) -> None:
    """A run with its nodes, or one node with its whole result."""
    with Client() as client:
        if node is not None:
            node_id = _find(client.runs.get(run_id), node)
            if as_json:
                show_json(client.perform(requests.get_node(run_id, node_id).raw()))
            else:
                show_node(client, client.runs.node(run_id, node_id))
        elif as_json:
            show_json(client.perform(requests.get_run(run_id).raw()))
        else:
            run = client.runs.get(run_id)
            show_run(client, run, client.runs.definition(run_id))


@app.command()
def watch(run_id: RunId, as_json: AsJson = False, patience: Patience = PATIENCE_S) -> None:
    """Follow a run to its end. Ends with 0 if it succeeded, 1 if not; ^C does not stop the run."""
    with Client() as client:
        definition = client.runs.definition(run_id)
        follow(client, run_id, definition, as_json=as_json, to_stderr=False, patience_s=patience)
        show_end(client, run_id, definition, as_json=as_json)


@app.command()
def cancel(run_id: RunId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Stop a run. No new attempt starts from then on."""
    with Client() as client:
        run = client.runs.get(run_id, nodes=False)
        if not run.is_over:
            confirm(f"stop run {run_id}, which is {run.status}?", yes)
        told = client.perform(requests.cancel_run(run_id).raw())
    if as_json:
        show_json(told)
        return
    import msgspec

    status = msgspec.json.decode(told, type=Run).status
    note(f"run {run_id} is {status if status == 'cancelled' else 'being cancelled'}")


@app.command()
def logs(
    run_id: RunId,
    node: NodeName = None,
    follows: Annotated[
        bool, typer.Option("--follow", "-f", help="go on until the run ends")
    ] = False,
    as_json: AsJson = False,
    patience: Patience = PATIENCE_S,
) -> None:
    """What the nodes of a run said: log lines, and text as it was made."""
    with Client() as client:
        run = client.runs.get(run_id)
        node_id = None if node is None else _find(run, node)
        speech = Speech({one.node_id: one.label or one.node_id for one in run.nodes}, as_json)
        if follows:
            cut = lambda why: note(f"reconnecting: {why}")  # noqa: E731
            for event in client.follow(run_id, patience_s=patience, on_cut=cut):
                if node_id not in (None, event.body.get("nodeId")):
                    continue
                if event.type == "node.result.delta":
                    speech.hear({"id": event.id, "occurredAt": event.occurred_at, **event.body})
                elif event.type == "node.state" and event.body.get("dropped"):
                    speech.miss(event.body["nodeId"], event.body["dropped"])
        else:
            for line in client.runs.logs(run_id, node_id=node_id):
                import msgspec

                speech.hear(msgspec.to_builtins(line))
        speech.end()


@app.command()
def story(
    run_id: RunId,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="the id or the label of a node")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What happened to a node, or to all nodes, sentence by sentence."""
    with Client() as client:
        run = client.runs.get(run_id)
        chosen = [one for one in run.nodes if node is None or one.node_id == _find(run, node)]
        if len(chosen) > MOST_TOLD:
            raise errors.Refused(
                errors.INPUT_UNREADABLE,
                f"the run has {len(chosen)} nodes, more than are told together: {MOST_TOLD}",
                detail={"hint": f"name one of them: astra runs story {run_id} NODE"},
            )
        lines: list[dict[str, Any]] = []
        for one in chosen:
            told = client.runs.node(run_id, one.node_id).story
            lines += [_sentence(one.label or one.node_id, one.node_id, line) for line in told]
    lines.sort(key=lambda line: str(line["at"]))
    if as_json:
        show_json({"runId": run_id, "story": lines})
        return
    for line in lines:
        typer.echo(f"{line['at']} {plain(line['label'])}: {plain(line['says'])}")


def _sentence(label: str, node_id: str, line: str) -> dict[str, Any]:
    at, _, says = line.partition(" ")
    return {"at": at, "nodeId": node_id, "label": label, "says": says}


def _find(run: Run, name: str) -> str:
    try:
        return run.node(name).node_id
    except KeyError:
        raise errors.NotFound(
            errors.RUN_NODE_NOT_FOUND, f"run {run.run_id} has no such node: {name}"
        ) from None
