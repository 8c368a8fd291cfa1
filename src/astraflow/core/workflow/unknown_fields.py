"""Fields that mean nothing: kept as they are, and warned of, because they may be meant as others.

A definition belongs to its author, so that an unknown field is no problem. But `retries` in the place of `retry`, or
`timezone` in that of `timeZone`, is a mistake that nobody would find. Fields that begin with `x-` are the author's own.
So is what the editor draws: positions and widgets.

What may be where is read from the structs of the definition, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import Raw, inspect

from astraflow.core.errors import WORKFLOW_UNKNOWN_FIELD
from astraflow.core.workflow.definition import Position, Widget, WorkflowSpec
from astraflow.core.workflow.problems import Problems, pointer_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.workflow.problems import DefinitionProblem

_EDITOR: Final = (Position, Widget)
_PARTS: Final = {
    "nodes": "a node",
    "edges": "an edge",
    "inputs": "an input",
    "outputs": "an output",
    "triggers": "a trigger",
}
"""The parts of a definition that are looked at, and what one of each is called."""
_object: Final = msgspec.json.Decoder(dict[str, Raw])
_list: Final = msgspec.json.Decoder(list[Raw])


class _Shape(Protocol):
    """What JSON of one place may hold."""

    def look(self, raw: Raw, pointer: str, what: str, warnings: Problems) -> None: ...


class _FieldsShape:
    """An object with fields of its own."""

    def __init__(self, kind: inspect.StructType) -> None:
        self._inner = {field.encode_name: _shape_of(field.type) for field in kind.fields}
        if kind.tag_field is not None:
            self._inner[kind.tag_field] = None

    def look(self, raw: Raw, pointer: str, what: str, warnings: Problems) -> None:
        for name, value in _object.decode(raw).items():
            if name not in self._inner:
                if not name.startswith("x-"):
                    self._warn(name, pointer, what, warnings)
                continue
            inner = self._inner[name]
            if inner is not None and bytes(value) != b"null":
                inner.look(value, f"{pointer}/{name}", f"{name!r}", warnings)

    def _warn(self, name: str, pointer: str, what: str, warnings: Problems) -> None:
        near = warnings.did_you_mean(name, self._inner)
        message = f"{what} has no field of this name: {name[:80]!r}{near}"
        where = f"{pointer}/{pointer_token(name[:80])}"
        warnings.add(where, WORKFLOW_UNKNOWN_FIELD, message)


class _ItemsShape:
    """A list of things of one shape."""

    def __init__(self, item: _Shape) -> None:
        self._item = item

    def look(self, raw: Raw, pointer: str, what: str, warnings: Problems) -> None:
        for place, value in enumerate(_list.decode(raw)):
            self._item.look(value, f"{pointer}/{place}", what, warnings)


class _NamedShape:
    """An object whose fields are names that the author chose, each for a thing of one shape."""

    def __init__(self, value: _Shape) -> None:
        self._value = value

    def look(self, raw: Raw, pointer: str, what: str, warnings: Problems) -> None:
        for name, value in _object.decode(raw).items():
            self._value.look(value, f"{pointer}/{pointer_token(name)}", what, warnings)


class _TaggedShape:
    """One of several objects; a field says which."""

    def __init__(self, kinds: Iterable[inspect.StructType]) -> None:
        self._shapes: dict[object, _Shape] = {}
        self._tag_field = ""
        for kind in kinds:
            self._shapes[kind.tag] = _FieldsShape(kind)
            self._tag_field = kind.tag_field or ""

    def look(self, raw: Raw, pointer: str, what: str, warnings: Problems) -> None:
        tag = msgspec.json.decode(_object.decode(raw)[self._tag_field])
        self._shapes[tag].look(raw, pointer, what, warnings)


def _shape_of(kind: inspect.Type) -> _Shape | None:
    """None: whatever is there is not looked at."""
    match kind:
        case inspect.StructType():
            return None if issubclass(kind.cls, _EDITOR) else _FieldsShape(kind)
        case inspect.UnionType():
            structs = [one for one in kind.types if isinstance(one, inspect.StructType)]
            if len(structs) > 1:
                return _TaggedShape(structs)
            return next(filter(None, map(_shape_of, kind.types)), None)
        case inspect.ListType() | inspect.VarTupleType():
            item = _shape_of(kind.item_type)
            return None if item is None else _ItemsShape(item)
        case inspect.DictType():
            value = _shape_of(kind.value_type)
            return None if value is None else _NamedShape(value)
        case _:
            return None


def _shapes_of_parts() -> dict[str, _Shape]:
    kind = inspect.type_info(WorkflowSpec)
    assert isinstance(kind, inspect.StructType)
    shapes = {field.encode_name: _shape_of(field.type) for field in kind.fields}
    return {part: shape for part in _PARTS if (shape := shapes[part]) is not None}


_SHAPES: Final = _shapes_of_parts()


def find_warnings(definition: bytes) -> list[DefinitionProblem]:
    """The unknown fields of a definition that can be decoded."""
    warnings = Problems()
    for name, value in _object.decode(definition).items():
        if name in _SHAPES:
            _SHAPES[name].look(value, f"/{name}", _PARTS[name], warnings)
    return warnings.found()
