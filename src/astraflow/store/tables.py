"""From the struct of a row: its columns, their SQL types, its key, and the decoder of what a query returns."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from astraflow.store.rows import Changes, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SqlType = Literal["text", "integer", "boolean", "bytes"]
R = TypeVar("R", bound=Row)

_SQL_TYPES: dict[object, SqlType] = {
    str: "text",
    int: "integer",
    bool: "boolean",
    bytes: "bytes",
}


class Table(Generic[R]):
    """What the stores know of one kind of row."""

    def __init__(self, kind: type[R]) -> None:
        fields = msgspec.structs.fields(kind)
        self.kind = kind
        self.name = kind.table
        self.columns = kind.__struct_fields__
        self.types = {field.name: _sql_type(field.type) for field in fields}
        self.key = kind.primary_key
        self.others = tuple(name for name in self.columns if name not in self.key)
        self.key_of = attrgetter(*self.key) if self.key else None
        self.no_columns: list[tuple[()]] = [()] * len(self.columns)
        """The columns of no rows, as arrays; `no_keys` of no keys."""
        self.no_keys: list[tuple[()]] = [()] * len(self.key)
        self._booleans = [name for name, type_ in self.types.items() if type_ == "boolean"]
        is_plain = _takes_positions(kind) and not self._booleans
        self.decode: Callable[[Iterable[Any]], R] = self._in_order if is_plain else self._by_name
        """The row of these values, which stand in the order of `columns`."""

    def _in_order(self, values: Iterable[Any]) -> R:
        return self.kind(*values)

    def _by_name(self, values: Iterable[Any]) -> R:
        named = dict(zip(self.columns, values, strict=True))
        for name in self._booleans:
            named[name] = bool(named[name])  # SQLite has none
        return self.kind(**named)


def _takes_positions(kind: type[Row]) -> bool:
    try:
        kind(*kind.__struct_fields__)
    except TypeError:
        return False  # its fields are for keywords only
    return True


@cache
def table_of(kind: type[R]) -> Table[R]:
    return Table(kind)


def _sql_type(annotation: Any) -> SqlType:
    members = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) is Literal:
        return "text"
    if members and len(members) < len(get_args(annotation)):
        return _sql_type(members[0])
    annotation = getattr(annotation, "__supertype__", annotation)  # a NewType
    return _SQL_TYPES[annotation]


def _written() -> dict[str, type[Row]]:
    found: dict[str, type[Row]] = {}
    for field in msgspec.structs.fields(Changes):
        (member,) = get_args(field.type)
        if isinstance(member, type) and issubclass(member, Row):
            found[field.name] = member
    return found


WRITTEN = _written()
"""The lists of rows in `Changes`, in the order in which they are written."""
REMOVED = {
    f"{name}_gone": kind
    for name, kind in WRITTEN.items()
    if f"{name}_gone" in Changes.__struct_fields__
}
"""The lists of keys in `Changes`."""


def keys_to_remove(changes: Changes, name: str) -> list[Any]:
    """The keys in a list `x_gone`, without those of rows that are put: such a row may keep stored columns."""
    keys: list[Any] = getattr(changes, name)
    rows = getattr(changes, name.removesuffix("_gone"))
    key_of = table_of(REMOVED[name]).key_of
    if not keys or not rows or key_of is None:
        return keys
    put = set(map(key_of, rows))
    return [key for key in keys if key not in put]
