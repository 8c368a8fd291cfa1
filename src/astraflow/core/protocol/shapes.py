"""Which fields a payload may have, and taking away the others.

PROTOCOL §1: "Unknown fields are ignored in payloads and refused in the envelope." The models
refuse them everywhere, so that whatever they accept has been looked at field by field; a payload
of a newer peer is decoded again without what we do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.protocol.wire import Wire


class Shape(NamedTuple):
    """What is known of a place in a payload: its members, or its items, or nothing."""

    members: Mapping[str, Shape] | None = None
    items: Shape | None = None
    has_raw: bool = False


def shape_of(model: type[Wire]) -> Shape:
    return _shape(inspect.type_info(model))


def known_only(value: object, shape: Shape) -> object:
    """The value without the members that the shape does not have."""
    if shape.members is not None and isinstance(value, dict):
        members = shape.members
        return {key: known_only(value[key], members[key]) for key in value if key in members}
    if shape.items is not None and isinstance(value, list):
        items = shape.items
        return [known_only(item, items) for item in value]
    return value


def _shape(info: inspect.Type) -> Shape:
    if isinstance(info, inspect.UnionType):
        inner = [_shape(each) for each in info.types if not isinstance(each, inspect.NoneType)]
        return inner[0] if len(inner) == 1 else Shape()
    if isinstance(info, inspect.StructType):
        members = {field.encode_name: _shape(field.type) for field in info.fields}
        return Shape(members, None, any(each.has_raw for each in members.values()))
    if isinstance(info, inspect.VarTupleType):
        items = _shape(info.item_type)
        return Shape(None, items, items.has_raw)
    return Shape(has_raw=isinstance(info, inspect.RawType))
