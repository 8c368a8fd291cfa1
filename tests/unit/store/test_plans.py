"""Every query of the SQLite store finds its rows by an index, in the order in which it gives them out."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from astraflow.store.queries import load_queries
from astraflow.store.sqlite_file import MEMORY, connect_writer

QUERIES = load_queries("sqlite")
# Small by nature, or counted whole on purpose.
MAY_SCAN = {
    "count_runs",
    "count_active_runs",
    "count_finished_runs",
    "count_tables",
    "schema_writer",
    "workers",
    "doomed_pages",
    "forget_doomed",
    "event_heads",
    "event_spans",
    "count_audits",  # one constant row
    "old_events",
    "active_runs",
    "oldest_finished",
    "delete_audits",
    "packages",
    "active_versions",
    "rollouts",
    "wishes",
    "affinities",
    "all_resources",
    "blobs_of_resources",
}
MAY_SORT = {"old_events"}
LOOKS = [name for name, text in QUERIES.items() if re.match(r"SELECT|UPDATE|DELETE|WITH", text)]


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(connect_writer(MEMORY, QUERIES)) as connection:
        yield connection


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    text = QUERIES[name]
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    count = max(numbered) if numbered else text.count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", [0] * count)
    return [detail for *_, detail in rows]


@pytest.mark.parametrize("name", LOOKS)
def test_a_query_uses_an_index(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, name)
    if name not in MAY_SCAN:
        assert not [step for step in steps if step.startswith("SCAN")], steps
    if name not in MAY_SORT:
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


def test_a_list_goes_straight_to_its_place(connection: sqlite3.Connection) -> None:
    (step,) = plan(connection, "list_runs_by_status")
    assert "runs_by_status (tenant=? AND status=? AND (created_at,run_id)<(?,?))" in step
