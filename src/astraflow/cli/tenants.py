"""`astra tenants …`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import access_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.tenants import Tenant

app = command_group("Create, limit, suspend and resume tenants.")

Name = Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant")]
NONE = "none"
Weight = Annotated[
    float | None, typer.Option(min=0.001, help="Share beside other tenants", show_default="1")
]
MaxRuns = Annotated[str | None, typer.Option(help="Active runs, or none for no limit")]
MaxTasks = Annotated[str | None, typer.Option(help="Tasks of active runs, or none")]
MaxWorkers = Annotated[str | None, typer.Option(help="Connected workers, or none")]
MaxDisk = Annotated[str | None, typer.Option(help="Bytes of kept files, or none")]
MaxMemory = Annotated[str | None, typer.Option(help="Bytes of objects kept in memory, or none")]
RequestRate = Annotated[str | None, typer.Option(help="Requests in a second, or none")]
DrainMem = Annotated[
    str | None, typer.Option(help="Percent of memory at which its workers get no new work, or none")
]
DrainDisk = Annotated[
    str | None, typer.Option(help="Percent of disk at which its workers get no new work, or none")
]


def _quotas(weight: float | None, **given: str | None) -> dict[str, Any]:
    """The quotas that were named. Raises: Refused, naming the option."""
    found: dict[str, Any] = {} if weight is None else {"weight": weight}
    for name, text in given.items():
        if text is not None:
            found[name] = None if text == NONE else _number(name, text)
    return found


def _number(name: str, text: str) -> float:
    try:
        return (
            float(text)
            if name in ("requests_per_second", "drain_mem_pct", "drain_disk_pct")
            else int(text)
        )
    except ValueError:
        option = "--" + name.replace("_", "-")
        raise unreadable(f"Not a number for {option}: {text}", "write a number, or none") from None


@app.command()
def create(
    name: Name,
    weight: Weight = None,
    max_runs: MaxRuns = None,
    max_tasks: MaxTasks = None,
    max_workers: MaxWorkers = None,
    max_disk_bytes: MaxDisk = None,
    max_memory_bytes: MaxMemory = None,
    requests_per_second: RequestRate = None,
    drain_mem_pct: DrainMem = None,
    drain_disk_pct: DrainDisk = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant."""
    quotas = _quotas(
        weight,
        max_runs=max_runs,
        max_tasks=max_tasks,
        max_workers=max_workers,
        max_disk_bytes=max_disk_bytes,
        max_memory_bytes=max_memory_bytes,
        requests_per_second=requests_per_second,
        drain_mem_pct=drain_mem_pct,
        drain_disk_pct=drain_disk_pct,
    )
    with Client() as client:
        made = client.tenants.create(name, **quotas)
    answer(made, f"Created tenant {made.tenant}", as_json)


@app.command("set")
def change(
    name: Name,
    weight: Weight = None,
    max_runs: MaxRuns = None,
    max_tasks: MaxTasks = None,
    max_workers: MaxWorkers = None,
    max_disk_bytes: MaxDisk = None,
    max_memory_bytes: MaxMemory = None,
    requests_per_second: RequestRate = None,
    drain_mem_pct: DrainMem = None,
    drain_disk_pct: DrainDisk = None,
    as_json: AsJson = False,
) -> None:
    """Change what a tenant may use. What is not named stays."""
    quotas = _quotas(
        weight,
        max_runs=max_runs,
        max_tasks=max_tasks,
        max_workers=max_workers,
        max_disk_bytes=max_disk_bytes,
        max_memory_bytes=max_memory_bytes,
        requests_per_second=requests_per_second,
        drain_mem_pct=drain_mem_pct,
        drain_disk_pct=drain_disk_pct,
    )
    with Client() as client:
        changed = client.tenants.change(name, **quotas)
    answer(changed, f"Changed tenant {name}", as_json)


@app.command("list")
def list_tenants(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List tenants by name."""
    show_list(
        requests.list_tenants,
        kind=Tenant,
        columns=("tenant", "state", "weight", "runs", "tasks", "workers"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No tenants",
    )


def _row(one: Tenant) -> tuple[object, ...]:
    state = "suspended" if one.suspended else "active"
    use = one.use
    used = (
        _of(None if use is None else use.runs, one.max_runs),
        _of(None if use is None else use.tasks, one.max_tasks),
        _of(None if use is None else use.workers, one.max_workers),
    )
    return one.tenant, state, f"{one.weight:g}", *used


def _of(used: int | None, limit: int | None) -> str:
    """`used` None: another scheduler knows."""
    known = "?" if used is None else str(used)
    return known if limit is None else f"{known}/{limit}"


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a tenant, its quotas and what it uses."""
    with Client() as client:
        found = client.tenants.get(name)
    if as_json:
        answer(found, "", as_json)
        return
    shown = msgspec.to_builtins(found)
    used = shown.pop("use")
    rows = [*shown.items(), *((f"used {key}", value) for key, value in used.items())]
    show_table(("what", "value"), rows)


@app.command()
def suspend(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Suspend a tenant: no runs, no logins, no sessions. What is active waits."""
    confirm(f"Suspend tenant {name}?", yes)
    with Client() as client:
        changed = client.tenants.suspend(name)
    answer(changed, f"{name} is suspended", as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Let a suspended tenant go on."""
    with Client() as client:
        changed = client.tenants.resume(name)
    answer(changed, f"{name} goes on", as_json)


@app.command()
def lanes(
    name: Name,
    count: Annotated[
        int | None, typer.Argument(min=1, max=64, help="Lanes that take new runs")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the lanes of a tenant, or let it have so many. Each has an engine of its own; needs PostgreSQL."""
    with Client() as client:
        found = (
            client.tenants.lanes(name) if count is None else client.tenants.set_lanes(name, count)
        )
    if as_json:
        answer(found, "", as_json)
        return
    rows = [
        (
            one.lane,
            one.state,
            one.shard,
            one.node or "-",
            "?" if one.waiting is None else one.waiting,
        )
        for one in found.lanes
    ]
    show_table(("lane", "state", "shard", "node", "waiting"), rows)
