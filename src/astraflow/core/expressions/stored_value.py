"""Values that are stored by reference, because they are too large for a result.

A result has a reference in their place: `{"resourceRef": {"resourceId": …, "type": "astraflow.value", …}}`. The worker
of a node that is given one reads the value before the handler sees its parameters. An expression can hand it on whole,
and nothing else: the scheduler reads such a value only if it is the list of a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

VALUE_TYPE: Final = "astraflow.value"
"""The type of the resource that such a value is."""
VALUE_MARK: Final = VALUE_TYPE.encode()
"""Bytes without it hold no such reference."""
_KEY: Final = "resourceRef"


class StoredValue(msgspec.Struct, frozen=True, gc=False, rename={"resource_ref": _KEY}):
    """A reference as expressions see it. It is written as it was read."""

    resource_ref: Any


def is_stored_value(value: Any) -> bool:
    """Whether a part of a result is such a reference."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ref = value.get(_KEY)
    return isinstance(ref, Mapping) and ref.get("type") == VALUE_TYPE


def stored_resource(value: Any) -> str | None:
    """The id of the resource that a value is stored as, if it is."""
    ref = value.resource_ref if isinstance(value, StoredValue) else None
    if ref is None and is_stored_value(value):
        ref = value[_KEY]
    resource_id = None if ref is None else ref.get("resourceId")
    return resource_id if isinstance(resource_id, str) else None


def with_stored_values(value: Any) -> Any:
    """A value of JSON in which references are `StoredValue`s."""
    if is_stored_value(value):
        return StoredValue(value[_KEY])
    if isinstance(value, dict):
        return {key: with_stored_values(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_stored_values(one) for one in value]
    return value
