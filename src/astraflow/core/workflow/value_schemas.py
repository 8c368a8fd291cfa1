"""JSON Schema for values: the parameters and results of a node, the inputs and outputs of a run.

Rules:
1. A schema is compiled once and kept by its bytes. Draft 2020-12, unless `$schema` names an earlier draft.
2. Nothing is fetched: a reference leads to a place in the same schema (`#`, `#/…`), or the schema is refused.
3. A hostile schema is bounded before it is used: its bytes, its depth, its number of subschemas, and how many of them
   one place of a value can meet. Patterns run on an engine whose time is linear; what it cannot do is refused.
4. Violations are bounded in number and length, and tell nothing of the value: it may be private, its place is not.
5. What is authored is not all known: edges write some of it, expressions and references are replaced before the node
   runs. What could still become valid is no violation.

The library is loaded with the first schema: it takes 8 MiB, and a scheduler without work needs none of it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from astraflow.core.workflow.limits import (
    MAX_PATH_CHARS,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_EVALUATIONS,
    MAX_VIOLATION_CHARS,
    MAX_VIOLATIONS,
)
from astraflow.core.workflow.problems import pointer_token
from astraflow.core.workflow.schema_costs import BadSchema, depth_within
from astraflow.core.workflow.schema_shapes import is_trivial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jsonschema_rs import ValidationError

    from astraflow.core.workflow.bindings import Path

_DRAFTS: Final = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
_KEPT: Final = 256
"""Compiled schemas. With their largest size that is 16 MiB of text; those of all packages in use are a few dozen."""
_PATTERN_BYTES: Final = 1024 * 1024
"""What one compiled pattern may take."""
_MASK: Final = "the value"
_LOOKED_AT: Final = 1_000
"""Violations that are looked at to find those that count."""

_CERTAIN: Final = frozenset(
    {"required", "additionalProperties", "maxProperties", "maxItems", "propertyNames"}
)
"""Keywords that an object or a list breaks for certain, also when something below it is not known yet."""
_BRANCHES: Final = frozenset({"then", "else"})


class Violation(Struct, frozen=True, gc=False):
    """One place of a value that does not fit. `pointer` is a JSON pointer into the value."""

    pointer: str
    message: str


class ValueSchema:
    """A compiled schema."""

    __slots__ = ("_deepest", "_validator", "document", "is_trivial")

    def __init__(self, document: Any, validator: Any, deepest: int | None) -> None:
        self.document = document
        self._validator = validator
        self._deepest = deepest
        self.is_trivial = is_trivial(document)
        """Whether every object fits: then there is nothing to check."""

    def is_valid(self, value: Any) -> bool:
        """Whether a value fits, all of which is known."""
        return not self._is_too_deep(value) and bool(self._validator.is_valid(value))

    def violations(self, value: Any, wired: Sequence[Path] = ()) -> list[Violation]:
        """What does not fit in a value that a node is given. References are taken to fit."""
        if self.is_valid(value):
            return []
        return self._find(value, wired, list(_references(value, with_expressions=False)))

    def authored_violations(self, value: Any, wired: Sequence[Path] = ()) -> list[Violation]:
        """What can never fit in a value as its author wrote it. `wired`: the paths that edges write."""
        if self.is_valid(value):
            return []
        return self._find(value, wired, list(_references(value, with_expressions=True)))

    def _is_too_deep(self, value: Any) -> bool:
        return self._deepest is not None and _is_deeper(value, self._deepest)

    def _find(self, value: Any, wired: Sequence[Path], replaced: list[Path]) -> list[Violation]:
        if self._is_too_deep(value):
            message = (
                f"nested deeper than {self._deepest}, which is as deep as this schema is checked"
            )
            return [Violation("", message)]
        found: list[Violation] = []
        for error in islice(self._validator.iter_errors(value), _LOOKED_AT):
            if len(found) >= MAX_VIOLATIONS:
                break
            if not _may_become_valid(error, wired, replaced):
                found.extend(_violations(error))
        return found[:MAX_VIOLATIONS]


def compile_schema(raw: bytes) -> ValueSchema:
    """Compile a schema, or take the compiled one.

    Raises:
        BadSchema: it is none, or one that is not allowed.
    """
    found = _find(raw)
    if isinstance(found, BadSchema):
        raise BadSchema(found.pointer, found.message)
    return found


def find_schema(raw: bytes) -> ValueSchema | None:
    """The compiled schema, or None if there is nothing that it could refuse: empty, trivial, or no schema at all."""
    if not raw:
        return None
    found = _find(raw)
    return None if isinstance(found, BadSchema) or found.is_trivial else found


@lru_cache(maxsize=_KEPT)
def _find(raw: bytes) -> ValueSchema | BadSchema:
    try:
        return _compile(raw)
    except BadSchema as error:
        return BadSchema(error.pointer, error.message)  # without the frames that it went through


def _compile(raw: bytes) -> ValueSchema:
    if len(raw) > MAX_SCHEMA_BYTES:
        raise BadSchema("", f"the schema is larger than {MAX_SCHEMA_BYTES} bytes: {len(raw)}")
    try:
        schema = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadSchema(
            "", f"the schema cannot be read: {str(error)[:MAX_VIOLATION_CHARS]}"
        ) from None
    if not isinstance(schema, dict | bool):
        raise BadSchema("", "a schema is an object, true or false")
    deepest = depth_within(schema, MAX_SCHEMA_EVALUATIONS)
    return ValueSchema(schema, _validator_of(schema), deepest)


def _validator_of(schema: dict[str, Any] | bool) -> Any:
    import jsonschema_rs

    draft = "Draft202012Validator"
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if named is not None:
        draft = _DRAFTS.get(named.removesuffix("#") if isinstance(named, str) else "", "")
        if not draft:
            raise BadSchema("/$schema", "not a draft of JSON Schema that is known here")
    try:
        return getattr(jsonschema_rs, draft)(
            schema,
            validate_formats=True,
            mask=_MASK,
            pattern_options=jsonschema_rs.RegexOptions(_PATTERN_BYTES, _PATTERN_BYTES),
            offline=True,
        )
    except jsonschema_rs.ValidationError as error:
        raise BadSchema(_pointer(error.instance_path), _short(error.message)) from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise BadSchema("", _short(str(error))) from None


def _violations(error: ValidationError) -> Iterable[Violation]:
    """The places of one error: a member that is missing or too many is the place, not the object."""
    path, keyword = error.instance_path, error.kind.name
    if keyword == "required":
        yield Violation(_pointer(path, error.kind.value), "it is required and missing")
    elif keyword == "additionalProperties":
        for name in islice(error.kind.value, MAX_VIOLATIONS):
            yield Violation(_pointer(path, name), "the schema has no member of this name")
    else:
        yield Violation(_pointer(path), _short(error.message))


def _short(message: str) -> str:
    return message if len(message) <= MAX_VIOLATION_CHARS else f"{message[:MAX_VIOLATION_CHARS]}…"


def _pointer(path: Iterable[str | int], *more: str) -> str:
    """The place; where names are longer than anybody reads, the last one above it that is not."""
    pointer = ""
    for step in (*path, *more):
        token = pointer_token(str(step))
        if len(pointer) + len(token) > MAX_PATH_CHARS:
            break
        pointer = f"{pointer}/{token}"
    return pointer


def _may_become_valid(
    error: ValidationError, wired: Sequence[Path], replaced: Sequence[Path]
) -> bool:
    """Whether what is not known yet may still make it fit."""
    if not wired and not replaced:
        return False
    here = tuple([str(step) for step in error.instance_path])
    if any(_is_within(path, here) for path in (*wired, *replaced)):
        return True
    keyword = error.kind.name
    if keyword == "required" and any(_is_within((*here, error.kind.value), path) for path in wired):
        return True
    if any(step in _BRANCHES for step in error.schema_path) or keyword == "unevaluatedProperties":
        return True  # another branch may be the one
    if keyword == "type":
        # An edge makes an object of whatever stands in its way; a reference only replaces itself.
        return any(_is_within(here, path) for path in wired)
    is_known_in_part = any(_is_within(here, path) for path in (*wired, *replaced))
    return is_known_in_part and keyword not in _CERTAIN


def _is_within(outer: Path, inner: Path) -> bool:
    return inner[: len(outer)] == outer


def _references(value: Any, *, with_expressions: bool) -> Iterable[Path]:
    """Where a value holds what is replaced before the node gets it."""
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, one = pending.pop()
        if isinstance(one, dict):
            if path and ("secretRef" in one or "resourceRef" in one):
                yield path
                continue
            pending.extend(((*path, key), inner) for key, inner in one.items())
        elif isinstance(one, list):
            pending.extend(((*path, str(place)), inner) for place, inner in enumerate(one))
        elif with_expressions and isinstance(one, str) and one.startswith("="):
            yield path


def _is_deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below.extend(one.values())
            elif isinstance(one, list):
                below.extend(one)
        if not below:
            return False
        level = below
    return True
