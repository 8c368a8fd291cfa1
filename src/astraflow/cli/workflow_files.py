"""`astra workflows export|import`: one JSON file for each workflow."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer

from astraflow.cli.exit_codes import note
from astraflow.cli.inputs import read_definition, unreadable
from astraflow.cli.output import AsJson, answer, show_json
from astraflow.cli.versions import Note
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.json_diff import is_equal
from astraflow.core.workflow.canonical import canonical, file_name, with_new_ids


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file or nothing. Raises: Refused."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise unreadable(f"Cannot write {path}: {error.strerror}") from error


def export(
    workflow_ids: Annotated[
        list[str] | None, typer.Argument(metavar="WORKFLOW", help="Workflow ids. Default: all")
    ] = None,
    folder: Annotated[Path, typer.Option("--to", help="Folder for the files")] = Path(),
    version: Annotated[int | None, typer.Option(min=1, help="Version. Default: the newest")] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Export the draft")] = False,
    as_json: AsJson = False,
) -> None:
    """Write workflows into files, one for each, with sorted keys; print their names."""
    if (version is not None or draft) and len(workflow_ids or ()) != 1:
        raise unreadable("--version and --draft are for one workflow: name it")
    if version is not None and draft:
        raise unreadable("--version and --draft exclude each other")
    written: list[dict[str, str]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unreadable(f"Cannot make {folder}: {error.strerror}") from error
    with Client() as client:
        for known in workflow_ids or [one.id for one in client.workflows.iterate()]:
            document: dict[str, Any] = (
                client.workflows.draft(known).definition
                if draft
                else client.workflows.get(known, version).definition
            )
            path = folder / file_name(document)
            write_file(path, canonical(document))
            written.append({"id": known, "file": str(path)})
    if as_json:
        show_json({"items": written})
        return
    for one in written:
        typer.echo(one["file"])
    note(f"Exported {len(written)} workflows")


def import_files(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Workflow definitions (JSON)")],
    new_ids: Annotated[
        bool, typer.Option("--new-ids", help="Give the workflow and its nodes new ids: a copy")
    ] = False,
    on_conflict: Annotated[
        str,
        typer.Option(
            help="If there is another workflow of the id: fail, or save a version or the draft, or skip"
        ),
    ] = "fail",
    remark: Note = "",
    as_json: AsJson = False,
) -> None:
    """Save workflows from files, under the ids in them or under new ones. What is stored already is not saved again."""
    if on_conflict not in ("fail", "version", "draft", "skip"):
        raise unreadable(f"--on-conflict is fail, version, draft or skip: {on_conflict!r}")
    given = [_read(file, new_ids=new_ids) for file in files]
    done: list[dict[str, Any]] = []
    with Client() as client:
        for file, raw, document in given:
            done.append({"file": file, **_import(client, file, raw, document, on_conflict, remark)})
    said = "\n".join(f"{one['file']}: {one['outcome']} {one['id']}" for one in done)
    answer({"items": done}, said, as_json)


def _read(file: str, *, new_ids: bool) -> tuple[str, bytes, dict[str, Any]]:
    found = read_definition(file)
    document = dict(found.definition)
    nodes = document.get("nodes")
    if not isinstance(document.get("id"), str) or not isinstance(nodes, list):
        raise unreadable(f"{file} is no workflow: it has no id or no nodes")
    if not new_ids:
        return file, found.raw, document
    if not all(isinstance(node, dict) and isinstance(node.get("id"), str) for node in nodes):
        raise unreadable(f"{file}: a node has no id")
    document = with_new_ids(document, lambda: str(uuid.uuid4()))
    return file, canonical(document), document


def _import(
    client: Client, file: str, raw: bytes, document: dict[str, Any], on_conflict: str, remark: str
) -> dict[str, Any]:
    known: str = document["id"]
    try:
        stored = client.workflows.get(known)
    except errors.NotFound:
        made = client.workflows.create(raw, note=remark)
        return {"id": known, "outcome": "created", "version": made.version}
    if is_equal(stored.definition, document):
        return {"id": known, "outcome": "unchanged", "version": stored.version}
    if on_conflict == "fail":
        raise errors.Conflict(
            errors.WORKFLOW_CONFLICT,
            f"{file}: there is another workflow of this id, at version {stored.version}: {known}",
            detail={"hint": "--on-conflict version, draft or skip decides; --new-ids makes a copy"},
        )
    if on_conflict == "skip":
        return {"id": known, "outcome": "skipped", "version": stored.version}
    if on_conflict == "draft":
        kept = client.workflows.save_draft(known, raw, if_revision=0)
        return {"id": known, "outcome": "saved as draft", "revision": kept.revision}
    saved = client.workflows.save(known, raw, if_version=stored.version, note=remark)
    return {"id": known, "outcome": "saved as version", "version": saved.version}
