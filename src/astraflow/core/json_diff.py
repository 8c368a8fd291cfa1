"""What differs between two JSON values, by JSON pointers (RFC 6901).

1. Objects are compared by key, lists by place, everything else as a whole.
2. `1` and `1.0` are one number; `1` and `true` are not one value.
3. The first `limit` differences are listed, in the order of the values; `None` says that there are more.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

MAX_DIFFERENCES: Final = 1_000
_GONE: Final = object()


class ValueDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One place where two values differ. `before` and `after` are None where there was nothing."""

    pointer: str
    kind: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None


def differences(
    before: Any, after: Any, pointer: str = "", limit: int = MAX_DIFFERENCES
) -> tuple[list[ValueDiff], bool]:
    """The differences, and whether there are more than `limit`."""
    found: list[ValueDiff] = []
    pending: list[tuple[str, Any, Any]] = [(pointer, before, after)]
    while pending:
        place, one, other = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            # What is pushed last is looked at first.
            keys = [*one, *(key for key in other if key not in one)]
            for key in reversed(keys):
                pending.append(
                    (f"{place}/{_token(key)}", one.get(key, _GONE), other.get(key, _GONE))
                )
        elif isinstance(one, list) and isinstance(other, list):
            for index in reversed(range(max(len(one), len(other)))):
                pending.append((f"{place}/{index}", _item(one, index), _item(other, index)))
        elif not _is_same(one, other):
            if len(found) == limit:
                return found, True
            found.append(_difference(place, one, other))
    return found, False


def is_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON value."""
    return not differences(one, other, limit=0)[1]


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _GONE


def _is_same(one: Any, other: Any) -> bool:
    # Containers come here only against something else, and a bool is a number to Python.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _difference(pointer: str, before: Any, after: Any) -> ValueDiff:
    if before is _GONE:
        return ValueDiff(pointer=pointer, kind="added", after=after)
    if after is _GONE:
        return ValueDiff(pointer=pointer, kind="removed", before=before)
    return ValueDiff(pointer=pointer, kind="changed", before=before, after=after)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
