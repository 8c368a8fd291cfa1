"""`astra db nodes`: the schedulers that share a store, and whose tenants are whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraflow.cli.exit_codes import note
from astraflow.cli.output import AsJson, show_json, show_table
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import DatabaseUrl, look_into, settings_of
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, lane_name
from astraflow.core.cluster.upgrades import KNOWN_S
from astraflow.core.security.policy import SITE_TENANT
from astraflow.store import is_shared, open_store
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from astraflow.core.cluster.shards import NodeSeen, ShardSeen


def nodes(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show the schedulers of a PostgreSQL store and the tenants that each serves. Works while they run."""
    settings = settings_of(data_dir, database_url, config)
    if not is_shared(settings.store_url):
        note("SQLite is used by one scheduler; `astra db status` shows it")
        return
    found = look_into(settings)
    if found.schema_version < found.newest_version:
        note("No scheduler of this version has used the store; `astra db status` shows its schema")
        return
    shown = run_loop(_look(settings.store_url))
    if as_json:
        show_json({"nodes": shown})
        return
    names = ("nodeId", "url", "version", "factsVersion", "state")
    rows = [(*(one[name] for name in names), ", ".join(one["tenants"]) or "-") for one in shown]
    show_table(("node", "url", "version", "facts", "state", "tenants"), rows)
    known = [one for one in shown if one["seenSecondsAgo"] <= KNOWN_S]
    if len({(one["version"], one["factsVersion"]) for one in known}) > 1:
        note("\nhint: schedulers of several versions share the store; `astra db facts-version`")


async def _look(url: str) -> list[dict[str, Any]]:
    # Imported here: the other commands need no PostgreSQL.
    from astraflow.store.cluster import StoredCluster
    from astraflow.store.postgres import PostgresStore

    store = open_store(url)
    assert isinstance(store, PostgresStore)
    cluster = StoredCluster(store.database.site)
    await cluster.open()
    try:
        tenants: dict[int, list[str]] = {HOME_SHARD: [SITE_TENANT]}
        lanes = await cluster.lanes()
        for row in await cluster.tenants():
            for one in lanes.get(row, (LaneSeen(HOME_LANE, HOME_SHARD),)):
                tenants.setdefault(one.shard, []).append(lane_name(row, one.lane))
        shards = await cluster.shards()
        return [_shown(node, shards, tenants) for node in await cluster.nodes()]
    finally:
        await cluster.close()


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
