from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NewType

import msgspec
import pytest

import astraflow.store
from astraflow.core.ids import RunId
from astraflow.store import rows
from astraflow.store.postgres_commit import CommitStatements, Fence
from astraflow.store.rows import (
    Changes,
    ResourceRow,
    Row,
    RunChange,
    RunRow,
)
from astraflow.store.run_rows import settled, submissions_of
from astraflow.store.statements import (
    COLUMN_TYPES,
    Dialect,
    Statements,
    compiled,
    load_migrations,
    load_queries,
)
from astraflow.store.store import Claim
from astraflow.store.tables import REMOVED, WRITTEN, Table, table_of
from tests.tables import each_row

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
FOLDER = Path(astraflow.store.__file__).parent
Id = NewType("Id", str)


def quoted(dialect: Dialect) -> set[str]:
    """Every word in quotes in the modules of a dialect."""
    other = "postgres" if dialect == "sqlite" else "sqlite"
    modules = [file for file in FOLDER.glob("*.py") if not file.name.startswith(other)]
    return set(re.findall(r"\"(\w+)\"", "".join(file.read_text() for file in modules)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used(dialect: Dialect) -> None:
    assert load_queries(dialect).keys() <= quoted(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_are_bare_statements(dialect: Dialect) -> None:
    for name, text in load_queries(dialect).items():
        assert text, name
        assert "--" not in text, name
        assert ";" not in text, name
        assert "{" not in text, name
        places = r"/\* (writes|count) \*/|count\(\*\)|\) \* page_size"
        assert "*" not in re.sub(places, "", text), name


def test_names_become_numbers_in_the_order_of_their_first_use() -> None:
    text = "SELECT a::text FROM t WHERE b = :b AND (c, d) < (:c, :b) AND e IN (:many[])"
    assert compiled(text, "postgres") == (
        "SELECT a::text FROM t WHERE b = $1 AND (c, d) < ($2, $1) AND e IN (SELECT unnest($3::text[]))",
        ("b", "c", "many"),
        False,
    )
    sqlite = compiled(text, "sqlite")
    assert sqlite.text.endswith(
        "b = ?1 AND (c, d) < (?2, ?1) AND e IN (SELECT value FROM json_each(?3))"
    )
    given = {"many": ["x", '"'], "c": 2, "b": 1, "unused": 0}
    assert sqlite.arguments(given) == [1, 2, '["x","\\""]']
    assert compiled(text, "postgres").arguments(given) == [1, 2, ["x", '"']]
    with pytest.raises(KeyError):
        sqlite.arguments({"b": 1})


def test_a_struct_says_its_columns_types_and_key() -> None:
    class Sample(msgspec.Struct, frozen=True):
        table = "samples"
        primary_key = ("tenant", "number")
        tenant: Id
        number: int
        is_on: bool
        body: bytes | None = None
        state: Literal["a", "b"] | None = None

    table = Table(Sample)  # type: ignore[type-var]
    assert table.types == {
        "tenant": "text",
        "number": "integer",
        "is_on": "boolean",
        "body": "bytes",
        "state": "text",
    }
    assert table.others == ("is_on", "body", "state")
    row = table.decode(("t", 1, 1, None, "a"))
    assert row == Sample(Id("t"), 1, True, None, "a")
    assert table.key_of is not None
    assert table.key_of(row) == ("t", 1)
    with pytest.raises(ValueError, match="shorter"):
        table.decode(("t", 1))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_puts_a_row_takes_its_fields_in_their_order(dialect: Dialect) -> None:
    statements = Statements(dialect)
    for kind, statement in statements.put.items():
        assert statement.names == kind.__struct_fields__
    for kind, statement in statements.delete.items():
        assert statement.names == kind.primary_key
    mark = "?" if dialect == "sqlite" else "$"
    assert statements.put[RunChange].text == (
        f"UPDATE runs SET status = {mark}2, cancel_requested = {mark}3, started_at = {mark}4, "
        f"finished_at = {mark}5, error = {mark}6 WHERE run_id = {mark}1"
    )
    assert statements.put[ResourceRow].text.endswith("lane = excluded.lane")


def test_the_lists_of_a_commit_are_those_of_changes() -> None:
    assert set(WRITTEN) | set(REMOVED) == set(Changes.__struct_fields__)
    assert (
        list(WRITTEN).index("plans")
        < list(WRITTEN).index("runs")
        < list(WRITTEN).index("run_changes")
    )


def test_the_commit_of_postgresql_has_an_array_for_each_column() -> None:
    run = RunRow(
        run_id=RunId("r"),
        tenant="t",
        workflow_id="w",
        plan_id="p",
        created_at=1,
        idempotency_key="k",
    )
    changes = Changes(
        runs=[run], run_changes=[RunChange(RunId("r"), "running", False, 2, None, None)]
    )
    changes.workers_gone.append(("t", "w-1"))
    changes = settled(changes)
    commit = CommitStatements().choose(changes)
    given = dict(
        zip(commit.names, commit.arguments(Claim("one", 7, 8.0), 3, 9, changes), strict=True)
    )
    assert (given["epoch"], given["writer"], given["number"], given["shard"]) == (7, 3, 9, 0)
    assert given["changed"] == 0, "the run is made as it ends up"
    assert given["runs_status"] == ("running",)
    assert given["submissions_key"] == ("k",)
    assert (given["workers_gone_tenant"], given["workers_gone_worker_id"]) == (("t",), ("w-1",))
    assert given["resources_metadata"] == ()
    width = sum(len(table_of(kind).columns) for kind in WRITTEN.values())
    width += sum(len(kind.primary_key) for kind in REMOVED.values())
    assert len(commit.names) == 6 + width + len(submissions_of([run])[0].__struct_fields__)


def names_for(*lists: str) -> set[str]:
    """The arrays of the statement for a commit with rows in these lists, by their lists."""
    given = Changes()
    for name in lists:
        getattr(given, name).append(("any",))
    names = CommitStatements().choose(given).names
    return {list_of(name) for name in names if name not in Fence._fields}


def list_of(array: str) -> str:
    known = [name for name in (*WRITTEN, *REMOVED, "submissions") if array.startswith(f"{name}_")]
    return max(known, key=len)


def test_a_commit_has_a_statement_with_few_parts_that_it_does_not_need() -> None:
    assert names_for("segments") == {"segments"}
    assert names_for("run_changes", "segments", "events") == {"run_changes", "segments", "events"}
    of_start = {"plans", "runs", "segments", "events", "submissions"}
    assert names_for("runs", "segments", "events") == of_start
    assert names_for("runs", "run_changes") == {*of_start, "run_changes"}
    assert names_for("segments", "workers") == {*WRITTEN, *REMOVED, "submissions"}


@each_row("name", list(Changes.__struct_fields__))
def test_a_list_is_written_by_the_statement_that_is_chosen_for_it(name: str) -> None:
    assert name in names_for(name)
    assert name in names_for(name, "segments")


def test_states_that_have_ended_are_said_once() -> None:
    for dialect in DIALECTS:
        texts = load_queries(dialect)
        assert "state IN ('evicted', 'released')" in texts["delete_ended_resources"]
    files = "".join(file.read_text() for file in (FOLDER / "sql").glob("*.sql"))
    for states in (rows.ENDED_RESOURCES, rows.ENDED_INTENTS, rows.ENDED_ROLLOUTS):
        assert not [state for state in states if f"'{state}'" in files]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_from_one(dialect: Dialect) -> None:
    migrations = load_migrations(dialect)
    assert [one.version for one in migrations] == list(range(1, len(migrations) + 1))
    assert all(one.name and one.text for one in migrations)
    # `{}` is an empty array of PostgreSQL.
    assert not [one for one in migrations if re.search(r"\{\w", one.text)]


def test_both_dialects_have_the_same_migrations() -> None:
    sqlite, postgres = (
        [(one.version, one.name) for one in load_migrations(dialect)] for dialect in DIALECTS
    )
    assert sqlite == postgres


def test_a_type_of_a_column_has_a_word_in_every_dialect() -> None:
    used = {type_ for kind in Row.__subclasses__() for type_ in table_of(kind).types.values()}
    for dialect in DIALECTS:
        assert used == COLUMN_TYPES[dialect].keys()
