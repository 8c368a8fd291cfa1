"""What a JSON Schema can cost: how many subschemas one place of a value can meet.

A validator looks at every branch of `anyOf`, and a few references to the same definition in each other make that 2^n.
The count is an upper bound that follows from the schema alone: `inner` subschemas apply to the same value and add up,
those of members and items apply one level below. A value is a list or an object, never both: the larger count is taken.
A schema whose count grows with every level may be used for values that are not nested that deep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from astraflow.core.workflow.limits import MAX_PARAMETERS_DEPTH, MAX_SCHEMA_DEPTH
from astraflow.core.workflow.problems import pointer_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ONE: Final = ("not", "if", "then", "else")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
_ITEMS: Final = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_MEMBERS: Final = (
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
)
_DEFINITIONS: Final = ("$defs", "definitions")
_REFUSED: Final = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor")

_Counts = dict[tuple[int, bool], int]


class BadSchema(ValueError):
    """It is no schema, or one that is not allowed. `pointer` is a JSON pointer into it."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message


def depth_within(schema: dict[str, Any] | bool, limit: int) -> int | None:
    """How deep a value may be nested so that one place meets at most `limit` subschemas; None: as deep as any.

    Raises:
        BadSchema: not even a plain value can be checked, or the schema refers to what it must not.
    """
    costs = _Costs(schema)
    for depth in range(MAX_PARAMETERS_DEPTH + 1):
        before = costs.counts
        if costs.next_level() > limit:
            if depth < 2:
                raise BadSchema("", f"a value meets more than {limit} subschemas")
            return depth - 1
        if costs.counts == before:
            return None  # no level below adds anything
    return None


class _Costs:
    """The subschemas of one schema, and the counts of one level after the other, from the deepest one up."""

    def __init__(self, root: dict[str, Any] | bool) -> None:
        self._root = root
        self._inner: dict[int, list[dict[str, Any]]] = {}
        self._below: dict[int, dict[bool, list[list[dict[str, Any]]]]] = {}
        self.counts: _Counts = {}
        """Of the last level, for a list (true) and for an object."""
        self._order: list[dict[str, Any]] = []
        self._collect()
        self._sort()

    def _collect(self) -> None:
        pending: list[tuple[str, Any, int]] = [("", self._root, 0)]
        while pending:
            pointer, schema, depth = pending.pop()
            if not isinstance(schema, dict) or id(schema) in self._inner:
                continue
            if depth > MAX_SCHEMA_DEPTH:
                raise BadSchema(pointer, f"the schema is nested deeper than {MAX_SCHEMA_DEPTH}")
            _check_identity(pointer, schema)
            inner = list(_inner(pointer, schema))
            items = list(_below(pointer, schema, _ITEMS))
            members = list(_below(pointer, schema, _MEMBERS))
            for part in (inner, *items, *members, list(_all_of(pointer, schema, _DEFINITIONS))):
                pending.extend((place, one, depth + 1) for place, one in part)
            same = [one for _, one in inner if isinstance(one, dict)]
            if "$ref" in schema:
                target = self._resolve(f"{pointer}/$ref", schema["$ref"])
                if isinstance(target, dict):
                    pending.append((schema["$ref"][1:], target, 0))
                    same.append(target)
            self._inner[id(schema)] = same
            self._below[id(schema)] = {True: _plain(items), False: _plain(members)}

    def _resolve(self, pointer: str, ref: Any) -> Any:
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise BadSchema(pointer, "a reference must lead to a place in the same schema: #/…")
        here: Any = self._root
        for token in ref.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict) and key in here:
                here = here[key]
            elif isinstance(here, list) and key.isdecimal() and int(key[:9]) < len(here):
                here = here[int(key[:9])]
            else:
                raise BadSchema(pointer, f"the reference leads nowhere: {ref[:80]}")
        return here

    def _sort(self) -> None:
        """Put each schema behind those that apply to the same value; a circle of them never ends."""
        if not isinstance(self._root, dict):
            return
        known = {id(one): one for one in self._schemas()}
        state: dict[int, bool] = {}  # present: seen; true: done
        for start in known.values():
            stack = [(start, False)]
            while stack:
                schema, is_done = stack.pop()
                if is_done:
                    state[id(schema)] = True
                    self._order.append(schema)
                    continue
                if id(schema) in state:
                    if not state[id(schema)]:
                        raise BadSchema("", "the schema refers to itself for the same value")
                    continue
                state[id(schema)] = False
                stack.append((schema, True))
                stack.extend(
                    (one, False) for one in self._inner[id(schema)] if not state.get(id(one))
                )

    def _schemas(self) -> Iterator[dict[str, Any]]:
        pending = [self._root]
        seen: set[int] = set()
        while pending:
            one = pending.pop()
            if not isinstance(one, dict) or id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            pending.extend(self._inner[id(one)])
            for groups in self._below[id(one)].values():
                for group in groups:
                    pending.extend(group)

    def next_level(self) -> int:
        """The count for values with one more level."""
        counts: _Counts = {}
        above = self.counts
        for schema in self._order:
            here = id(schema)
            for is_list in (True, False):
                count = 1 + sum([counts[id(one), is_list] for one in self._inner[here]])
                if above:
                    for group in self._below[here][is_list]:
                        count += max([_larger(above, one) for one in group], default=0)
                counts[here, is_list] = count
        self.counts = counts
        return _larger(counts, self._root) if isinstance(self._root, dict) else 0


def _larger(counts: _Counts, schema: dict[str, Any]) -> int:
    return max(counts[id(schema), True], counts[id(schema), False])


def _plain(groups: Sequence[Sequence[tuple[str, Any]]]) -> list[list[dict[str, Any]]]:
    return [[one for _, one in group if isinstance(one, dict)] for group in groups]


def _check_identity(pointer: str, schema: dict[str, Any]) -> None:
    for keyword in _REFUSED:
        if keyword in schema:
            raise BadSchema(
                f"{pointer}/{keyword}", f"{keyword} is not supported; use $defs and $ref"
            )
    if pointer and isinstance(schema.get("$id"), str):
        raise BadSchema(f"{pointer}/$id", "only the whole schema may have an $id")


def _inner(pointer: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword in _ONE:
        if keyword in schema:
            yield f"{pointer}/{keyword}", schema[keyword]
    yield from _all_of(pointer, schema, _SEVERAL)


def _all_of(
    pointer: str, schema: dict[str, Any], keywords: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    for keyword in keywords:
        if keyword in schema:
            yield from _each(f"{pointer}/{keyword}", schema[keyword])


def _below(
    pointer: str, schema: dict[str, Any], keywords: Iterable[str]
) -> Iterator[list[tuple[str, Any]]]:
    """Groups of subschemas; of each group one applies to an item or a member."""
    for keyword in keywords:
        given, here = schema.get(keyword), f"{pointer}/{keyword}"
        if keyword == "patternProperties":
            yield from ([one] for one in _each(here, given))  # all of them may fit one name
        elif keyword == "properties" or isinstance(given, list):
            yield list(_each(here, given))
        elif given is not None:
            yield [(here, given)]


def _each(pointer: str, given: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(given, dict):
        for key, one in given.items():
            yield f"{pointer}/{pointer_token(key)}", one
    elif isinstance(given, list):
        for place, one in enumerate(given):
            yield f"{pointer}/{place}", one
