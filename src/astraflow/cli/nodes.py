"""`astra db nodes`, `move` and `unpark`: the schedulers that share a store, and whose tenants are whose."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from astraflow.cli.exit_codes import note
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import DatabaseUrl, look_into, settings_of
from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, lane_name
from astraflow.core.cluster.parking import PARKING_REMEDIES, parking_ends_s
from astraflow.core.cluster.upgrades import KNOWN_S
from astraflow.core.security.policy import SITE_TENANT
from astraflow.store import is_shared, open_store
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from astraflow.config import SchedulerSettings
    from astraflow.core.cluster.shards import NodeSeen, ShardSeen
    from astraflow.store.cluster import StoredCluster

_ONE_SCHEDULER = "SQLite is used by one scheduler"
_NEVER_USED = "No scheduler of this version has used the store"
ShardNumber = Annotated[int, typer.Argument(metavar="SHARD", min=0, help="Number of the shard")]


def nodes(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show the schedulers of a PostgreSQL store and the tenants that each serves. Works while they run."""
    settings = settings_of(data_dir, database_url, config)
    if not is_shared(settings.store_url):
        note(f"{_ONE_SCHEDULER}; `astra db status` shows it")
        return
    if not _is_used(settings):
        note(f"{_NEVER_USED}; `astra db status` shows its schema")
        return
    found = run_loop(_look(settings.store_url))
    if as_json:
        show_json(found)
        return
    rows = [
        (
            one["nodeId"], one["url"], one["version"], one["factsVersion"], one["state"],
            ", ".join(map(str, one["shards"])) or "-", ", ".join(one["tenants"]) or "-",
        )
        for one in found["nodes"]
    ]  # fmt: skip
    show_table(("node", "url", "version", "facts", "state", "shards", "tenants"), rows)
    if found["placedShards"]:
        typer.echo()
        show_table(
            ("shard", "placed at"), [(one["shard"], one["url"]) for one in found["placedShards"]]
        )
    if found["parkedShards"]:
        _show_parked(found["parkedShards"])
    known = [one for one in found["nodes"] if one["seenSecondsAgo"] <= KNOWN_S]
    if len({(one["version"], one["factsVersion"]) for one in known}) > 1:
        note("\nhint: schedulers of several versions share the store; `astra db facts-version`")


def move(
    shard: ShardNumber,
    node: Annotated[
        str, typer.Argument(metavar="[NODE]", help="URL or id of the scheduler that is to serve it")
    ] = "",
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Let any scheduler serve it again")
    ] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Have one scheduler serve a shard, with its tenants, whenever it lives. The shard moves within seconds."""
    settings = settings_of(data_dir, database_url, config)
    if bool(node) == anywhere:
        raise errors.Refused(
            errors.CONFIG_INVALID, "name the scheduler that is to serve the shard, or --anywhere"
        )
    if not is_shared(settings.store_url):
        raise _no_shards("that could be moved")
    if not _is_used(settings):
        raise errors.Conflict(errors.SHARD_NOT_MOVED, f"{_NEVER_USED}: it has no shards")
    url = run_loop(_place(settings.store_url, shard, node))
    said = (
        f"Shard {shard} is for the scheduler at {url}" if url else f"Shard {shard} may be anywhere"
    )
    answer({"shard": shard, "url": url or None}, said, as_json)


def unpark(
    shard: ShardNumber,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Let a parked shard go on, or a withheld one be served again. Its scheduler notices within a second."""
    settings = settings_of(data_dir, database_url, config)
    if not is_shared(settings.store_url):
        raise _no_shards("that could be parked")
    if not _is_used(settings):
        raise errors.Conflict(errors.SHARD_NOT_PARKED, f"{_NEVER_USED}: no shard is parked")
    run_loop(_unpark(settings.store_url, shard))
    answer({"shard": shard, "state": "open"}, f"Shard {shard} is not parked any more", as_json)


def _no_shards(which: str) -> errors.Refused:
    return errors.Refused(
        errors.CONFIG_INVALID,
        f"{_ONE_SCHEDULER}: it has no shards {which}",
        detail={"hint": "name the PostgreSQL database with --database-url"},
    )


