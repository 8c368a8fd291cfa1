"""`astra workers …`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.client import requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.workers import Worker

app = command_group("List, drain and rebind workers.")

WorkerName = Annotated[
    str, typer.Argument(metavar="WORKER", help="Worker id, or a name that only one worker has")
]


@app.command("list")
def list_workers(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List workers, connected or not."""
    show_list(
        requests.list_workers,
        kind=Worker,
        columns=("worker", "name", "status", "busy", "packages", "labels", "heard"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No workers; start one with `astra worker`",
    )


def _row(worker: Worker) -> tuple[object, ...]:
    busy = f"{worker.inflight}/{worker.max_parallel}"
    labels = ",".join(f"{key}={value}" for key, value in worker.labels.items())
    heard = worker.last_heartbeat_at
    return worker.worker_id, worker.name, worker.status, busy, _packages(worker), labels, heard


def _packages(worker: Worker) -> str:
    """The packages of a worker; the status of those that are not installed."""
    return ", ".join(
        f"{one.name} {one.version}" + ("" if one.status == "installed" else f" ({one.status})")
        for one in worker.packages
    )


@app.command()
def show(name: WorkerName, as_json: AsJson = False) -> None:
    """Show one worker: what it offers, how busy its machine is, and what it runs now."""
    with Client() as client:
        worker_id = _find(client, name)
        if as_json:
            show_json(client.perform(requests.get_worker(worker_id).raw()))
            return
        worker = client.workers.get(worker_id)
    import msgspec

    shown = {
        **msgspec.to_builtins(worker),
        "packages": _packages(worker),
        "runtimes": ", ".join(worker.runtimes),
        "features": ", ".join(worker.features),
        "attempts": "\n".join(
            f"{one.run_id} {one.node_type} {one.node_id} attempt {one.attempt}"
            for one in worker.attempts
        ),
        "handlers": ", ".join(one.node_type for one in worker.handlers),
    }
    show_table(("what", "value"), list(shown.items()))


@app.command()
def drain(
    name: WorkerName,
    reason: Annotated[str | None, typer.Option(help="Reason, for the audit log")] = None,
    deadline: Annotated[
        float | None, typer.Option(min=0, help="Seconds that running attempts may take")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Drain a worker: it finishes its attempts and receives no new ones."""
    command: dict[str, Any] = {"type": "drain"}
    if reason is not None:
        command["reason"] = reason
    if deadline is not None:
        command["deadlineMs"] = round(deadline * 1000)
    _tell(name, command, "is draining", as_json)


@app.command()
def undrain(name: WorkerName, as_json: AsJson = False) -> None:
    """End the drain of a worker."""
    _tell(name, {"type": "undrain"}, "accepts attempts again", as_json)


@app.command()
def rebind(name: WorkerName, as_json: AsJson = False) -> None:
    """Release the runs that are bound to a worker, so that other workers can take them."""
    _tell(name, {"type": "rebind"}, "released its runs", as_json)


def _tell(name: str, command: dict[str, Any], says: str, as_json: bool) -> None:
    with Client() as client:
        worker_id = _find(client, name)
        told = client.perform(requests.command_worker(worker_id, command).raw())
    answer(told, f"{name} {says}", as_json)


def _find(client: Client, name: str) -> str:
    """The id of a worker by id or name; several workers may have one name."""
    found = [one for one in client.workers.iterate() if name in (one.worker_id, one.name)]
    exact = [one for one in found if one.worker_id == name]
    here = [one for one in found if one.status not in ("lost", "offline")]
    for chosen in (exact, here, found):
        if len(chosen) == 1:
            return chosen[0].worker_id
    if found:
        ids = ", ".join(one.worker_id for one in found)
        raise unreadable(f"Several workers are named {name}: {ids}", "use the id of one of them")
    raise errors.NotFound(errors.WORKER_NOT_FOUND, f"No worker {name}")
