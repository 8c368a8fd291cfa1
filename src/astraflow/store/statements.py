"""SQL as the databases take it: read from files once, with the names in it resolved.

In the text of a query
    :name           is a parameter. A database gets numbers, which are computed here;
    (:names[])      is a list of texts, for `IN`;
    {RunRow}        is the list of columns of a row, {v.RunRow} the same columns of the alias `v`;
    {ENDED_ROLLOUTS} is the list of states in that set.
In the text of a migration {text}, {integer}, {boolean} and {bytes} are the types of columns, and {strict} or {keyed}
stands behind the columns of a table; `keyed` is for tables that are read by their key alone.

Nothing from outside ever becomes part of a text: values are parameters.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, assert_never

import msgspec

import astraflow
from astraflow.store import rows
from astraflow.store.rows import Row
from astraflow.store.tables import REMOVED, Table, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Dialect = Literal["sqlite", "postgres"]

COLUMN_TYPES: dict[Dialect, dict[str, str]] = {
    "sqlite": {"text": "TEXT", "integer": "INTEGER", "boolean": "INTEGER", "bytes": "BLOB"},
    # Text is compared by bytes, so that lists have the same order on every back end.
    "postgres": {
        "text": 'text COLLATE "C"',
        "integer": "bigint",
        "boolean": "boolean",
        "bytes": "bytea",
    },
}
_MARK: dict[Dialect, str] = {"sqlite": "?", "postgres": "$"}
_LIST: dict[Dialect, str] = {
    "sqlite": "(SELECT value FROM json_each({0}))",
    "postgres": "(SELECT unnest({0}::text[]))",
}

_TABLE_WORDS: dict[Dialect, dict[str, str]] = {
    "sqlite": {"strict": " STRICT", "keyed": " STRICT, WITHOUT ROWID"},
    "postgres": {"strict": "", "keyed": ""},
}

_READABLE = re.compile(r"^-- readable by schema: (\d+)$", re.MULTILINE)
_WORD = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_MACRO = re.compile(r"\{(?:(\w+)\.)?(\w+)\}")
_PARAMETER = re.compile(r"\(:(\w+)\[\]\)|(?<!:):([a-z]\w*)")
_encode = msgspec.json.Encoder().encode
_KINDS = {kind.__name__: kind for kind in Row.__subclasses__()}


class Statement(NamedTuple):
    """A text for one database, and the names of its parameters in the order of their numbers."""

    text: str
    names: tuple[str, ...]
    has_json: bool = False
    """Whether lists travel as JSON text."""

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        found = [values[name] for name in self.names]
        if self.has_json:
            return [_encode(one).decode() if isinstance(one, list) else one for one in found]
        return found


class Migration(NamedTuple):
    """One step forward of the schema."""

    version: int
    name: str
    text: str
    readable_by: int | None = None
    """The oldest schema whose software can work with this one, as its file says in `-- readable by schema: 17`."""

    @property
    def record(self) -> dict[str, object]:
        """What the table of migrations keeps of it."""
        return {**self._asdict(), "software": astraflow.__version__}


@cache
def statements_of(dialect: Dialect) -> Statements:
    return Statements(dialect)


class Statements:
    """Every statement that a database of this dialect is asked. Made once (`statements_of`)."""

    def __init__(self, dialect: Dialect) -> None:
        self._named = {
            name: compiled(text, dialect) for name, text in load_queries(dialect).items()
        }
        self.put = {kind: _put(table_of(kind), dialect) for kind in Row.__subclasses__()}
        """Writes one row; the parameters are its fields in their order."""
        self.delete = {kind: _delete(table_of(kind), dialect) for kind in REMOVED.values()}
        """Removes the row with a key; the parameters are the parts of the key in their order."""

    def __getitem__(self, name: str) -> Statement:
        return self._named[name]


def compiled(text: str, dialect: Dialect, first: Iterable[str] = ()) -> Statement:
    """A text with `:names`, as the database takes it. The names in `first` get the first numbers."""
    names = list(first)
    lists: list[str] = []

    def number(match: re.Match[str]) -> str:
        of_list, name = match.groups()
        if of_list is not None:
            lists.append(of_list)
        name = of_list or name
        if name not in names:
            names.append(name)
        mark = f"{_MARK[dialect]}{names.index(name) + 1}"
        return _LIST[dialect].format(mark) if of_list is not None else mark

    numbered = _PARAMETER.sub(number, text)
    return Statement(numbered, tuple(names), dialect == "sqlite" and bool(lists))


def load_queries(dialect: Dialect) -> dict[str, str]:
    """The texts of all queries by their names: those of both databases, and those of this one."""
    found: dict[str, str] = {}
    for file in ("queries.sql", f"{dialect}.sql"):
        text = resources.files(__package__).joinpath("sql", file).read_text("utf-8")
        _, *parts = _NAME.split(text)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            assert name not in found, f"the query has two texts: {name}"
            found[name] = _MACRO.sub(_expanded, _COMMENT.sub("", body).strip())
    return found


@cache
def load_migrations(dialect: Dialect) -> list[Migration]:
    """All of them in order: 1, 2, … without a gap. `0001_name.sql` is for both databases, `0001_name.sqlite.sql` for
    one; a number may have both."""
    texts: dict[tuple[int, str], list[str]] = {}
    folder = resources.files(__package__).joinpath("sql", "migrations")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name, _, rest = entry.name.removesuffix(".sql").partition(".")
        if entry.name.endswith(".sql") and rest in ("", dialect):
            number, _, title = name.partition("_")
            texts.setdefault((int(number), title), []).append(entry.read_text("utf-8"))
    words: dict[str, str] = {**COLUMN_TYPES[dialect], **_TABLE_WORDS[dialect]}
    found = [
        migration_of(number, title, _WORD.sub(lambda match: words[match[1]], "\n".join(parts)))
        for (number, title), parts in sorted(texts.items())
    ]
    assert [one.version for one in found] == list(range(1, len(found) + 1))
    return found


def migration_of(number: int, title: str, text: str) -> Migration:
    """One step. Of two texts the one that names the newer schema counts."""
    named = [int(one) for one in _READABLE.findall(text)]
    return Migration(number, title, text, max(named, default=None))


def _expanded(match: re.Match[str]) -> str:
    alias, name = match.groups()
    if name in _KINDS:
        columns = table_of(_KINDS[name]).columns
        return ", ".join(f"{alias}.{column}" if alias else column for column in columns)
    return _joined(f"'{state}'" for state in sorted(getattr(rows, name)))


def _put(table: Table[Any], dialect: Dialect) -> Statement:
    if table.kind.mode == "change":
        changed = _joined(f"{name} = :{name}" for name in table.others)
        text = f"UPDATE {table.name} SET {changed} WHERE {_is_key(table)}"  # noqa: S608
    else:
        values = _joined(f":{name}" for name in table.columns)
        insert = f"INSERT INTO {table.name} ({_joined(table.columns)})"
        text = f"{insert} VALUES ({values}){conflict_text(table)}"
    return compiled(text, dialect, table.columns)


def _delete(table: Table[Any], dialect: Dialect) -> Statement:
    text = f"DELETE FROM {table.name} WHERE {_is_key(table)}"  # noqa: S608
    return compiled(text, dialect, table.key)


def _is_key(table: Table[Any]) -> str:
    return " AND ".join(f"{name} = :{name}" for name in table.key)


def conflict_text(table: Table[Any]) -> str:
    """What an insert does when the key is stored."""
    key = f" ON CONFLICT ({_joined(table.key)})"
    match table.kind.mode:
        case "insert":
            return ""
        case "ignore":
            return f"{key} DO NOTHING"
        case "replace":
            changed = _joined(f"{name} = excluded.{name}" for name in table.others)
            return f"{key} DO UPDATE SET {changed}"
        case "change":
            raise AssertionError("a change is no insert")
        case other:
            assert_never(other)


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)
