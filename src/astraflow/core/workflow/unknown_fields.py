"""Fields of nodes that mean nothing: kept as they are, and warned of, because they may be meant as others.

A definition belongs to its author, so that an unknown field is no problem. But `retries` in the place of `retry` is a
mistake that nobody would find. Fields that begin with `x-` are the author's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct

from astraflow.core.errors import WORKFLOW_UNKNOWN_FIELD
from astraflow.core.workflow.definition import NodeSpec
from astraflow.core.workflow.problems import Problems, pointer_token

if TYPE_CHECKING:
    from astraflow.core.workflow.problems import DefinitionProblem

_FIELDS: Final = tuple(field.encode_name for field in msgspec.structs.fields(NodeSpec))
_KNOWN: Final = frozenset(_FIELDS)


class _Nodes(Struct, gc=False):
    nodes: list[dict[str, Raw]]


_decoder: Final = msgspec.json.Decoder(_Nodes)


def find_warnings(definition: bytes) -> list[DefinitionProblem]:
    """The unknown fields of all nodes of a definition that can be decoded."""
    warnings = Problems()
    for place, node in enumerate(_decoder.decode(definition).nodes):
        for name in node:
            if name not in _KNOWN and not name.startswith("x-"):
                near = warnings.did_you_mean(name, _FIELDS)
                message = f"a node has no field of this name: {name[:80]!r}{near}"
                pointer = f"/nodes/{place}/{pointer_token(name[:80])}"
                warnings.add(pointer, WORKFLOW_UNKNOWN_FIELD, message)
    return warnings.found()
