"""The calls of the API as values: what to send, and how to read what comes. Both clients perform the same ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

from astraflow.client.models import (
    Accepted,
    LogLine,
    Me,
    NodeDetail,
    Page,
    Run,
    RunSummary,
    Worker,
    Workflow,
    WorkflowSummary,
)
from astraflow.core import errors

__all__ = ["JSON", "Call", "Definition", "Reply", "as_kind", "as_nothing", "given", "part"]

Answer = TypeVar("Answer")
Definition = Mapping[str, Any] | bytes
"""A workflow definition: an object, or its JSON as it is."""

MAX_KEY_CHARS: Final = 255
JSON: Final = {"content-type": "application/json"}
_AS_JSON: Final = (
    "use null or a text for NaN and the infinities; objects, lists, texts and numbers for all else"
)


class Reply(msgspec.Struct, frozen=True):
    """A good answer."""

    body: bytes
    headers: Mapping[str, str]


class Call(msgspec.Struct, Generic[Answer], frozen=True):
    """One request. `again`: it may be sent twice without harm, when nobody knows whether it arrived."""

    method: str
    path: str
    read: Callable[[Reply], Answer]
    params: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | Path | None = None
    """What is sent, or the file that is."""
    again: bool = True

    def raw(self) -> Call[msgspec.Raw]:
        """The same, answered with the JSON as it came."""
        return Call(
            self.method, self.path, _as_it_came, self.params, self.headers, self.body, self.again
        )


def _as_it_came(reply: Reply) -> msgspec.Raw:
    msgspec.json.decode(reply.body)  # what is not JSON is not from a scheduler
    return msgspec.Raw(reply.body)


def as_kind(kind: Any) -> Callable[[Reply], Any]:
    decoder = msgspec.json.Decoder(kind)
    return lambda reply: decoder.decode(reply.body)


_accepted: Final = as_kind(Accepted)
_run: Final = as_kind(Run)
_runs: Final = as_kind(Page[RunSummary])
_node: Final = as_kind(NodeDetail)
_logs: Final = as_kind(Page[LogLine])
_object: Final = as_kind(dict[str, Any])
_workflows: Final = as_kind(Page[WorkflowSummary])
_workers: Final = as_kind(Page[Worker])
_worker: Final = as_kind(Worker)
_me: Final = as_kind(Me)


def as_nothing(reply: Reply) -> None:
    return None


def _workflow(reply: Reply) -> Workflow:
    version = reply.headers.get("etag", '"0"').strip('W/"')
    return Workflow(version=int(version), definition=msgspec.json.decode(reply.body))


def part(text: str) -> str:
    return quote(text, safe="")


def given(**params: object) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}


def _raw(definition: Definition) -> bytes:
    return definition if isinstance(definition, bytes) else _encode(definition, "definition")


def _encode(value: object, what: str) -> bytes:
    """JSON of it. msgspec would write NaN and the infinities as null, and nobody would notice.

    Raises:
        Refused: it holds something that JSON has no form for.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=msgspec.to_builtins)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the {what} holds what JSON cannot hold: {error}"
        raise errors.Refused(errors.INPUT_UNREADABLE, message, detail={"hint": _AS_JSON}) from error


def submit(
    workflow: Definition | str,
    inputs: Mapping[str, Any] | None,
    key: str,
    version: int | None = None,
) -> Call[Accepted]:
    """Raises: Refused, when the key cannot be one."""
    if (
        not 1 <= len(key) <= MAX_KEY_CHARS
        or not key.isascii()
        or not key.isprintable()
        or " " in key
    ):
        raise errors.Refused(
            errors.REQUEST_INVALID,
            f"an idempotency key has 1 to {MAX_KEY_CHARS} visible ASCII characters: {key!r}",
        )
    request: dict[str, Any] = {"inputs": msgspec.Raw(_encode(inputs or {}, "inputs"))}
    if isinstance(workflow, str):
        request["workflowId"] = workflow
        if version is not None:
            request["version"] = version
    else:
        request["workflow"] = msgspec.Raw(_raw(workflow))
    return Call(
        "POST",
        "/api/v1/runs",
        _accepted,
        headers={**JSON, "idempotency-key": key},
        body=msgspec.json.encode(request),
    )


