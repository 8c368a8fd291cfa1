"""`astra workflows …`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
import typer

from astraflow.cli import pins, versions, workflow_files, workflow_sync
from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import note
from astraflow.cli.inputs import read_definition, unreadable
from astraflow.cli.output import AsJson, answer, plain
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.cli.run_inputs import told_inputs
from astraflow.cli.versions import WorkflowId
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.workflows import Workflow, WorkflowSummary

app = command_group("List, save, publish, compare, restore, exchange and delete workflows.")
app.command("draft")(versions.draft)
app.command("drafts")(versions.list_drafts)
app.command("publish")(versions.publish)
app.command("history")(versions.history)
app.command("diff")(versions.diff)
app.command("restore")(versions.restore)
app.command("export")(workflow_files.export)
app.command("import")(workflow_files.import_files)
app.command("sync")(workflow_sync.sync)
app.command("pin")(pins.pin)
app.command("unpin")(pins.unpin)
app.command("pins")(pins.list_pins)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A workflow definition (JSON), - for stdin")
]


@app.command("list")
def list_workflows(
    text: Annotated[str | None, typer.Option(help="Filter by a part of the name or the id")] = None,
    package: Annotated[
        str | None, typer.Option(help="Filter by a package that is used: NAME or NAME@VERSION")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List saved workflows, last changed first."""
    show_list(
        partial(requests.list_workflows, text=text, package=package),
        kind=WorkflowSummary,
        columns=("workflow", "name", "version", "changed", "by"),
        row=lambda one: (one.id, one.name, one.version, one.updated_at, one.updated_by),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No saved workflows",
    )


@app.command()
def show(
    workflow_id: WorkflowId,
    version: Annotated[int | None, typer.Option(min=1, help="Version. Default: the newest")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the definition of a saved workflow; at a terminal it is formatted. Its inputs and outputs go to stderr."""
    from astraflow.cli.output import is_terminal

    with Client() as client:
        found = bytes(client.perform(requests.get_workflow(workflow_id, version).raw()))
    if not as_json:
        for line in told_inputs(msgspec.json.decode(found)):
            note(plain(line))
    if is_terminal() and not as_json:
        found = msgspec.json.format(found, indent=2)
    typer.echo(found.decode())


@app.command()
def save(
    file: File,
    if_version: Annotated[
        int | None,
        typer.Option(
            min=0, help="Save only if this is the newest version; 0: only if the workflow is new"
        ),
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Save the draft, which may have errors, and no version")
    ] = False,
    note: Annotated[str, typer.Option("--note", help="What is new in this version")] = "",
    as_json: AsJson = False,
) -> None:
    """Save a workflow under the id in its definition, as a new workflow or a new version."""
    given = read_definition(file)
    workflow_id = given.definition.get("id")
    if not isinstance(workflow_id, str):
        hint = "add an id, for example from `python3 -m uuid`"
        raise unreadable(f"The definition has no id: {file}", hint)
    if draft and (note or if_version is not None):
        raise unreadable("--draft saves no version: --note and --if-version are for versions")
    with Client() as client:
        if draft:
            kept = client.workflows.save_draft(workflow_id, given.raw)
            said = f"Saved as revision {kept.revision} of the draft"
            answer(msgspec.to_builtins(kept), said, as_json, result=workflow_id)
            return
        saved = _save(client, workflow_id, given.raw, if_version, note)
    shown = {"id": workflow_id, "version": saved.version}
    answer(shown, f"Saved as version {saved.version}", as_json, result=workflow_id)


def _save(
    client: Client, workflow_id: str, raw: bytes, if_version: int | None, note: str
) -> Workflow:
    if if_version == 0:
        return client.workflows.create(raw, note=note)
    try:
        return client.workflows.save(workflow_id, raw, if_version=if_version, note=note)
    except errors.NotFound:
        if if_version is not None:
            raise
    return client.workflows.create(raw, note=note)


@app.command()
def delete(workflow_id: WorkflowId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a workflow with all its versions and its draft. Its runs are kept."""
    with Client() as client:
        confirm(_question(client, workflow_id), yes)
        client.workflows.delete(workflow_id)
    answer({"id": workflow_id, "deleted": True}, f"Deleted {workflow_id}", as_json)


def _question(client: Client, workflow_id: str) -> str:
    try:
        found = client.workflows.get(workflow_id)
    except errors.NotFound:
        draft = client.workflows.draft(workflow_id)
        return f"Delete the draft {draft.name or workflow_id!r}?"
    name = (found.definition.get("metadata") or {}).get("name") or workflow_id
    return f"Delete {name!r} with all its {found.version} versions?"


@app.command()
def validate(file: File, as_json: AsJson = False) -> None:
    """Report every problem of a definition. Exits with 1 if there is one."""
    given = read_definition(file)
    with Client() as client:
        found = client.workflows.validate(given.raw)
    for one in found.warnings:
        note(f"warning: {plain(one.pointer)}: {plain(one.message)}")
    answer(msgspec.to_builtins(found), f"Valid: {file}", as_json)
