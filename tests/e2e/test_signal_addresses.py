"""Addresses of signals on real processes: known early, without a token, over kills, signed, dead with their wait."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.system import System, running

FLOW = "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f21"
ADDRESS = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a21"
GATE = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a22"
WAIT = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a23"
KEY = "the key of the signal"
BODY = b'{"sum": 5}'


def definition(**signal: Any) -> dict[str, Any]:
    """The address is in the result of the first node; a gate lets the wait begin."""
    ends = [(ADDRESS, GATE), (GATE, WAIT)]
    return {
        "id": FLOW,
        "nodes": [
            {"id": ADDRESS, "type": "core.echo", "parameters": {"value": "=run.signals.paid"}},
            {"id": GATE, "type": "core.signal", "signal": {"name": "gate"}},
            {"id": WAIT, "type": "core.signal", "signal": {"name": "paid", "webhook": True, **signal}},
        ],
        "edges": [{"source": {"node": a}, "target": {"node": b}} for a, b in ends],
        "outputs": {"paid": {"source": {"node": WAIT, "port": "payload"}}},
    }  # fmt: skip


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    environ = {"ASTRA_SCHEDULER_SECRETS_KEY": "c2VjcmV0cyBvZiB0aGUgdGVzdHMgb2YgdHJpZ2dlcnM="}
    with running(tmp_path, 1, environ=environ) as one:
        yield one


def start(system: System, **signal: Any) -> tuple[str, str]:
    """A run that waits at its gate, and the path of its address as an expression gave it."""
    run_id = system.rest.post("runs", {"workflow": definition(**signal)})["runId"]

    def look() -> Any:
        return system.rest.get(f"runs/{run_id}/nodes/{ADDRESS}")["result"]

    url = system.until(look, "the address")["value"]
    path = url.partition("/api/")[2]
    (shown,) = system.rest.get(f"runs/{run_id}/signals")["items"]
    assert shown == {"name": "paid", "url": url, "open": True}
    return run_id, f"/api/{path}"


def send(system: System, path: str, body: bytes = BODY, **headers: Any) -> httpx.Response:
    sent = {"Content-Type": "application/json", **headers}
    return httpx.post(f"{system.url}{path}", content=body, headers=sent, timeout=60)


def pass_gate(system: System, run_id: str) -> None:
    system.rest.post(f"runs/{run_id}/signals/gate", {}, wanted=202)


def test_what_comes_early_is_kept_over_a_kill_and_counts_once(system: System) -> None:
    run_id, path = start(system)
    for _ in range(2):
        answer = send(system, path, BODY, **{"Idempotency-Key": "one"})
        assert answer.status_code == 202, answer.text
        system.restart()
    system.until_ready()
    pass_gate(system, run_id)
    assert system.rest.finished(run_id)["outputs"] == {"paid": {"sum": 5}}
    assert send(system, path).json()["code"] == "E.SIGNAL.NO_ADDRESS"
    assert system.rest.get(f"runs/{run_id}/signals")["items"] == []


def is_back(system: System) -> bool:
    return [one["status"] for one in system.rest.get("workers")["items"]] == ["online"]


def test_a_wait_that_began_before_a_kill_is_ended_at_its_address(system: System) -> None:
    run_id, path = start(system)
    pass_gate(system, run_id)

    def waits() -> bool:
        node = system.rest.get(f"runs/{run_id}/nodes/{WAIT}")
        return bool(node["waitingFor"]) and node["waitingFor"]["kind"] == "signal"

    system.until(waits, "a run that waits for the signal")
    system.restart()
    system.until_ready()
    system.until(lambda: is_back(system), "the worker, which may have a report to give again")
    assert send(system, path, b"plain text", **{"Content-Type": "text/plain"}).status_code == 202
    assert system.rest.finished(run_id)["outputs"] == {"paid": "plain text"}


def test_nobody_can_make_an_address_from_another(system: System) -> None:
    run_id, path = start(system)
    for wrong in (
        path[:-1] + ("a" if path[-1] != "a" else "b"),
        path.replace("/paid/", "/gate/"),
        path.replace(run_id, "01JH0000000000000000000000"),
        path.rpartition("/")[0] + "/%00",
    ):
        answer = send(system, wrong)
        assert answer.status_code in (400, 404), (wrong, answer.text)
    assert send(system, path, b"{").status_code == 400
    assert send(system, path, b"x" * (256 * 1024 + 1)).status_code == 413
    assert httpx.get(f"{system.url}{path}", timeout=60).status_code == 405
    system.rest.post(f"runs/{run_id}/cancel", wanted=200)


def test_a_signed_address_takes_what_is_signed(system: System) -> None:
    answer = system.rest.http.put("/api/v1/secrets/signal.key", json={"value": KEY})
    assert answer.status_code == 200, answer.text
    run_id, path = start(system, secretRef="signal.key")
    refused = send(system, path)
    assert (refused.status_code, refused.json()["code"]) == (401, "E.TRIGGER.SIGNATURE")
    body = b'{"sum": 7}'
    signed = "sha256=" + hmac.new(KEY.encode(), body, hashlib.sha256).hexdigest()
    assert send(system, path, body, **{"X-Hub-Signature-256": signed}).status_code == 202
    pass_gate(system, run_id)
    assert system.rest.finished(run_id)["outputs"] == {"paid": {"sum": 7}}
