"""Triggers on real processes: times, a scheduler that is killed around them, webhooks, other workflows, commands."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.command_line import Done, astra
from tests.processes.rest import TOKEN
from tests.processes.system import System, running

FLOW = "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f01"
OTHER = "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f02"
NODE = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a01"
EACH_SECOND = {"type": "cron", "id": "tick", "expression": "* * * * * *"}
KEY = "the key of the hook"


def definition(*triggers: dict[str, Any], id: str = FLOW, **more: Any) -> dict[str, Any]:
    node = {"id": NODE, "type": "core.echo", "parameters": {"value": "=inputs.city"}}
    inputs = {"city": {"schema": {"type": "string"}, "default": "Bern"}}
    return {
        "id": id,
        "nodes": [node],
        "inputs": inputs,
        "outputs": {"city": {"source": {"node": NODE, "port": "value"}}},
        "triggers": list(triggers),
        **more,
    }


def save(system: System, flow: dict[str, Any], *, is_new: bool = True) -> None:
    rest = system.rest
    if is_new:
        rest.post("workflows", flow, wanted=201)
    else:
        answer = rest.http.put(f"/api/v1/workflows/{flow['id']}", json=flow)
        assert answer.status_code == 200, answer.text


def history(system: System, name: str, flow: str = FLOW) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = system.rest.get(
        f"workflows/{flow}/triggers/{name}/history", limit=200
    )["items"]
    return found


def started(system: System, name: str, flow: str = FLOW) -> list[dict[str, Any]]:
    return [one for one in history(system, name, flow) if one["outcome"] == "started"]


def until_started(system: System, count: int) -> None:
    system.until(lambda: len(started(system, "tick")) >= count, f"{count} runs of the schedule")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    environ = {"ASTRA_SCHEDULER_SECRETS_KEY": "c2VjcmV0cyBvZiB0aGUgdGVzdHMgb2YgdHJpZ2dlcnM="}
    with running(tmp_path_factory.mktemp("triggers"), 1, environ=environ) as one:
        yield one


@pytest.fixture(autouse=True)
def _clean(system: System) -> Iterator[None]:
    yield
    for flow in (FLOW, OTHER):
        system.rest.http.delete(f"/api/v1/workflows/{flow}")


def test_a_killed_scheduler_fires_no_time_twice_and_forgets_none(tmp_path: Path) -> None:
    """No worker: runs stay queued. The catch-up of all times makes up for each second that it was away."""
    with running(tmp_path) as system:
        save(system, definition({**EACH_SECOND, "catchUp": "all", "maxCatchUp": 1000}))
        for round_ in range(4):
            wanted = len(started(system, "tick")) + 2 + round_ % 2
            until_started(system, wanted)
            system.restart()
        until_started(system, 12)
        system.rest.post(f"workflows/{FLOW}/triggers/tick/disable", wanted=200)
        entries = system.until(
            lambda: [
                one
                for one in [history(system, "tick")]
                if all(e["outcome"] != "pending" for e in one)
            ],
            "all that was owed is started",
        )[0]
        runs = [one["runId"] for one in system.rest.get("runs", limit=200)["items"]]
        assert sorted(runs) == sorted(one["runId"] for one in entries), "a run for each entry"
        slots = sorted(int(_seconds(one["scheduledAt"])) for one in entries)
        assert max(Counter(slots).values()) == 1, "no time twice"
        assert slots == list(range(slots[0], slots[-1] + 1)), "each second once"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_schedule_starts_runs_until_it_is_disabled_and_shows_what_comes(system: System) -> None:
    save(system, definition({**EACH_SECOND, "values": {"city": "Genf"}}))
    first = system.until(lambda: started(system, "tick"), "a run of the schedule")[-1]
    run = system.rest.finished(first["runId"])
    assert run["status"] == "succeeded" and run["outputs"] == {"city": "Genf"}
    shown = system.rest.get(f"workflows/{FLOW}/triggers/tick")
    assert shown["enabled"] and len(shown["nextTimes"]) == 5 and shown["type"] == "cron"
    assert system.rest.get("triggers", workflowId=FLOW)["items"][0]["id"] == "tick"
    off = system.rest.post(f"workflows/{FLOW}/triggers/tick/disable", wanted=200)
    assert not off["enabled"] and off["nextTimes"] == []
    count = len(history(system, "tick"))
    again = system.rest.post(f"workflows/{FLOW}/triggers/tick/run", {"inputs": {"city": "Chur"}})
    assert system.rest.finished(again["runId"])["outputs"] == {"city": "Chur"}
    newest = history(system, "tick")[0]
    assert (newest["cause"], newest["runId"]) == ("manual", again["runId"])
    assert len(history(system, "tick")) == count + 1, "nothing of the schedule since"
    save(system, definition({**EACH_SECOND, "jitterSeconds": 1}), is_new=False)
    assert not system.rest.get(f"workflows/{FLOW}/triggers/tick")["enabled"]
    assert len(history(system, "tick")) == count + 1, "the history stays with the id"


def test_a_run_that_is_refused_is_in_the_history(system: System) -> None:
    save(system, definition({**EACH_SECOND, "values": {"city": 5}, "overlap": "skip"}))
    entry = system.until(
        lambda: [e for e in history(system, "tick") if e["outcome"] == "refused"], "it"
    )[0]
    assert entry["code"] == "E.WORKFLOW.INPUT" and "city" in json.dumps(entry)
    answer = system.rest.http.post(
        f"/api/v1/workflows/{FLOW}/triggers/tick/run", json={"inputs": {"town": "x"}}
    )
    assert answer.status_code == 422, answer.text


def test_a_signed_delivery_starts_one_run(system: System) -> None:
    answer = system.rest.http.put("/api/v1/secrets/hook.key", json={"value": KEY})
    assert answer.status_code == 200, answer.text
    hook = {"type": "webhook", "secretRef": "hook.key", "inputs": {"city": "/body/place/0"}}
    save(system, definition(hook))
    path = system.rest.get(f"workflows/{FLOW}/triggers/webhook-1")["hookPath"]
    body = b'{"place": ["Thun"]}'
    signed = "sha256=" + hmac.new(KEY.encode(), body, hashlib.sha256).hexdigest()

    def deliver(headers: dict[str, Any], content: bytes = body) -> Any:
        sent = {"Content-Type": "application/json", **headers}
        return httpx.post(f"{system.url}{path}", content=content, headers=sent, timeout=60)

    good = {"X-Hub-Signature-256": signed, "X-GitHub-Delivery": "d-1"}
    first = deliver(good)
    assert first.status_code == 202, first.text
    assert deliver(good).json() == first.json(), "a delivery counts once"
    other = deliver({"X-Signature": signed.removeprefix("sha256="), "Idempotency-Key": "d-2"})
    assert other.json() != first.json()
    assert system.rest.finished(first.json()["runId"])["outputs"] == {"city": "Thun"}
    for bad in (
        {},
        {"X-Signature": "0" * 64},
        {"X-Signature": b"\xe9"},
        {"X-Signature": signed[:-1]},
    ):
        refused = deliver(bad)
        assert refused.status_code == 401, refused.text
        assert refused.json()["code"] == "E.TRIGGER.SIGNATURE"
    assert deliver(good, body + b" ").status_code == 401, "another body"
    assert deliver(good, b"x" * (1024 * 1024 + 1)).status_code == 413
    system.rest.post(f"workflows/{FLOW}/triggers/webhook-1/disable", wanted=200)
    assert deliver(good).status_code == 409
    assert len(started(system, "webhook-1")) == 2


def test_an_address_without_a_secret_is_the_secret_and_goes_with_the_workflow(
    system: System,
) -> None:
    save(system, definition({"type": "webhook", "inputs": {"city": "query.city"}}))
    path = system.rest.get(f"workflows/{FLOW}/triggers/webhook-1")["hookPath"]
    http = system.rest.http
    accepted = http.post(f"{path}?city=Olten&x=1", headers={"Authorization": ""})
    assert accepted.status_code == 202, accepted.text
    assert system.rest.finished(accepted.json()["runId"])["outputs"] == {"city": "Olten"}
    bad = http.post(path, content=b"{", headers={"Content-Type": "application/json"})
    assert bad.status_code == 400
    save(system, definition({"type": "webhook"}), is_new=False)
    assert system.rest.get(f"workflows/{FLOW}/triggers/webhook-1")["hookPath"] == path
    assert http.post(path[:-1] + ("a" if path[-1] != "a" else "b")).status_code == 404
    assert http.delete(f"/api/v1/workflows/{FLOW}").status_code == 204
    assert http.post(path).status_code == 404
    assert system.rest.get("triggers")["items"] == []


def test_the_end_of_a_run_starts_another_workflow_once(tmp_path: Path) -> None:
    with running(tmp_path, 1) as system:
        save(system, definition(id=OTHER))
        after = {"type": "workflow", "workflowId": OTHER, "inputs": {"city": "outputs.city"}}
        save(system, definition({**after, "id": "then"}))
        wanted = {"workflowId": OTHER, "inputs": {"city": "Sion"}}
        run_id = system.rest.post("runs", wanted)["runId"]
        fired = system.until(lambda: started(system, "then"), "a run of the other workflow")
        assert [one["slot"] for one in fired] == [f"workflow {run_id}"]
        assert system.rest.finished(fired[0]["runId"])["outputs"] == {"city": "Sion"}
        system.restart()
        second = system.rest.post("runs", {"workflowId": OTHER})["runId"]
        system.until(lambda: len(started(system, "then")) == 2, "the run after the next one")
        slots = {one["slot"] for one in started(system, "then")}
        assert slots == {f"workflow {run_id}", f"workflow {second}"}


def test_the_commands_do_what_they_say(system: System, tmp_path: Path) -> None:
    save(system, definition({"type": "cron", "id": "yearly", "expression": "@yearly"}))

    def typed(*arguments: str) -> Done:
        environ = {"ASTRA_SERVER": system.url, "ASTRA_TOKEN": TOKEN}
        done = astra("triggers", *arguments, cwd=tmp_path, **environ)
        assert done.code == 0, done
        return done

    assert "yearly" in typed("list").out
    assert typed("list", "--workflow", OTHER, "--json").json["items"] == []
    assert "01-01T00:00:00" in typed("show", FLOW, "yearly").out
    assert typed("disable", FLOW, "yearly", "--json").json["enabled"] is False
    assert typed("enable", FLOW, "yearly", "--json").json["enabled"] is True
    run_id = typed("run", FLOW, "yearly", "-i", "city=Biel").out.strip()
    assert system.rest.finished(run_id)["outputs"] == {"city": "Biel"}
    assert run_id in typed("history", FLOW, "yearly").out
    assert typed("history", FLOW, "yearly", "--json").json["items"][0]["by"]
    missing = astra("triggers", "show", FLOW, "no", cwd=tmp_path,
                    ASTRA_SERVER=system.url, ASTRA_TOKEN=TOKEN)  # fmt: skip
    assert missing.code == 1 and "no such trigger" in missing.err
