"""`astra packages …`: what is published, who has it, and which version counts."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import typer

from astraflow.cli.asking import Yes, confirm
from astraflow.cli.failing import FAILED, note
from astraflow.cli.listing import Cursor, Limit, show_list
from astraflow.cli.pkg_installing import (
    Fate,
    News,
    Wish,
    listening,
    online_workers,
    order,
    refuse_without_workers,
    wait_for,
)
from astraflow.cli.showing import AsJson, plain, show_json, show_table
from astraflow.client import requests
from astraflow.client.asynchronous import AsyncClient
from astraflow.client.blocking import Client
from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.contract.packages import NodeType, PackageSummary, PackageVersion

__all__ = ["app"]

app = typer.Typer(
    help="Published packages and their nodes: list, install, activate, roll out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="the name of a package")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="one of its versions")]
On = Annotated[
    list[str] | None, typer.Option("--worker", help="id or name, any number; all that are online")
]
Timeout = Annotated[float, typer.Option(min=0.0, help="seconds to wait for the workers")]
DIGEST_CHARS: Final = 12
INSTALL_S: Final = 600.0


@app.command("list")
def list_packages(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """Published packages."""
    with Client() as client:
        show_list(
            client,
            requests.list_packages,
            kind=PackageSummary,
            columns=("package", "active", "versions", "nodes", "description"),
            row=lambda one: (
                one.name,
                one.active,
                len(one.versions),
                one.nodes,
                one.description,
            ),
            limit=limit,
            cursor=cursor,
            as_json=as_json,
            empty="no packages; publish one with `astra pkg publish`",
        )


@app.command()
def show(
    name: Name,
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="one version, with its nodes")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A package with its versions, or one version with its nodes."""
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
        empty="no nodes",
    )


def _first_line(node: dict[str, Any]) -> str:
    return str(node.get("description") or "").partition("\n")[0]


@app.command("nodes")
def list_nodes(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="words that must occur")
    ] = None,
    package: Annotated[str | None, typer.Option(help="only those of this package")] = None,
    category: Annotated[str | None, typer.Option(help="only those of this category")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Node types that workflows can use, best fit first."""
    sought = " ".join(words or ()) or None
    with Client() as client:
        show_list(
            client,
            lambda count, after: requests.list_node_types(sought, category, package, count, after),
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
            empty="no node type fits",
        )


@app.command()
def yank(
    name: Name,
    version: Version,
    reason: Annotated[str, typer.Option(help="why, for whoever looks later")] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Withdraw a version: nothing new gets it.

    Runs that were accepted before still do.
    """
    confirm(f"withdraw {name} {version}?", yes)
    with Client() as client:
        told = client.perform(requests.yank_package(name, version, reason).raw())
    _answer(told, f"{name} {version} is withdrawn", as_json)


@app.command()
def unyank(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Take a withdrawal back."""
    with Client() as client:
        told = client.perform(requests.unyank_package(name, version).raw())
    _answer(told, f"{name} {version} can be used again", as_json)


@app.command()
def activate(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Choose the version that nodes without one get."""
    with Client() as client:
        told = client.perform(requests.activate_package(name, version).raw())
    _answer(told, f"{name} {version} is active", as_json)


@app.command()
def rollout(
    name: Name,
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="without it: the rollouts so far")
    ] = None,
    waves: Annotated[str, typer.Option(help="shares of the workers in percent")] = "10,50,100",
    soak: Annotated[float, typer.Option(min=0.0, help="seconds to look at each wave")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Bring a version to all workers, in waves.

    Without a version: the rollouts of the package so far.
    """
    with Client() as client:
        if version is None:
            _show_rollouts(client, name, as_json)
            return
        request = {"version": version, "waves": _shares(waves), "soakSeconds": soak}
        told = client.perform(requests.start_rollout(name, request).raw())
    _answer(told, f"{name} {version} is rolled out in waves of {waves} percent", as_json)
    if not as_json:
        note(
            f"\nhint: `astra packages rollout {name}` says how far it is, `astra packages rollback {name}` ends it"
        )


def _shares(waves: str) -> list[int]:
    parts = [one.strip() for one in waves.split(",")]
    if not all(one.isascii() and one.isdecimal() for one in parts):
        raise errors.Refused(
            errors.INPUT_UNREADABLE,
            f"waves are whole percents: {waves!r}",
            detail={"hint": "write them as --waves 10,50,100"},
        )
    return [int(one) for one in parts]


def _show_rollouts(client: Client, name: str, as_json: bool) -> None:
    if as_json:
        show_json(client.perform(requests.list_rollouts(name).raw()))
        return
    rows = [
        (
            one.version,
            one.state,
            f"{one.wave + 1}/{len(one.waves)}",
            one.started_at,
            one.error,
        )
        for one in client.packages.rollouts(name)
    ]
    show_table(("version", "state", "wave", "began", "error"), rows, empty="no rollouts")


@app.command()
def rollback(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Go back to the version that was active before.

    A rollout that runs is ended.
    """
    confirm(f"go back to the version of {name} that was active before?", yes)
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
    """Have workers install a version, and wait until they have."""
    asyncio.run(_order("pkg.install", name, version, worker, timeout, as_json))


@app.command()
def uninstall(
    name: Name,
    version: Version,
    worker: On = None,
    timeout: Timeout = INSTALL_S,
    as_json: AsJson = False,
) -> None:
    """Have workers remove a version when its last attempt has ended."""
    asyncio.run(_order("pkg.uninstall", name, version, worker, timeout, as_json))


async def _order(
    wish: Wish, name: str, version: str, wanted: list[str] | None, timeout_s: float, as_json: bool
) -> None:
    news = News(None if as_json else lambda text: note(plain(text)))
    async with AsyncClient() as client, listening(client, news):
        present = await online_workers(client)
        names = news.names = {one.worker_id: one.name for one in present}
        chosen = [
            one.worker_id
            for one in present
            if not wanted or one.worker_id in wanted or one.name in wanted
        ]
        refuse_without_workers(chosen)
        await order(client, wish, name, version, chosen)
        fates = await wait_for(
            client,
            wish,
            name,
            version,
            chosen,
            news,
            timeout_s=timeout_s,
            clock=SystemClock(),
        )
    _show_fates(wish, fates, names, as_json)


def _show_fates(wish: Wish, fates: list[Fate], names: dict[str, str], as_json: bool) -> None:
    done = "installed" if wish == "pkg.install" else "removed"
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


def _answer(told: Any, text: str, as_json: bool) -> None:
    if as_json:
        show_json(told)
    else:
        note(text)
