"""SQL is read from files: one of queries under their names, and numbered migrations, for each dialect."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Dialect", "Migration", "load_migrations", "load_queries"]

Dialect = Literal["sqlite", "postgres"]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Migration(NamedTuple):
    """One step forward of the schema."""

    version: int
    name: str
    text: str


def load_queries(dialect: Dialect) -> Mapping[str, str]:
    text = resources.files(__package__).joinpath("sql", dialect, "queries.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: _without_comments(body) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def load_migrations(dialect: Dialect) -> list[Migration]:
    """All of them in order: 1, 2, … without a gap."""
    folder = resources.files(__package__).joinpath("sql", dialect, "migrations")
    found = []
    for entry in folder.iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        if entry.name.endswith(".sql"):
            found.append(Migration(int(number), name, entry.read_text("utf-8")))
    found.sort()
    assert [one.version for one in found] == list(range(1, len(found) + 1))
    return found


def _without_comments(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip()
