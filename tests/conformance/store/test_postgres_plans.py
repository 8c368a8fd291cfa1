"""Commits to PostgreSQL are prepared and planned once, and find what they change by its key."""

from __future__ import annotations

from typing import Any

from astraflow.store.postgres import PostgresStore
from astraflow.store.postgres_commit import CommitStatements
from astraflow.store.rows import Changes
from astraflow.store.run_rows import settled
from tests.conformance.store.backends import Desk, PostgresBackend
from tests.conformance.store.samples import PLAN, change, event, run, segment

RUNS = 8
"""More than the server plans by itself before it keeps a plan."""


def writing(desk: Desk) -> Any:
    """The connection that commits are made on."""
    assert isinstance(desk.store, PostgresStore)
    return desk.store.database.shard_writer.connection


async def live(desk: Desk, number: int) -> None:
    """Start a run, let it go on, end it: each in a commit of its own."""
    row = run(number)
    first, last = event(3 * number + 1), event(3 * number + 2)
    await desk.write(plans=[PLAN], runs=[row], segments=[segment(row, 1, 1)], events=[first])
    await desk.write(segments=[segment(row, 2, 2)])
    ended = change(row, status="succeeded", started_at=1, finished_at=2)
    await desk.write(run_changes=[ended], segments=[segment(row, 3, 3)], events=[last])


async def test_commits_of_one_kind_share_a_statement_that_is_planned_once(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk:
        for number in range(RUNS):
            await live(desk, number)
        uses = await writing(desk).fetch(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
            "WHERE statement LIKE 'WITH fence%'"
        )
    assert [tuple(use) for use in uses] == [(RUNS, 0)] * 3


async def test_a_plan_of_an_empty_store_finds_runs_by_their_key(postgres: PostgresBackend) -> None:
    """It is kept when the store is full."""
    changes = settled(Changes(run_changes=[change(run(1))]))
    statement = CommitStatements().choose(changes)
    nothing = ", ".join(["NULL"] * len(statement.names))
    async with postgres.desk() as desk:
        connection = writing(desk)
        await connection.execute(f"PREPARE asked AS {statement.text}")
        rows = await connection.fetch(f"EXPLAIN EXECUTE asked ({nothing})")
    plan = "\n".join(line for (line,) in rows)
    assert "Index Scan using runs_pkey on runs" in plan
    assert "Seq Scan on runs" not in plan
