"""The node types of package `core` as functions. Made by scripts/make_builder.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from astraflow.builder.flow import Flow
from astraflow.builder.formulas import Formula
from astraflow.builder.nodes import FlowNode
from astraflow.builder.values import Given


def noop(
    flow: Flow,
    label: str,
    **parameters: Any,
) -> FlowNode:
    """Do nothing. Its ports: `trigger` → `done`."""
    return flow.node("core.noop", label, parameters)


def echo(
    flow: Flow,
    label: str,
    *,
    value: Any = UNSET,
) -> FlowNode:
    """Echo. Its ports: `trigger`, `value` → `value`, `done`."""
    return flow.node("core.echo", label, {"value": value})


def sleep(
    flow: Flow,
    label: str,
    *,
    seconds: float | Given | UnsetType = UNSET,
) -> FlowNode:
    """Sleep. Its ports: `trigger` → `done`."""
    return flow.node("core.sleep", label, {"seconds": seconds})


def fail(
    flow: Flow,
    label: str,
    *,
    message: str | Given | UnsetType = UNSET,
    category: Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT"]
    | Given
    | UnsetType = UNSET,
    retryable: bool | Given | UnsetType = UNSET,
    times: int | Given | UnsetType = UNSET,
) -> FlowNode:
    """Fail. Its ports: `trigger` → `done`."""
    return flow.node(
        "core.fail",
        label,
        {"message": message, "category": category, "retryable": retryable, "times": times},
    )


def log(
    flow: Flow,
    label: str,
    *,
    message: Any = UNSET,
    level: Literal["debug", "info", "warning", "error"] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Log. Its ports: `trigger`, `message` → `done`."""
    return flow.node("core.log", label, {"message": message, "level": level})


def stream(
    flow: Flow,
    label: str,
    *,
    text: str | Given | UnsetType = UNSET,
    delay_ms: float | Given | UnsetType = UNSET,
) -> FlowNode:
    """Stream. Its ports: `trigger`, `text` → `text`, `done`."""
    return flow.node("core.stream", label, {"text": text, "delayMs": delay_ms})


def template(
    flow: Flow,
    label: str,
    *,
    template: str | Given | UnsetType = UNSET,
    values: Mapping[str, Any] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Template. Its ports: `trigger`, `values` → `text`, `done`."""
    return flow.node("core.template", label, {"template": template, "values": values})


def python(
    flow: Flow,
    label: str,
    *,
    code: str | Given | UnsetType = UNSET,
    inputs: Mapping[str, Any] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Python. Its ports: `trigger`, `inputs` → `result`, `done`."""
    return flow.node("core.python", label, {"code": code, "inputs": inputs})


def http(
    flow: Flow,
    label: str,
    *,
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] | Given | UnsetType = UNSET,
    url: str | Given | UnsetType = UNSET,
    headers: Mapping[str, Any] | Given | UnsetType = UNSET,
    body: Any = UNSET,
    timeout_seconds: float | Given | UnsetType = UNSET,
) -> FlowNode:
    """HTTP request. Its ports: `trigger`, `url`, `body` → `body`, `done`."""
    return flow.node(
        "core.http",
        label,
        {
            "method": method,
            "url": url,
            "headers": headers,
            "body": body,
            "timeoutSeconds": timeout_seconds,
        },
    )


def file(
    flow: Flow,
    label: str,
    *,
    name: str | Given | UnsetType = UNSET,
    size_bytes: int | Given | UnsetType = UNSET,
    text: str | Given | UnsetType = UNSET,
    durable: bool | Given | UnsetType = UNSET,
) -> FlowNode:
    """File. Its ports: `trigger` → `file`, `done`."""
    return flow.node(
        "core.file",
        label,
        {"name": name, "sizeBytes": size_bytes, "text": text, "durable": durable},
    )


