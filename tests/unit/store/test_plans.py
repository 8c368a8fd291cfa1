"""Every query of the SQLite store finds its rows by an index, in the order in which it gives them out."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from astraflow.store.sqlite_file import MEMORY, connect_writer
from astraflow.store.statements import Statements, load_queries
from tests.tables import each_row

STATEMENTS = Statements("sqlite")
QUERIES = load_queries("sqlite")
# Small by nature, or counted whole on purpose.
MAY_SCAN = {
    "usage",
    "count_held",
    "count_tables",
    "schema_writer",
    "workers",
    "pools",
    "good_tokens",
    "data_keys",
    "data_keys_of_site",
    "secrets",
    "tenants",
    "all_tenants",
    "lanes",
    "sent_audits",
    "event_heads",
    "triggers",
    "delete_ended_tokens",
    "doomed_segments",
    "forget_doomed",
    "event_spans",
    "count_audits",  # one constant row
    "old_events",
    "oldest_finished",
    "last_old_audit",
    "last_surplus_audit",
    "audit_heads",
    "packages",
    "active_versions",
    "rollouts",
    "intents",
    "affinities",
    "all_epochs",
    "all_sequences",
    "all_tables",
    "forget_sequence",
    "restart_shards",
    "gather_lanes",
    "divided_tenant",
    "all_resources",
    "blobs_of_resources",
}
MAY_SORT = {"active_runs", "all_tables", "columns_of_table", "event_heads"}
NO_TABLES = ("SCAN json_each", "SCAN pragma_")
"""A list of parameters, and the values of a file."""
LOOKS = [name for name, text in QUERIES.items() if re.match(r"SELECT|UPDATE|DELETE|WITH", text)]


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(connect_writer(MEMORY, STATEMENTS)) as connection:
        yield connection


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    statement = STATEMENTS[name]
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", [0] * len(statement.names))
    return [detail for *_, detail in rows]


@each_row("name", LOOKS)
def test_a_query_uses_an_index(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, name)
    if name not in MAY_SCAN:
        scans = [step for step in steps if step.startswith("SCAN")]
        assert all(step.startswith(NO_TABLES) for step in scans), steps
    if name not in MAY_SORT:
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


def test_a_list_goes_straight_to_its_place(connection: sqlite3.Connection) -> None:
    (step,) = plan(connection, "list_runs_by_status")
    assert "runs_by_status (status=? AND tenant=? AND (created_at,run_id)<(?,?))" in step
