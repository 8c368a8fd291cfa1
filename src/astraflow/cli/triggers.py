"""`astra triggers …`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import values_of
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.client import trigger_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.triggers import Trigger, TriggerFire

app = command_group("List, enable, disable and run triggers of workflows.")

WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Workflow id")]
TriggerId = Annotated[str, typer.Argument(metavar="TRIGGER", help="Trigger id")]


@app.command("list")
def list_triggers(
    workflow: Annotated[str | None, typer.Option(help="Only of this workflow")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List triggers of saved workflows."""
    show_list(
        partial(requests.list_triggers, workflow_id=workflow),
        kind=Trigger,
        columns=("workflow", "trigger", "type", "enabled", "next"),
        row=lambda one: (
            one.workflow_id,
            one.id,
            one.type,
            "yes" if one.enabled else "no",
            one.next_times[0] if one.next_times else "",
        ),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No triggers",
    )


@app.command()
def show(workflow_id: WorkflowId, trigger_id: TriggerId, as_json: AsJson = False) -> None:
    """Show one trigger with its next times, and the path of a webhook."""
    import msgspec

    with Client() as client:
        raw = client.perform(requests.get_trigger(workflow_id, trigger_id).raw())
    if as_json:
        show_json(raw)
        return
    shown = msgspec.json.decode(raw)
    shown["settings"] = msgspec.json.encode(shown["settings"]).decode()
    shown["nextTimes"] = " ".join(shown.get("nextTimes", []))
    show_table(("what", "value"), list(shown.items()))


@app.command()
def enable(workflow_id: WorkflowId, trigger_id: TriggerId, as_json: AsJson = False) -> None:
    """Let a trigger start runs. Times and events from before do not count."""
    with Client() as client:
        changed = client.perform(requests.enable_trigger(workflow_id, trigger_id).raw())
    answer(changed, f"trigger {trigger_id} enabled", as_json)


@app.command()
def disable(workflow_id: WorkflowId, trigger_id: TriggerId, as_json: AsJson = False) -> None:
    """Keep a trigger from starting runs by itself."""
    with Client() as client:
        changed = client.perform(requests.disable_trigger(workflow_id, trigger_id).raw())
    answer(changed, f"trigger {trigger_id} disabled", as_json)


@app.command()
def run(
    workflow_id: WorkflowId,
    trigger_id: TriggerId,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", help="An input as NAME=VALUE; VALUE is JSON or text. Repeatable"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a run as the trigger would, and print its id."""
    import msgspec

    with Client() as client:
        made = client.perform(
            requests.run_trigger(workflow_id, trigger_id, values_of(given, "input")).raw()
        )
    answer(made, "run started", as_json, result=msgspec.json.decode(made)["runId"])


@app.command()
def history(
    workflow_id: WorkflowId,
    trigger_id: TriggerId,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List what a trigger has fired, newest first."""
    show_list(
        partial(requests.list_trigger_history, workflow_id, trigger_id),
        kind=TriggerFire,
        columns=("number", "scheduled", "cause", "outcome", "run", "reason"),
        row=lambda one: (
            one.number,
            one.scheduled_at,
            one.cause,
            one.outcome,
            one.run_id or "",
            one.reason or "",
        ),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="Nothing fired",
    )
