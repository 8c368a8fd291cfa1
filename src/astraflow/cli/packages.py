"""`astra packages …`: published packages, their versions, and the workers that have them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Final

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import FAILED, note
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, plain, show_json, show_table
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.pkg_install import (
    InstallCommand,
    InstallOutcome,
    PackageEvents,
    listening,
    online_workers,
    order,
    refuse_without_workers,
    wait_for,
)
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import requests
from astraflow.client.asynchronous import AsyncClient
from astraflow.client.blocking import Client
from astraflow.clock import SystemClock
from astraflow.core.contract.packages import NodeType, PackageSummary, PackageVersion

app = command_group("List, install, activate and roll out published packages.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Package name")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Package version")]
On = Annotated[
    list[str] | None,
    typer.Option("--worker", help="Worker id or name. Repeatable. Default: all workers online"),
]
Timeout = Annotated[float, typer.Option(min=0.0, help="Seconds to wait for the workers")]
DIGEST_CHARS: Final = 12
INSTALL_S: Final = 600.0


@app.command("list")
def list_packages(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List published packages."""
    show_list(
        requests.list_packages,
        kind=PackageSummary,
        columns=("package", "active", "versions", "nodes", "description"),
        row=lambda one: (one.name, one.active, len(one.versions), one.nodes, one.description),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No packages; publish one with `astra pkg publish`",
    )


@app.command()
def show(
    name: Name,
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="A version; shows its nodes")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a package with its versions, or one version with its nodes."""
    with Client() as client:
        if as_json:
            call: Any = requests.get_package(name)
            if version is not None:
                call = requests.get_package_version(name, version)
            show_json(client.perform(call.raw()))
        elif version is not None:
            _show_version(client.packages.version(name, version))
        else:
            found = client.packages.get(name)
            columns = ("version", "state", "workers", "signed by", "published", "sha256")
            show_table(columns, [_row(one) for one in found.versions])


def _row(one: PackageVersion) -> tuple[object, ...]:
    state = "yanked" if one.yanked_at else "active" if one.active else ""
    digest = one.sha256[:DIGEST_CHARS]
    return one.version, state, len(one.workers or ()), one.signed_by, one.published_at, digest


def _show_version(one: PackageVersion) -> None:
    nodes = (one.manifest or {}).get("nodes") or ()
    show_table(
        ("node type", "label", "category", "description"),
        [
            (node["type"], node.get("label"), node.get("category"), _first_line(node))
            for node in nodes
        ],
        empty="No nodes",
    )


def _first_line(node: dict[str, Any]) -> str:
    return str(node.get("description") or "").partition("\n")[0]


@app.command("nodes")
def list_nodes(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="Search terms; all must match")
    ] = None,
    package: Annotated[str | None, typer.Option(help="Filter by package")] = None,
    category: Annotated[str | None, typer.Option(help="Filter by category")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Search node types, best match first."""
    sought = " ".join(words or ()) or None
    show_list(
        partial(requests.list_node_types, sought, category=category, package=package),
        kind=NodeType,
        columns=("node type", "label", "category", "package", "description"),
        row=lambda one: (
            one.type,
            one.label,
            one.category,
            f"{one.package.name} {one.package.version}",
            one.description.partition("\n")[0],
        ),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No node type matches",
    )