def get_run(run_id: str, nodes: bool = True) -> Call[Run]:
    params = {} if nodes else {"nodes": "false"}
    return Call("GET", f"/api/v1/runs/{part(run_id)}", _run, params)


def list_runs(
    limit: int | None, cursor: str | None, status: str | None, workflow_id: str | None
) -> Call[Page[RunSummary]]:
    params = given(limit=limit, cursor=cursor, status=status, workflowId=workflow_id)
    return Call("GET", "/api/v1/runs", _runs, params)


def get_node(run_id: str, node_id: str) -> Call[NodeDetail]:
    return Call("GET", f"/api/v1/runs/{part(run_id)}/nodes/{part(node_id)}", _node)


def get_definition(run_id: str) -> Call[dict[str, Any]]:
    return Call("GET", f"/api/v1/runs/{part(run_id)}/definition", _object)


def cancel_run(run_id: str) -> Call[Run]:
    return Call("POST", f"/api/v1/runs/{part(run_id)}/cancel", _run)


def rebind_run(run_id: str, running: Literal["keep", "restart"]) -> Call[dict[str, Any]]:
    body = msgspec.json.encode({"running": running})
    path = f"/api/v1/runs/{part(run_id)}/rebind"
    return Call("POST", path, _object, headers=JSON, body=body, again=running == "keep")


def list_logs(
    run_id: str, node_id: str | None, limit: int | None, cursor: str | None
) -> Call[Page[LogLine]]:
    params = given(nodeId=node_id, limit=limit, cursor=cursor)
    return Call("GET", f"/api/v1/runs/{part(run_id)}/logs", _logs, params)


def list_workflows(limit: int | None, cursor: str | None) -> Call[Page[WorkflowSummary]]:
    return Call("GET", "/api/v1/workflows", _workflows, given(limit=limit, cursor=cursor))


def get_workflow(workflow_id: str, version: int | None) -> Call[Workflow]:
    params = given(version=version)
    return Call("GET", f"/api/v1/workflows/{part(workflow_id)}", _workflow, params)


def create_workflow(definition: Definition, is_draft: bool) -> Call[Workflow]:
    params = given(draft="true" if is_draft else None)
    body = _raw(definition)
    path = "/api/v1/workflows"
    return Call("POST", path, _workflow, params, headers=JSON, body=body, again=False)


def save_workflow(
    workflow_id: str, definition: Definition, if_version: int | None, is_draft: bool
) -> Call[Workflow]:
    headers = {**JSON, **_if_match(if_version)}
    params = given(draft="true" if is_draft else None)
    path = f"/api/v1/workflows/{part(workflow_id)}"
    return Call("PUT", path, _workflow, params, headers=headers, body=_raw(definition), again=False)


def delete_workflow(workflow_id: str, if_version: int | None) -> Call[None]:
    path = f"/api/v1/workflows/{part(workflow_id)}"
    return Call("DELETE", path, as_nothing, headers=_if_match(if_version), again=False)


def validate_workflow(definition: Definition) -> Call[dict[str, Any]]:
    path = "/api/v1/workflows/validate"
    return Call("POST", path, _object, headers=JSON, body=_raw(definition))


def list_workers(limit: int | None, cursor: str | None) -> Call[Page[Worker]]:
    return Call("GET", "/api/v1/workers", _workers, given(limit=limit, cursor=cursor))


def get_worker(worker_id: str) -> Call[Worker]:
    return Call("GET", f"/api/v1/workers/{part(worker_id)}", _worker)


def command_worker(worker_id: str, command: Mapping[str, Any]) -> Call[dict[str, Any]]:
    path = f"/api/v1/workers/{part(worker_id)}/commands"
    body = _encode(command, "command")
    return Call("POST", path, _object, headers=JSON, body=body, again=False)


def get_me() -> Call[Me]:
    return Call("GET", "/api/v1/me", _me)


def get_readiness() -> Call[dict[str, Any]]:
    return Call("GET", "/readyz", _object)


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}
