"""The requests about triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from astraflow.client.requests import JSON, ApiRequest, Pages, _as, _encode, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.triggers import (
    HookAccepted,
    ListTriggerFires,
    ListTriggers,
    ListWorkflowTriggers,
    Trigger,
    TriggerFire,
    TriggerFirePage,
    TriggerPage,
)

TRIGGERS: Final = "/api/v1/triggers"


def list_triggers(
    *, workflow_id: str | None = None, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[Trigger]]:
    params = _query(ListTriggers, workflow_id=workflow_id, limit=limit, cursor=cursor)
    return ApiRequest("GET", TRIGGERS, _as(TriggerPage), params)


def iterate_triggers(*, limit: int | None = None, page_size: int = 200) -> Pages[Trigger]:
    return Pages(lambda cursor: list_triggers(limit=page_size, cursor=cursor), limit)


def list_workflow_triggers(
    workflow_id: str, *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[Trigger]]:
    params = _query(ListWorkflowTriggers, limit=limit, cursor=cursor)
    path = f"/api/v1/workflows/{_part(workflow_id)}/triggers"
    return ApiRequest("GET", path, _as(TriggerPage), params)


def get_trigger(workflow_id: str, trigger_id: str) -> ApiRequest[Trigger]:
    return ApiRequest("GET", _path(workflow_id, trigger_id), _as(Trigger))


def enable_trigger(workflow_id: str, trigger_id: str) -> ApiRequest[Trigger]:
    """Let it start runs. Times and events from before do not count."""
    return ApiRequest("POST", f"{_path(workflow_id, trigger_id)}/enable", _as(Trigger))


def disable_trigger(workflow_id: str, trigger_id: str) -> ApiRequest[Trigger]:
    """Keep it from starting runs by itself."""
    return ApiRequest("POST", f"{_path(workflow_id, trigger_id)}/disable", _as(Trigger))


def run_trigger(
    workflow_id: str,
    trigger_id: str,
    inputs: Mapping[str, Any] | None = None,
    *,
    idempotency_key: str | None = None,
) -> ApiRequest[HookAccepted]:
    """Start a run as the trigger would, with these inputs beside its own."""
    body = _encode({"inputs": dict(inputs or {})}, "inputs")
    named = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    path = f"{_path(workflow_id, trigger_id)}/run"
    return ApiRequest("POST", path, _as(HookAccepted), headers={**JSON, **named}, body=body)


def list_trigger_history(
    workflow_id: str, trigger_id: str, *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[TriggerFire]]:
    """What it has fired, newest first."""
    params = _query(ListTriggerFires, limit=limit, cursor=cursor)
    path = f"{_path(workflow_id, trigger_id)}/history"
    return ApiRequest("GET", path, _as(TriggerFirePage), params)


def iterate_trigger_history(
    workflow_id: str, trigger_id: str, *, limit: int | None = None, page_size: int = 200
) -> Pages[TriggerFire]:
    return Pages(
        lambda cursor: list_trigger_history(
            workflow_id, trigger_id, limit=page_size, cursor=cursor
        ),
        limit,
    )


def _path(workflow_id: str, trigger_id: str) -> str:
    return f"/api/v1/workflows/{_part(workflow_id)}/triggers/{_part(trigger_id)}"
