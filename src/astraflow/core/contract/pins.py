"""Pinned results: what stands in for the result of a node while a workflow is developed."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from astraflow.core.contract.base import (
    OBJECT,
    Id,
    JsonObject,
    Page,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    no_items,
)

MAX_PINNED_BYTES: Final = 1024 * 1024
"""Of one pinned result."""
MAX_PINS: Final = 100
"""Of one workflow."""


class PinRequest(RequestBody, frozen=True, kw_only=True):
    """A result to pin: given here, or that of the node in a run."""

    result: Annotated[Raw | UnsetType, doc("The result: an object.", extra_json_schema=OBJECT)] = (
        UNSET
    )
    run_id: Annotated[Id | UnsetType, doc("The run whose result of the node is pinned.")] = UNSET

    EXAMPLE: ClassVar[JsonObject] = {"result": {"value": "a test"}}


class PinnedResult(RestObject, frozen=True, kw_only=True):
    """The pinned result of a node. Only runs that ask for it use it; a triggered run never does."""

    workflow_id: Annotated[str, doc("The workflow.")]
    node_id: Annotated[str, doc("The node.")]
    result: Annotated[Any, doc("What the node returns in its place.", extra_json_schema=OBJECT)]
    from_run: Annotated[str | None, doc("The run that it is from.")]
    pinned_at: Annotated[Timestamp, doc("When it was pinned.")]
    pinned_by: Annotated[str, doc("Who pinned it.")]
    warnings: Annotated[
        list[str], doc("What does not fit the schema of the node, when it is pinned.")
    ] = msgspec.field(default_factory=no_items)

    EXAMPLE: ClassVar[JsonObject] = {
        "workflowId": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
        "nodeId": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
        "result": {"value": "a test"},
        "fromRun": None,
        "pinnedAt": "2026-01-15T10:00:00.000Z",
        "pinnedBy": "ann",
    }


class PinnedResultPage(Page[PinnedResult], frozen=True, kw_only=True):
    """All pinned results of a workflow, on one page."""
