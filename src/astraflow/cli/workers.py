"""`astra workers …`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from astraflow.cli.failing import note
from astraflow.cli.listing import Cursor, Limit, show_list
from astraflow.cli.showing import AsJson, show_json, show_table
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.workers import Worker

__all__ = ["app"]

app = typer.Typer(
    help="Workers: list, drain, let go of runs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

WorkerName = Annotated[
    str, typer.Argument(metavar="WORKER", help="the id of a worker, or its name if no other has it")
]


@app.command("list")
def list_workers(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """Workers that are or were here."""
    with Client() as client:
        show_list(
            client,
            requests.list_workers,
            kind=Worker,
            columns=("worker", "name", "status", "busy", "packages", "labels", "heard"),
            row=_row,
            limit=limit,
            cursor=cursor,
            as_json=as_json,
            empty="no workers; start one with `astra worker`",
        )


def _row(worker: Worker) -> tuple[object, ...]:
    busy = f"{worker.inflight}/{worker.max_parallel}"
    labels = ",".join(f"{key}={value}" for key, value in worker.labels.items())
    return (
        worker.worker_id,
        worker.name,
        worker.status,
        busy,
        _packages(worker),
        labels,
        worker.last_heartbeat_at,
    )


def _packages(worker: Worker) -> str:
    """Those on their way, or that did not get there, with how far they are."""
    return ", ".join(
        f"{one.name} {one.version}" + ("" if one.status == "installed" else f" ({one.status})")
        for one in worker.packages
    )


@app.command()
def show(name: WorkerName, as_json: AsJson = False) -> None:
    """One worker."""
    with Client() as client:
        worker_id = _find(client, name)
        if as_json:
            show_json(client.perform(requests.get_worker(worker_id).raw()))
            return
        worker = client.workers.get(worker_id)
    import msgspec

    shown = {**msgspec.to_builtins(worker), "packages": _packages(worker)}
    show_table(("what", "value"), list(shown.items()))


@app.command()
def drain(
    name: WorkerName,
    reason: Annotated[str | None, typer.Option(help="why, for whoever looks later")] = None,
    deadline: Annotated[
        float | None, typer.Option(min=0, help="seconds that what runs may take")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a worker finish what it runs, and give it nothing new."""
    command: dict[str, Any] = {"type": "drain"}
    if reason is not None:
        command["reason"] = reason
    if deadline is not None:
        command["deadlineMs"] = round(deadline * 1000)
    _tell(name, command, "drains", as_json)


@app.command()
def undrain(name: WorkerName, as_json: AsJson = False) -> None:
    """Give a worker work again."""
    _tell(name, {"type": "undrain"}, "takes work again", as_json)


@app.command()
def rebind(name: WorkerName, as_json: AsJson = False) -> None:
    """Let the runs that keep to a worker find others."""
    _tell(name, {"type": "rebind"}, "lets go of its runs", as_json)


def _tell(name: str, command: dict[str, Any], says: str, as_json: bool) -> None:
    with Client() as client:
        worker_id = _find(client, name)
        told = client.perform(requests.command_worker(worker_id, command).raw())
    if as_json:
        show_json(told)
    else:
        note(f"{name} {says}")


def _find(client: Client, name: str) -> str:
    """The id of a worker: names are for people, and two may have the same."""
    found = [one for one in client.workers.iterate() if name in (one.worker_id, one.name)]
    exact = [one for one in found if one.worker_id == name]
    here = [one for one in found if one.status not in ("lost", "offline")]
    for chosen in (exact, here, found):
        if len(chosen) == 1:
            return chosen[0].worker_id
    if found:
        ids = ", ".join(one.worker_id for one in found)
        raise errors.Refused(
            errors.INPUT_UNREADABLE,
            f"several workers are named {name}: {ids}",
            detail={"hint": "give the id of one of them"},
        )
    raise errors.NotFound(errors.WORKER_NOT_FOUND, f"there is no such worker: {name}")
