"""`astra resources …`: what workers hold, and the artifacts among it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from astraflow.cli.asking import Yes, confirm
from astraflow.cli.failing import note
from astraflow.cli.listing import Cursor, Limit, show_list
from astraflow.cli.showing import AsJson, show_json, show_table
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.resources import Resource

__all__ = ["app"]

app = typer.Typer(
    help="What workers hold: files, sessions, models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

ResourceId = Annotated[str, typer.Argument(metavar="RESOURCE", help="the id of a resource")]
OnWorker = Annotated[
    str | None, typer.Option("--worker", help="the worker, if several have one of this id")
]


@app.command("list")
def list_resources(
    run: Annotated[str | None, typer.Option(help="only those of this run")] = None,
    worker: Annotated[str | None, typer.Option(help="only those on this worker")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="only those of this type")] = None,
    state: Annotated[
        str, typer.Option(help="ready, evicting, evicted, released, or all")
    ] = "ready",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """What workers hold, newest first."""
    wanted = None if state == "all" else state
    with Client() as client:
        show_list(
            client,
            lambda count, after: requests.list_resources(count, after, run, worker, kind, wanted),
            kind=Resource,
            columns=("resource", "type", "state", "size", "worker", "run", "until"),
            row=_row,
            limit=limit,
            cursor=cursor,
            as_json=as_json,
            empty="no resources",
        )


def _row(one: Resource) -> tuple[object, ...]:
    return (
        one.resource_id,
        one.type,
        one.state,
        size_text(one.size_bytes),
        one.worker_id,
        one.run_id,
        one.expires_at,
    )


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
    """One resource."""
    with Client() as client:
        raw = client.perform(requests.get_resource(resource_id, worker).raw())
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
    """Have its worker let go of it.

    A session is closed, a file deleted.
    """
    confirm(f"let go of {resource_id}?", yes)
    with Client() as client:
        client.resources.close(resource_id, worker_id=worker)
    if as_json:
        show_json({"resourceId": resource_id, "status": "told"})
    else:
        note(f"its worker is told to let go of it: {resource_id}")


@app.command()
def extend(
    resource_id: ResourceId,
    seconds: Annotated[int, typer.Argument(min=1, help="how long it lives from now")],
    worker: OnWorker = None,
    as_json: AsJson = False,
) -> None:
    """Let it live for so long from now."""
    with Client() as client:
        raw = client.perform(requests.extend_resource(resource_id, worker, seconds).raw())
    if as_json:
        show_json(raw)
        return
    found = msgspec.json.decode(raw, type=Resource)
    note(f"it lives until {found.expires_at}: {resource_id}")


@app.command()
def download(
    resource_id: ResourceId,
    out: Annotated[Path | None, typer.Option(help="the file to write; its own name here")] = None,
    worker: OnWorker = None,
    as_json: AsJson = False,
) -> None:
    """Fetch an artifact into a file.

    What breaks off goes on, and the digest is checked.
    """
    with Client() as client:
        place = out or Path(_name_of(client.resources.get(resource_id, worker_id=worker)))
        if out is None and place.exists():
            raise errors.Refused(
                errors.INPUT_UNREADABLE,
                f"there is something already: {place}",
                detail={"hint": "name another file with --out"},
            )
        try:
            size = client.resources.download(resource_id, place, worker_id=worker)
        except OSError as problem:
            message = f"cannot be written: {problem.strerror or problem}: {place}"
            hint = "name another file with --out"
            raise errors.Refused(
                errors.INPUT_UNREADABLE, message, detail={"hint": hint}
            ) from problem
    if as_json:
        show_json({"resourceId": resource_id, "path": str(place), "sizeBytes": size})
    else:
        typer.echo(str(place))
        note(f"{size_text(size)} fetched")


def _name_of(found: Resource) -> str:
    """Its name without any folder: where it is written is the user's to say."""
    told = str(found.metadata.get("name") or found.resource_id)
    return Path(told.replace("\\", "/")).name.lstrip(".") or "artifact"
