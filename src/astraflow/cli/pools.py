"""`astra pools …`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import pool_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.pools import HttpPool

app = command_group("List, create, pause and delete HTTP worker pools.")

PoolName = Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool")]
_KEPT = ("name", "workerId", "inflight", "hasSecret", "updatedAt", "updatedBy")
"""What a pool shows and its settings do not have."""


@app.command("list")
def list_pools(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List HTTP worker pools."""
    show_list(
        requests.list_pools,
        kind=HttpPool,
        columns=("pool", "dispatcher", "url", "busy", "packages", "paused"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No pools; create one with `astra pools create`",
    )


def _row(pool: HttpPool) -> tuple[object, ...]:
    busy = f"{pool.inflight}/{pool.max_parallel}"
    packages = ", ".join(f"{one.name} {one.version}" for one in pool.packages)
    return pool.name, pool.dispatcher, pool.url, busy, packages, "yes" if pool.is_paused else "no"


@app.command()
def show(name: PoolName, as_json: AsJson = False) -> None:
    """Show one pool."""
    with Client() as client:
        if as_json:
            show_json(client.perform(requests.get_pool(name).raw()))
            return
        pool = client.pools.get(name)
    import msgspec

    show_table(("what", "value"), list(msgspec.to_builtins(pool).items()))


@app.command()
def create(
    name: PoolName,
    url: Annotated[str, typer.Option(help="Where tasks are pushed to")],
    package: Annotated[
        list[str], typer.Option(help="Package that its workers run, as NAME or NAME==VERSION")
    ],
    dispatcher: Annotated[str, typer.Option(help="http, cloud_tasks or nats")] = "http",
    max_parallel: Annotated[int, typer.Option(help="Attempts under way at once")] = 10,
    label: Annotated[
        list[str] | None, typer.Option(help="A label as NAME=VALUE. Repeatable")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="A setting of the dispatcher as NAME=VALUE. Repeatable")
    ] = None,
    heartbeat_interval: Annotated[float, typer.Option(help="Seconds")] = 30.0,
    heartbeat_timeout: Annotated[float, typer.Option(help="Seconds")] = 90.0,
    start_timeout: Annotated[
        float | None, typer.Option(help="Seconds", show_default="60; of a queue 600")
    ] = None,
    cancel_grace: Annotated[float, typer.Option(help="Seconds")] = 30.0,
    token_ttl: Annotated[int, typer.Option(help="Seconds that a task token is good")] = 3600,
    workspace: Annotated[str, typer.Option(help="workspaceId of the tasks")] = "default",
    callback_url: Annotated[
        str, typer.Option(help="Address of the scheduler for its workers", show_default="its own")
    ] = "",
    secret_stdin: Annotated[
        bool, typer.Option("--secret-stdin", help="Read the shared secret from standard input")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create an HTTP worker pool, or replace its settings. A secret that is not given stays as it is."""
    settings: dict[str, Any] = {
        "url": url,
        "packages": [_package(one) for one in package],
        "dispatcher": dispatcher,
        "maxParallel": max_parallel,
        "labels": _pairs(label, "--label"),
        "options": _pairs(option, "--option"),
        "heartbeatIntervalSeconds": heartbeat_interval,
        "heartbeatTimeoutSeconds": heartbeat_timeout,
        "cancelGraceSeconds": cancel_grace,
        "tokenTtlSeconds": token_ttl,
        "workspace": workspace,
        "callbackUrl": callback_url,
    }
    if start_timeout is not None:
        settings["startTimeoutSeconds"] = start_timeout
    if secret_stdin:
        settings["secret"] = sys.stdin.readline().rstrip("\r\n")
    with Client() as client:
        made = client.perform(requests.put_pool(name, settings).raw())
    answer(made, f"pool {name} pushes to {url}", as_json)


@app.command()
def pause(name: PoolName, as_json: AsJson = False) -> None:
    """Give a pool nothing new; what is under way goes on."""
    _change(name, True, "is paused", as_json)


@app.command()
def resume(name: PoolName, as_json: AsJson = False) -> None:
    """Let a pool take attempts again."""
    _change(name, False, "accepts attempts again", as_json)


@app.command()
def delete(name: PoolName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a pool that holds no attempt."""
    confirm(f"Delete pool {name}?", yes)
    with Client() as client:
        client.pools.delete(name)
    answer({"name": name}, f"pool {name} deleted", as_json)


def _change(name: str, is_paused: bool, says: str, as_json: bool) -> None:
    import msgspec

    with Client() as client:
        raw = client.perform(requests.get_pool(name).raw())
        known: dict[str, Any] = msgspec.json.decode(raw)
        settings = {key: value for key, value in known.items() if key not in _KEPT}
        settings["labels"] = {key: value for key, value in known["labels"].items() if key != "pool"}
        changed = client.perform(requests.put_pool(name, {**settings, "isPaused": is_paused}).raw())
    answer(changed, f"pool {name} {says}", as_json)


def _package(text: str) -> dict[str, str]:
    name, is_pinned, version = text.partition("==")
    return {"name": name, "version": version} if is_pinned else {"name": name}


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    for one in given or ():
        if "=" not in one:
            raise unreadable(f"Invalid {option} {one!r}", f"write {option} name=value")
    return dict(one.split("=", 1) for one in given or ())
