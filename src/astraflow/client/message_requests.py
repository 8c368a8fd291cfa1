"""The requests about signals and approvals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from astraflow.client.requests import (
    JSON,
    RUNS,
    ApiRequest,
    Pages,
    _as,
    _as_nothing,
    _encode,
    _part,
    _query,
)
from astraflow.core.contract.base import Page
from astraflow.core.contract.messages import (
    ListApprovals,
    OpenApproval,
    OpenApprovalPage,
    SignalAccepted,
    SignalAddressPage,
)

APPROVALS: Final = "/api/v1/approvals"


def send_signal(
    run_id: str, name: str, payload: Any = None, *, idempotency_key: str | None = None
) -> ApiRequest[SignalAccepted]:
    """A message for the nodes of a run that wait for it. With a key it counts once, however often it is sent."""
    path = f"{RUNS}/{_part(run_id)}/signals/{_part(name)}"
    body = _encode({"payload": payload}, "payload")
    headers = JSON if idempotency_key is None else {**JSON, "Idempotency-Key": idempotency_key}
    return ApiRequest(
        "POST",
        path,
        _as(SignalAccepted),
        headers=headers,
        body=body,
        again=idempotency_key is not None,
    )


def list_signals(run_id: str) -> ApiRequest[SignalAddressPage]:
    """The addresses at which systems outside send signals to a run."""
    return ApiRequest("GET", f"{RUNS}/{_part(run_id)}/signals", _as(SignalAddressPage))


def decide_approval(
    run_id: str,
    node_id: str,
    approved: bool,
    *,
    comment: str = "",
    values: Mapping[str, Any] | None = None,
    scope: str | None = None,
) -> ApiRequest[None]:
    """Approve or reject at a node that waits for a person."""
    path = f"{RUNS}/{_part(run_id)}/nodes/{_part(node_id)}/approval"
    decision: dict[str, Any] = {
        "approved": approved,
        "comment": comment,
        "values": dict(values or {}),
    }
    if scope is not None:
        decision["scope"] = scope
    body = _encode(decision, "decision")
    return ApiRequest("POST", path, _as_nothing, headers=JSON, body=body)


def list_approvals(
    *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[OpenApproval]]:
    params = _query(ListApprovals, limit=limit, cursor=cursor)
    return ApiRequest("GET", APPROVALS, _as(OpenApprovalPage), params)


def iterate_approvals(*, limit: int | None = None, page_size: int = 200) -> Pages[OpenApproval]:
    return Pages(lambda cursor: list_approvals(limit=page_size, cursor=cursor), limit)