@app.command()
def yank(
    name: Name,
    version: Version,
    reason: Annotated[str, typer.Option(help="Reason, for the audit log")] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Yank a version: new runs cannot use it.

    Runs that were accepted before still can.
    """
    confirm(f"Yank {name} {version}?", yes)
    with Client() as client:
        told = client.perform(requests.yank_package(name, version, reason).raw())
    answer(told, f"{name} {version} is yanked", as_json)


@app.command()
def unyank(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Undo a yank."""
    with Client() as client:
        told = client.perform(requests.unyank_package(name, version).raw())
    answer(told, f"{name} {version} is no longer yanked", as_json)


@app.command()
def activate(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Set the version that nodes use by default."""
    with Client() as client:
        told = client.perform(requests.activate_package(name, version).raw())
    answer(told, f"{name} {version} is active", as_json)


@app.command()
def rollout(
    name: Name,
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION", help="Version to roll out; without it, list the rollouts"
        ),
    ] = None,
    waves: Annotated[str, typer.Option(help="Shares of the workers, in percent")] = "10,50,100",
    soak: Annotated[float, typer.Option(min=0.0, help="Seconds to observe each wave")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Roll out a version to all workers in waves.

    Without a version, list the rollouts of the package.
    """
    with Client() as client:
        if version is None:
            _show_rollouts(client, name, as_json)
            return
        request = requests.start_rollout(name, version, waves=_shares(waves), soakSeconds=soak)
        told = client.perform(request.raw())
    answer(told, f"Rolling out {name} {version} in waves of {waves} percent", as_json)
    if not as_json:
        note(
            f"\nhint: `astra packages rollout {name}` shows the progress, `astra packages rollback {name}` aborts it"
        )


def _shares(waves: str) -> list[int]:
    parts = [one.strip() for one in waves.split(",")]
    if not all(one.isascii() and one.isdecimal() for one in parts):
        message = f"Invalid waves {waves!r}: expected whole percentages"
        raise unreadable(message, "write --waves 10,50,100")
    return [int(one) for one in parts]


def _show_rollouts(client: Client, name: str, as_json: bool) -> None:
    if as_json:
        show_json(client.perform(requests.list_rollouts(name).raw()))
        return
    rows = [
        (one.version, one.state, f"{one.wave + 1}/{len(one.waves)}", one.started_at, one.error)
        for one in client.packages.rollouts(name)
    ]
    show_table(("version", "state", "wave", "started", "error"), rows, empty="No rollouts")


@app.command()
def rollback(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Activate the previously active version again.

    A rollout in progress is aborted.
    """
    confirm(f"Activate the previous version of {name} again?", yes)
    with Client() as client:
        if as_json:
            show_json(client.perform(requests.roll_back(name).raw()))
            return
        note(f"{name} {client.packages.roll_back(name)} is active again")


@app.command()
def install(
    name: Name,
    version: Version,
    worker: On = None,
    timeout: Timeout = INSTALL_S,
    as_json: AsJson = False,
) -> None:
    """Install a version on workers, and wait until it is installed."""
    asyncio.run(_order("pkg.install", name, version, worker, timeout, as_json))


@app.command()
def uninstall(
    name: Name,
    version: Version,
    worker: On = None,
    timeout: Timeout = INSTALL_S,
    as_json: AsJson = False,
) -> None:
    """Remove a version from workers as soon as no attempt uses it."""
    asyncio.run(_order("pkg.uninstall", name, version, worker, timeout, as_json))


async def _order(
    command: InstallCommand,
    name: str,
    version: str,
    wanted: list[str] | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    news = PackageEvents(None if as_json else lambda text: note(plain(text)))
    async with AsyncClient() as client, listening(client, news):
        present = await online_workers(client)
        names = news.names = {one.worker_id: one.name for one in present}
        chosen = [
            one.worker_id
            for one in present
            if not wanted or one.worker_id in wanted or one.name in wanted
        ]
        refuse_without_workers(chosen)
        await order(client, command, name, version, chosen)
        fates = await wait_for(
            client,
            command,
            name,
            version,
            chosen,
            news,
            timeout_s=timeout_s,
            clock=SystemClock(),
        )
    _show_fates(command, fates, names, as_json)


def _show_fates(
    command: InstallCommand, fates: list[InstallOutcome], names: dict[str, str], as_json: bool
) -> None:
    done = "installed" if command == "pkg.install" else "removed"
    if as_json:
        rows = [
            {
                "workerId": one.worker,
                "status": "failed" if one.problem else done,
                "problem": one.problem or None,
            }
            for one in fates
        ]
        show_json({"items": rows})
    else:
        show_table(
            ("worker", "name", "status", "problem"),
            [
                (one.worker, names.get(one.worker), "failed" if one.problem else done, one.problem)
                for one in fates
            ],
        )
    if any(one.problem for one in fates):
        raise typer.Exit(FAILED)
