"""The requests that repeat and compare runs, and those about many runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from astraflow.client.requests import JSON, RUNS, ApiRequest, _as, _encode, _part
from astraflow.core.contract.reruns import MAX_BULK, BulkResult, Rerun, RunComparison


def rerun(
    run_id: str,
    *,
    mode: Literal["all", "failed", "from"] = "failed",
    nodes: Sequence[str] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    inputs: Mapping[str, Any] | None = None,
    packages: Mapping[str, str] | None = None,
    key: str | None = None,
) -> ApiRequest[Rerun]:
    """Repeat a run: all of it, what did not succeed, or from these nodes on. `key` is an idempotency key: with one the
    request may be sent again."""
    body: dict[str, Any] = {"mode": mode, "nodes": list(nodes)}
    body |= {"parameters": parameters or {}, "packages": packages or {}}
    if inputs is not None:
        body["inputs"] = inputs
    return ApiRequest(
        "POST",
        f"{RUNS}/{_part(run_id)}/rerun",
        _as(Rerun),
        headers=_headers(key),
        body=_encode(body, "parameters"),
        again=key is not None,
    )


def compare_runs(first: str, second: str) -> ApiRequest[RunComparison]:
    """What differs between two runs, node by node."""
    path = f"{RUNS}/{_part(first)}/compare/{_part(second)}"
    return ApiRequest("GET", path, _as(RunComparison))


def cancel_many(
    *,
    status: str | None = None,
    workflow_id: str | None = None,
    limit: int = MAX_BULK,
    cursor: str | None = None,
    dry_run: bool = False,
) -> ApiRequest[BulkResult]:
    """Cancel active runs, newest first, at most `limit` of them."""
    body = _body(status, workflow_id, limit, cursor, dry_run)
    return ApiRequest("POST", f"{RUNS}/cancel", _as(BulkResult), headers=JSON, body=body)


def rerun_many(
    *,
    status: str = "failed",
    workflow_id: str | None = None,
    mode: Literal["all", "failed"] = "failed",
    packages: Mapping[str, str] | None = None,
    limit: int = MAX_BULK,
    cursor: str | None = None,
    dry_run: bool = False,
    key: str | None = None,
) -> ApiRequest[BulkResult]:
    """Repeat runs that have ended, newest first, at most `limit` of them."""
    body = _body(status, workflow_id, limit, cursor, dry_run, mode=mode, packages=packages or {})
    return ApiRequest(
        "POST",
        f"{RUNS}/rerun",
        _as(BulkResult),
        headers=_headers(key),
        body=body,
        again=key is not None,
    )


def _headers(key: str | None) -> dict[str, str]:
    return {**JSON} if key is None else {**JSON, "idempotency-key": key}


def _body(
    status: str | None,
    workflow_id: str | None,
    limit: int,
    cursor: str | None,
    dry_run: bool,
    **more: Any,
) -> bytes:
    wanted = {"status": status, "workflowId": workflow_id, "cursor": cursor}
    given = {name: value for name, value in wanted.items() if value is not None}
    return _encode({**given, "limit": limit, "dryRun": dry_run, **more}, "filter")
