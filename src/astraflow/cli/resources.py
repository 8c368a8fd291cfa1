"""`astra resources …`: resources of workers, artifacts included."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.core.contract.resources import Resource

app = command_group("List, download and close resources of workers: files, sessions, models.")

ResourceId = Annotated[str, typer.Argument(metavar="RESOURCE", help="Resource id")]
OnWorker = Annotated[
    str | None,
    typer.Option(
        "--worker", help="Worker id; required if several workers have a resource with this id"
    ),
]


_CHOOSE = "choose another file with --out"


@app.command("list")
def list_resources(
    run: Annotated[str | None, typer.Option(help="Filter by run id")] = None,
    worker: Annotated[str | None, typer.Option(help="Filter by worker id")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="Filter by type")] = None,
    state: Annotated[
        str, typer.Option(help="Filter by state: ready, evicting, evicted, released, or all")
    ] = "ready",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List resources, newest first."""
    wanted = None if state == "all" else state
    show_list(
        partial(requests.list_resources, run_id=run, worker_id=worker, type=kind, state=wanted),
        kind=Resource,
        columns=("resource", "type", "state", "size", "worker", "run", "until"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No resources",
    )


def _row(one: Resource) -> tuple[object, ...]:
    size, until = size_text(one.size_bytes), one.expires_at
    return one.resource_id, one.type, one.state, size, one.worker_id, one.run_id, until


def size_text(size_bytes: int | None) -> str | None:
    """1536 as "1.5 KiB"."""
    if size_bytes is None:
        return None
    size, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


@app.command()
def show(resource_id: ResourceId, worker: OnWorker = None, as_json: AsJson = False) -> None:
    """Show one resource."""
    with Client() as client:
        raw = client.perform(requests.get_resource(resource_id, worker_id=worker).raw())
    if as_json:
        show_json(raw)
        return
    found: dict[str, object] = msgspec.json.decode(raw)
    show_table(("what", "value"), [(name, _plain(value)) for name, value in found.items()])


def _plain(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


@app.command()
def close(
    resource_id: ResourceId, worker: OnWorker = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Close a resource on its worker.

    A session is closed, a file is deleted.
    """
    confirm(f"Close {resource_id}?", yes)
    with Client() as client:
        client.resources.close(resource_id, worker_id=worker)
    shown = {"resourceId": resource_id, "status": "told"}
    answer(shown, f"Close requested: {resource_id}", as_json)


@app.command()
def extend(
    resource_id: ResourceId,
    seconds: Annotated[int, typer.Argument(min=1, help="Time to live in seconds, from now")],
    worker: OnWorker = None,
    as_json: AsJson = False,
) -> None:
    """Set the time to live of a resource, in seconds from now."""
    with Client() as client:
        request = requests.extend_resource(resource_id, seconds, worker_id=worker)
        raw = client.perform(request.raw())
    found = msgspec.json.decode(raw, type=Resource)
    answer(raw, f"{resource_id} expires at {found.expires_at}", as_json)


@app.command()
def download(
    resource_id: ResourceId,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file. Default: the artifact's name, in the current directory"),
    ] = None,
    worker: OnWorker = None,
    as_json: AsJson = False,
) -> None:
    """Download an artifact into a file.

    An interrupted download resumes, and the digest is verified.
    """
    with Client() as client:
        place = out or Path(_name_of(client.resources.get(resource_id, worker_id=worker)))
        if out is None and place.exists():
            raise unreadable(f"File exists: {place}", _CHOOSE)
        try:
            size = client.resources.download(resource_id, place, worker_id=worker)
        except OSError as problem:
            message = f"Cannot write {place}: {problem.strerror or problem}"
            raise unreadable(message, _CHOOSE) from problem
    shown = {"resourceId": resource_id, "path": str(place), "sizeBytes": size}
    answer(shown, f"Downloaded {size_text(size)}", as_json, result=str(place))


def _name_of(found: Resource) -> str:
    """The name of an artifact without any directory: only the user chooses where it is written."""
    told = str(found.metadata.get("name") or found.resource_id)
    return Path(told.replace("\\", "/")).name.lstrip(".") or "artifact"
