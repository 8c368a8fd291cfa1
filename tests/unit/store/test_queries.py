from __future__ import annotations

import re
from pathlib import Path

import pytest

import astraflow.store
from astraflow.store.queries import Dialect, load_migrations, load_queries

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
MODULES: dict[str, tuple[str, ...]] = {
    "sqlite": (
        "sqlite",
        "sqlite_reads",
        "sqlite_writer",
        "sqlite_file",
        "sqlite_checkpoint",
        "sqlite_inspection",
        "sqlite_holdings",
    ),
    "postgres": ("postgres", "postgres_link", "postgres_holdings", "postgres_inspection"),
}
# A name of a query stands in quotes, in brackets after `queries`, or as an argument of what asks or changes.
_ASKS = r"\.(?:all|one|rows|number)\(|_(?:all|one)\(|value\(|_read\(_all, |_change\(claim, |\((?=\"delete_ended_)"
_USED = re.compile(rf"(?:queries\[|{_ASKS})\"(\w+)\"")


def used(dialect: Dialect) -> set[str]:
    folder = Path(astraflow.store.__file__).parent
    text = "".join((folder / f"{name}.py").read_text() for name in MODULES[dialect])
    return set(_USED.findall(text))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used_and_every_used_one_is_there(dialect: Dialect) -> None:
    assert load_queries(dialect).keys() == used(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_are_bare_statements(dialect: Dialect) -> None:
    for name, text in load_queries(dialect).items():
        assert text, name
        assert "--" not in text, name
        assert ";" not in text, name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_from_one(dialect: Dialect) -> None:
    migrations = load_migrations(dialect)
    assert [one.version for one in migrations] == list(range(1, len(migrations) + 1))
    assert all(one.name and one.text for one in migrations)


def test_both_dialects_have_the_same_migrations() -> None:
    sqlite, postgres = (
        [(one.version, one.name) for one in load_migrations(dialect)] for dialect in DIALECTS
    )
    assert sqlite == postgres
