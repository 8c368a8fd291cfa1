"""`astra db facts-version`: up to which version facts are written in a store, and raising it by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.prompts import Yes, confirm
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import DatabaseUrl, look_into, settings_of, shown_store
from astraflow.core import errors
from astraflow.core.cluster.upgrades import read_by_all
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store import is_shared, open_store
from astraflow.store.written_facts import written_facts

if TYPE_CHECKING:
    from astraflow.store.cluster import OlderNode, StoredCluster

RaiseTo = Annotated[
    int | None,
    typer.Option("--raise", min=1, help="Let facts up to this version be written from now on"),
]


def facts_version(
    raise_to: RaiseTo = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show up to which version facts are written, and what the schedulers read. Schedulers raise it by themselves after
    an upgrade; `--raise` does so at once. It never falls: no scheduler of a release that reads less can start then."""
    settings = settings_of(data_dir, database_url, config)
    url = settings.store_url
    shared = is_shared(url)
    written = look_into(settings).facts_version
    shown: dict[str, Any] = {"written": written}
    if raise_to is not None:
        if not shared or written is None:
            says = "With SQLite the scheduler raises it when it starts"
            if shared:
                says = "No scheduler of this version has used the store"
            raise errors.Refused(errors.CONFIG_INVALID, says, pointer="/database_url")
        where = shown_store(settings)
        confirm(f"Let facts of version {raise_to} be written in {where}, for ever?", yes)
        run_loop(_raise(url, raise_to))
        said = f"Facts up to version {raise_to} are written from now on"
        answer({"written": raise_to}, said, as_json)
        return
    if shared and written is not None and written <= FACTS_VERSION:
        shown["readByAll"] = run_loop(_read_by_all(url))
    shown["readByThisVersion"] = FACTS_VERSION
    if as_json:
        show_json(shown)
        return
    show_table(
        ("what", "value"), [(name, "-" if one is None else one) for name, one in shown.items()]
    )


def _cluster(url: str) -> StoredCluster:
    # Imported here: the other commands need no PostgreSQL.
    from astraflow.store.cluster import StoredCluster
    from astraflow.store.postgres import PostgresStore

    store = open_store(url)
    assert isinstance(store, PostgresStore)
    return StoredCluster(store.database.site)


async def _read_by_all(url: str) -> int | None:
    """None: no scheduler is there."""
    cluster = _cluster(url)
    await cluster.open()
    try:
        return read_by_all(await cluster.nodes())
    finally:
        await cluster.close()


async def _raise(url: str, wanted: int) -> None:
    """
    Raises:
        Refused: this release does not read such facts, or newer ones are written already.
        Conflict: a scheduler reads less.
    """
    cluster = _cluster(url)
    await cluster.open()
    try:
        written = written_facts(await cluster.changes())
        if not written <= wanted <= FACTS_VERSION:
            raise errors.Refused(
                errors.REQUEST_INVALID,
                f"facts are written up to version {written}, and this release reads them up to version "
                f"{FACTS_VERSION}: {wanted}",
                pointer="/raise",
            )
        older = await cluster.raise_facts(wanted)
    finally:
        await cluster.close()
    if older:
        said = "; ".join(map(_said, older))
        raise errors.Conflict(errors.NODE_OLDER, f"{said}; nothing was changed")


def _said(node: OlderNode) -> str:
    return f"{node.node_id} at {node.url} runs {node.version}, which reads facts up to version {node.facts_version}"