def read_file(
    flow: Flow,
    label: str,
    *,
    file: Mapping[str, Any] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Read file. Its ports: `trigger`, `file` → `sha256`, `done`."""
    return flow.node("core.read_file", label, {"file": file})


def retry(
    flow: Flow,
    label: str,
    *,
    attempts: int | Given | UnsetType = UNSET,
    backoff_seconds: float | Given | UnsetType = UNSET,
    factor: float | Given | UnsetType = UNSET,
    max_backoff_seconds: float | Given | UnsetType = UNSET,
    categories: Sequence[Any] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Retry: a middleware, for `middlewares` of another node."""
    return flow.node(
        "core.retry",
        label,
        {
            "attempts": attempts,
            "backoffSeconds": backoff_seconds,
            "factor": factor,
            "maxBackoffSeconds": max_backoff_seconds,
            "categories": categories,
        },
    )


def cache(
    flow: Flow,
    label: str,
    *,
    ttl_seconds: float | Given | UnsetType = UNSET,
    key: Any = UNSET,
    max_bytes: int | Given | UnsetType = UNSET,
) -> FlowNode:
    """Cache: a middleware, for `middlewares` of another node."""
    return flow.node(
        "core.cache", label, {"ttlSeconds": ttl_seconds, "key": key, "maxBytes": max_bytes}
    )


def rate_limit(
    flow: Flow,
    label: str,
    *,
    count: int | Given | UnsetType = UNSET,
    per_seconds: float | Given | UnsetType = UNSET,
    key: str | Given | UnsetType = UNSET,
    max_wait_seconds: float | Given | UnsetType = UNSET,
) -> FlowNode:
    """Rate limit: a middleware, for `middlewares` of another node."""
    return flow.node(
        "core.rate_limit",
        label,
        {"count": count, "perSeconds": per_seconds, "key": key, "maxWaitSeconds": max_wait_seconds},
    )


def timeout(
    flow: Flow,
    label: str,
    *,
    seconds: float | Given | UnsetType = UNSET,
) -> FlowNode:
    """Timeout: a middleware, for `middlewares` of another node."""
    return flow.node("core.timeout", label, {"seconds": seconds})


def loop(
    flow: Flow,
    label: str,
    *,
    times: int | Given | UnsetType = UNSET,
    over: Sequence[Any] | Given | UnsetType = UNSET,
    item: str | Given | UnsetType = UNSET,
    until: Mapping[str, Any] | Given | UnsetType = UNSET,
    feed: Mapping[str, Any] | Given | UnsetType = UNSET,
    collect: bool | Given | UnsetType = UNSET,
    max_rounds: int | Given | UnsetType = UNSET,
) -> FlowNode:
    """Loop: a middleware, for `middlewares` of another node."""
    return flow.node(
        "core.loop",
        label,
        {
            "times": times,
            "over": over,
            "item": item,
            "until": until,
            "feed": feed,
            "collect": collect,
            "maxRounds": max_rounds,
        },
    )


def log_calls(
    flow: Flow,
    label: str,
    *,
    level: Literal["debug", "info", "warning", "error"] | Given | UnsetType = UNSET,
    input: bool | Given | UnsetType = UNSET,
    result: bool | Given | UnsetType = UNSET,
) -> FlowNode:
    """Log calls: a middleware, for `middlewares` of another node."""
    return flow.node("core.log_calls", label, {"level": level, "input": input, "result": result})


def if_(
    flow: Flow,
    label: str,
    *,
    condition: Any = UNSET,
    value: Any = UNSET,
) -> FlowNode:
    """If. Its ports: `trigger`, `condition`, `value` → `value`, `done`, `true`, `false`."""
    return flow.node("core.if", label, {"condition": condition, "value": value})


def switch(
    flow: Flow,
    label: str,
    *,
    value: Any = UNSET,
    cases: Sequence[Any] | Given | UnsetType = UNSET,
    default: str | Given | UnsetType = UNSET,
) -> FlowNode:
    """Switch. Its ports: `trigger`, `value` → `value`, `done`."""
    return flow.node("core.switch", label, {"value": value, "cases": cases, "default": default})


def container(
    flow: Flow,
    label: str,
    *,
    input: Any = UNSET,
) -> FlowNode:
    """Container. Its ports: `trigger`, `input` → `output`, `done`."""
    return flow.node("core.container", label, {"input": input})


def call(
    flow: Flow,
    label: str,
    *,
    workflow_id: str | Formula | UnsetType = UNSET,
    version: int | UnsetType = UNSET,
    failure_policy: Literal["stop", "finish"] | UnsetType = UNSET,
    inputs: Mapping[str, Any] | Given | UnsetType = UNSET,
) -> FlowNode:
    """Call a workflow. Its ports: `trigger`, `inputs` → `outputs`, `done`."""
    node = flow.node("core.call", label, {"inputs": inputs})
    return node.set(
        call={"workflowId": workflow_id, "version": version, "failurePolicy": failure_policy}
    )


def wait(
    flow: Flow,
    label: str,
    *,
    seconds: float | UnsetType = UNSET,
    until: str | Formula | UnsetType = UNSET,
) -> FlowNode:
    """Wait. Its ports: `trigger` → `until`, `done`."""
    node = flow.node("core.wait", label, {})
    return node.set(wait={"seconds": seconds, "until": until})


def approval(
    flow: Flow,
    label: str,
    *,
    message: str | Formula | UnsetType = UNSET,
    roles: Sequence[str] | UnsetType = UNSET,
    form: Mapping[str, Any] | UnsetType = UNSET,
    timeout_seconds: float | UnsetType = UNSET,
    default: Literal["approve", "reject"] | UnsetType = UNSET,
) -> FlowNode:
    """Approval. Its ports: `trigger` → `approved`, `comment`, `by`, `values`, `done`."""
    node = flow.node("core.approval", label, {})
    return node.set(
        approval={
            "message": message,
            "roles": roles,
            "form": form,
            "timeoutSeconds": timeout_seconds,
            "default": default,
        }
    )


def signal(
    flow: Flow,
    label: str,
    *,
    name: str | Formula | UnsetType = UNSET,
    timeout_seconds: float | UnsetType = UNSET,
    webhook: Mapping[str, Any] | UnsetType = UNSET,
    secret_ref: str | Formula | UnsetType = UNSET,
) -> FlowNode:
    """Signal. Its ports: `trigger` → `payload`, `done`."""
    node = flow.node("core.signal", label, {})
    return node.set(
        signal={
            "name": name,
            "timeoutSeconds": timeout_seconds,
            "webhook": webhook,
            "secretRef": secret_ref,
        }
    )