def _show_parked(parked: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["shard"], one["state"], one["losses"], f"{one['endsInSeconds']} s",
            ", ".join(one["tenants"]) or "-",
        )
        for one in parked
    ]  # fmt: skip
    typer.echo()
    show_table(("shard", "state", "schedulers ended", "ends in", "tenants"), rows)
    for one in parked:
        note(f"\nhint: {PARKING_REMEDIES[one['state']]}, then `astra db unpark {one['shard']}`")


def _is_used(settings: SchedulerSettings) -> bool:
    found = look_into(settings)
    return found.schema_version >= found.newest_version


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[StoredCluster]:
    # Imported here: the other commands need no PostgreSQL.
    from astraflow.store.cluster import StoredCluster
    from astraflow.store.postgres import PostgresStore

    store = open_store(url)
    assert isinstance(store, PostgresStore)
    cluster = StoredCluster(store.database.site)
    await cluster.open()
    try:
        yield cluster
    finally:
        await cluster.close()


async def _place(database_url: str, shard: int, node: str) -> str:
    """The URL at which the shard is placed. Raises: Conflict, when there is no such shard or scheduler; StoreError."""
    async with _opened(database_url) as cluster:
        await _find_shard(cluster, shard, errors.SHARD_NOT_MOVED)
        live = [one for one in await cluster.nodes() if one.is_live and not one.is_leaving]
        urls = [one.url for one in live if node.rstrip("/") in (one.url, one.node_id)]
        if node and not urls:
            known = ", ".join(one.url for one in live) or "none"
            why = f"No scheduler that lives is called {node[:200]}; those that live: {known}"
            raise errors.Conflict(errors.SHARD_NOT_MOVED, why)
        url = urls[0] if node else ""
        await cluster.place_shard(shard, url)
        return url


async def _unpark(url: str, shard: int) -> None:
    """Raises: Conflict, when the shard is not parked; StoreError."""
    async with _opened(url) as cluster:
        seen = await _find_shard(cluster, shard, errors.SHARD_NOT_PARKED)
        if seen.parking == "open" or not await cluster.clear_losses(shard):
            raise errors.Conflict(errors.SHARD_NOT_PARKED, f"Shard {shard} is not parked")


async def _find_shard(cluster: StoredCluster, shard: int, code: errors.Code) -> ShardSeen:
    """Raises: Conflict, when no tenant lives in it; StoreError."""
    seen = {one.shard: one for one in await cluster.shards()}
    if shard not in seen:
        served = ", ".join(map(str, seen))
        raise errors.Conflict(
            code, f"No tenant lives in shard {shard}; shards with tenants: {served}"
        )
    return seen[shard]


async def _look(url: str) -> dict[str, list[dict[str, Any]]]:
    """The nodes, and the shards of which there is more to say."""
    async with _opened(url) as cluster:
        tenants: dict[int, list[str]] = {}
        lanes = await cluster.lanes()
        for name in {SITE_TENANT, *await cluster.tenants()}:
            for one in lanes.get(name, (LaneSeen(HOME_LANE, HOME_SHARD),)):
                tenants.setdefault(one.shard, []).append(lane_name(name, one.lane))
        shards = await cluster.shards()
        return {
            "nodes": [_shown(node, shards, tenants) for node in await cluster.nodes()],
            "placedShards": [
                {"shard": seen.shard, "url": seen.place} for seen in shards if seen.place
            ],
            "parkedShards": [_parked(seen, tenants) for seen in shards if seen.parking != "open"],
        }


def _shown(
    node: NodeSeen, shards: list[ShardSeen], tenants: dict[int, list[str]]
) -> dict[str, Any]:
    own = [one.shard for one in shards if one.owner == node.node_id and not one.is_free]
    state = "leaving" if node.is_leaving else "up" if node.is_live else "gone"
    return {
        "nodeId": node.node_id,
        "url": node.url,
        "version": node.version,
        "factsVersion": node.facts_version,
        "state": state,
        "seenSecondsAgo": round(node.seen_s, 1),
        "shards": own,
        "tenants": sorted(name for shard in own for name in tenants.get(shard, [])),
    }


def _parked(seen: ShardSeen, tenants: dict[int, list[str]]) -> dict[str, Any]:
    return {
        "shard": seen.shard,
        "state": seen.parking,
        "losses": len(seen.losses),
        "endsInSeconds": round(parking_ends_s(seen.losses)),
        "tenants": sorted(tenants.get(seen.shard, [])),
    }
