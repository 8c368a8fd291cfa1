"""The bodies of the HTTP worker contract: what is read, what is refused, what is left out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.contract.pools import HttpPool, HttpPoolSettings
from astraflow.core.contract.tasks import (
    CallbackRefused,
    CompletionAccepted,
    EnvelopePackage,
    HeartbeatAccepted,
    TaskCompleted,
    TaskEnvelope,
    TaskHeartbeat,
    TaskStarted,
    is_absent,
)
from tests.tables import each_row

NOW = "2026-01-15T10:00:00.000Z"


@each_row("kind", [TaskStarted, TaskHeartbeat, TaskCompleted, HttpPool, HttpPoolSettings])
def test_the_example_of_a_body_is_read(kind: Any) -> None:
    read = msgspec.json.decode(msgspec.json.encode(kind.EXAMPLE), type=kind)
    again = msgspec.json.decode(msgspec.json.encode(read), type=kind)
    assert again == read


def test_unknown_members_are_ignored_in_callbacks_and_refused_in_settings() -> None:
    raw = {"attempt": 1, "workerId": "w", "mood": "good"}
    assert msgspec.convert(raw, TaskStarted).worker_id == "w"
    with pytest.raises(msgspec.ValidationError, match="mood"):
        msgspec.convert({**HttpPoolSettings.EXAMPLE, "mood": "good"}, HttpPoolSettings)


def test_result_is_read_as_output() -> None:
    def returned(text: str) -> bytes:
        body = f'{{"attempt":1,"workerId":"w","outcome":"SUCCEEDED"{text}}}'
        return bytes(msgspec.json.decode(body, type=TaskCompleted).returned)

    assert returned(',"output":{"a":1},"result":{"a":2}') == b'{"a":1}'
    assert returned(',"result":{"a":2}') == b'{"a":2}'
    assert returned(',"output":null,"result":{"a":2}') == b'{"a":2}'
    assert is_absent(msgspec.Raw(returned("")))


def test_what_is_not_there_is_not_sent() -> None:
    beat = HeartbeatAccepted(acknowledged=True, server_time=NOW, should_cancel=False)
    assert msgspec.to_builtins(beat) == {
        "acknowledged": True,
        "serverTime": NOW,
        "shouldCancel": False,
    }
    done = CompletionAccepted(acknowledged=True, server_time=NOW, final_state="FAILED")
    assert msgspec.to_builtins(done)["finalState"] == "FAILED"
    refused = CallbackRefused(error="attempt_mismatch", message="m", expected_attempt=2)
    assert msgspec.to_builtins(refused) == {
        "error": "attempt_mismatch",
        "message": "m",
        "expectedAttempt": 2,
    }


def test_an_envelope_has_the_names_of_the_contract() -> None:
    envelope = TaskEnvelope(
        task_id="t",
        run_id="r",
        asset_id="n",
        task_key="w/n",
        tenant_id="acme",
        workspace_id="default",
        attempt=1,
        attempt_id="t.1",
        dispatch_id="r-t-1",
        failures=0,
        node_type="core.noop",
        package=EnvelopePackage(name="core", version="1"),
        parameters=msgspec.Raw(b"{}"),
        resources={},
        enqueued_at=NOW,
        deadline=None,
        callback_base_url="https://astra.example",
        task_token="token",
        token_expires_at=NOW,
        heartbeat_interval_ms=1,
        heartbeat_timeout_ms=2,
        cancel_grace_period_ms=3,
    )
    sent = msgspec.json.decode(msgspec.json.encode(envelope))
    assert set(sent) == {
        *("taskId", "runId", "assetId", "taskKey", "tenantId", "workspaceId", "attempt"),
        *("resources", "enqueuedAt", "deadline", "callbackBaseUrl", "taskToken"),
        *("tokenExpiresAt", "heartbeatIntervalMs", "heartbeatTimeoutMs", "cancelGracePeriodMs"),
        *("nodeType", "package", "parameters", "failures", "attemptId", "dispatchId"),
    }
