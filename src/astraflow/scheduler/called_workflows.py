"""The published definitions that a definition calls, and those that they call: read before it is validated or planned.

Each is read once, whatever the number of its calls. What is missing is left out: validation reports it with its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from astraflow.core.errors import AstraflowError
from astraflow.core.workflow import decode_definition
from astraflow.core.workflow.callees import called_by

if TYPE_CHECKING:
    from astraflow.core.workflow.callees import CalleeKey
    from astraflow.core.workflow.definition import WorkflowDocument
    from astraflow.store.store import Store

MAX_DOCUMENTS: Final = 256
"""Definitions that are read for one: what is beyond is missing to validation."""


def may_call(definition: bytes) -> bool:
    """Whether a definition may call another workflow. A key can be spelt with escapes."""
    return b'"call"' in definition or b"\\u" in definition


async def read_called(
    store: Store, tenant: str, definition: bytes
) -> dict[CalleeKey, WorkflowDocument]:
    """The definitions by id and version, as they are now."""
    if not may_call(definition):
        return {}
    try:
        pending = sorted(called_by(decode_definition(definition)), key=str)
    except AstraflowError:
        return {}  # whoever asked finds out why
    found: dict[CalleeKey, WorkflowDocument] = {}
    seen = set(pending)
    while pending and len(found) < MAX_DOCUMENTS:
        key = pending.pop(0)
        row = await store.find_workflow(tenant, *key)
        if row is None:
            continue
        found[key] = decode_definition(row.definition)
        more = called_by(found[key]) - seen
        seen |= more
        pending += sorted(more, key=str)
    return found
