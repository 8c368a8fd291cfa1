"""The requests about pinned results of workflows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astraflow.client.requests import JSON, WORKFLOWS, ApiRequest, _as, _as_nothing, _encode, _part
from astraflow.core import errors
from astraflow.core.contract.base import Page
from astraflow.core.contract.pins import PinnedResult, PinnedResultPage


def list_pins(workflow_id: str) -> ApiRequest[Page[PinnedResult]]:
    """All pinned results of a workflow."""
    return ApiRequest("GET", f"{WORKFLOWS}/{_part(workflow_id)}/pins", _as(PinnedResultPage))


def pin_result(
    workflow_id: str,
    node_id: str,
    result: Mapping[str, Any] | None = None,
    *,
    run_id: str | None = None,
) -> ApiRequest[PinnedResult]:
    """Pin a result of a node, or the one that it has in a run. Raises: Refused, if both or neither are given."""
    if (result is None) == (run_id is None):
        raise errors.Refused(errors.REQUEST_INVALID, "give either a result or a run")
    wanted = {"runId": run_id} if result is None else {"result": result}
    return ApiRequest(
        "PUT",
        f"{WORKFLOWS}/{_part(workflow_id)}/pins/{_part(node_id)}",
        _as(PinnedResult),
        headers=JSON,
        body=_encode(wanted, "result"),
    )


def unpin_result(workflow_id: str, node_id: str) -> ApiRequest[None]:
    """Remove the pinned result of a node."""
    path = f"{WORKFLOWS}/{_part(workflow_id)}/pins/{_part(node_id)}"
    return ApiRequest("DELETE", path, _as_nothing)
