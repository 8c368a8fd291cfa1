"""`astra workflows pin`, `unpin` and `pins`: results that stand in for nodes while a workflow is developed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from astraflow.cli.exit_codes import note
from astraflow.cli.inputs import read_object, unreadable
from astraflow.cli.output import AsJson, answer, plain, show_json, show_table
from astraflow.cli.versions import WorkflowId
from astraflow.client import pin_requests
from astraflow.client.blocking import Client
from astraflow.core import errors

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Node id or label")]
MAX_SHOWN_CHARS: int = 80


def pin(
    workflow_id: WorkflowId,
    node: NodeName,
    run_id: Annotated[
        str | None, typer.Option("--run", help="Run whose result of the node is pinned")
    ] = None,
    result: Annotated[str | None, typer.Option(help="The result, as a JSON object")] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The result, in a file; - for stdin")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pin the result of a node: runs with --pinned have it in place of running the node. Triggers never use it."""
    if sum(one is not None for one in (run_id, result, file)) != 1:
        raise unreadable("Give one of --run, --result and --file")
    value = read_object(file) if file is not None else _object(result)
    with Client() as client:
        node_id = _find(client, workflow_id, node)
        made = client.workflows.pin(workflow_id, node_id, value, run_id=run_id)
    for one in made.warnings:
        note(f"warning: the result does not fit the schema of the node: {plain(one)}")
    answer(msgspec.to_builtins(made), f"Pinned the result of {plain(node)}", as_json)


def unpin(workflow_id: WorkflowId, node: NodeName, as_json: AsJson = False) -> None:
    """Remove the pinned result of a node."""
    with Client() as client:
        node_id = _find(client, workflow_id, node)
        client.workflows.unpin(workflow_id, node_id)
    shown = {"workflowId": workflow_id, "nodeId": node_id}
    answer(shown, f"Removed the pinned result of {plain(node)}", as_json)


def list_pins(workflow_id: WorkflowId, as_json: AsJson = False) -> None:
    """List the pinned results of a workflow."""
    with Client() as client:
        if as_json:
            show_json(client.perform(pin_requests.list_pins(workflow_id).raw()))
            return
        found = client.workflows.pins(workflow_id).items
        labels = _labels(client, workflow_id) if found else {}
    rows = (
        (labels.get(one.node_id) or one.node_id, one.pinned_at, one.pinned_by, one.from_run, _short(one.result))
        for one in found
    )  # fmt: skip
    columns = ("node", "pinned", "by", "from run", "result")
    show_table(columns, rows, empty="No pinned results")


def _short(result: Any) -> str:
    text = plain(msgspec.json.encode(result).decode())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise unreadable("--result is no JSON object", hint="""write --result '{"value": 1}'""")
    return found


def _labels(client: Client, workflow_id: str) -> dict[str, str]:
    """The labels of the nodes of the draft, else of the newest version, by id."""
    try:
        definition = client.workflows.draft(workflow_id).definition
    except errors.NotFound:
        definition = client.workflows.get(workflow_id).definition
    nodes = definition.get("nodes") if isinstance(definition, dict) else None
    found = (one for one in nodes or () if isinstance(one, dict))
    return {str(one.get("id")): str(one.get("label") or "") for one in found}


def _find(client: Client, workflow_id: str, name: str) -> str:
    """The id of a node that is named by its id or its label."""
    labels = _labels(client, workflow_id)
    if name in labels:
        return name
    found = [node_id for node_id, label in labels.items() if label == name]
    if len(found) > 1:
        raise unreadable(f"{len(found)} nodes have the label {name}: use the id of one")
    return found[0] if found else name
