"""The envelope of a pushed task, checked before anything of it is used."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

MAX_ENVELOPE_BYTES = 8 * 1024 * 1024
PARTS = {"http": 80, "https": 443}


class BadEnvelope(Exception):
    """A push that is not run. `status`: the HTTP status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class PushedTask:
    """One attempt. Its token shows nowhere."""

    task_id: str
    run_id: str
    node_id: str
    tenant: str
    attempt: int
    attempt_id: str
    node_type: str
    parameters: dict[str, Any]
    failures: int
    timeout_s: float | None
    callback_base_url: str
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    traceparent: str | None
    token: str = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)


def read_envelope(raw: bytes, tenants: Collection[str], schedulers: Collection[str]) -> PushedTask:
    """Raises: BadEnvelope, also for one of a foreign tenant or with a foreign callback address."""
    if len(raw) > MAX_ENVELOPE_BYTES:
        raise BadEnvelope(413, "the envelope is too large")
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise BadEnvelope(400, "the body is not JSON") from problem
    if not isinstance(given, dict):
        raise BadEnvelope(400, "the body is not an object")
    timeout_ms = given.get("timeoutMs")
    if timeout_ms is not None and (type(timeout_ms) is not int or timeout_ms < 0):
        raise BadEnvelope(400, "timeoutMs: must be a whole number")
    envelope = PushedTask(
        task_id=_text(given, "taskId"),
        run_id=_text(given, "runId"),
        node_id=_text(given, "assetId"),
        tenant=_text(given, "tenantId"),
        attempt=_number(given, "attempt", 1),
        attempt_id=str(given.get("attemptId") or ""),
        node_type=_text(given, "nodeType"),
        parameters=_object(given, "parameters"),
        failures=_number(given, "failures", 0),
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
        callback_base_url=_text(given, "callbackBaseUrl").rstrip("/"),
        heartbeat_interval_s=_number(given, "heartbeatIntervalMs", 1) / 1000,
        heartbeat_timeout_s=_number(given, "heartbeatTimeoutMs", 1) / 1000,
        traceparent=given.get("traceparent"),
        token=_text(given, "taskToken"),
        secrets=given.get("secrets") or {},
    )
    if envelope.tenant not in tenants:
        raise BadEnvelope(403, "tenantId: this worker does not work for that tenant")
    if origin_of(envelope.callback_base_url) not in {origin_of(one) for one in schedulers}:
        raise BadEnvelope(403, "callbackBaseUrl: this worker reports to other addresses only")
    return envelope


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None if it is no address of a scheduler."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in PARTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port or PARTS[parts.scheme]


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise BadEnvelope(400, f"{name}: must be a text")
    return value


def _number(given: Mapping[str, Any], name: str, least: int) -> int:
    value = given.get(name, 0 if least == 0 else None)
    if type(value) is not int or value < least:
        raise BadEnvelope(400, f"{name}: must be a whole number of at least {least}")
    return value


def _object(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name, {})
    if not isinstance(value, dict):
        raise BadEnvelope(400, f"{name}: must be an object")
    return value
