"""A canary secret is found nowhere but in the handler: in no log, event, answer, metric, database or folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running

CANARY = 'canary/7f3a"+9 é\\x'
"""With characters that every encoding spells in another way."""
OTHER = "another-canary-of-the-tenant"

LEAKS = """
def main(key, deep):
    import base64, json, sys, os
    from urllib.parse import quote
    assert key == deep["list"][0] == ctx.secret("canary"), "the handler has it"
    print("printed", key)
    print("to stderr", key, file=sys.stderr)
    os.write(1, ("by descriptor " + key + "\\n").encode())
    ctx.log("warning", "logged " + key)
    ctx.progress(0.5, "at " + key)
    ctx.emit(key[:7], channel="llm")
    ctx.emit(key[7:] + " streamed", channel="llm")
    ctx.emit("x" * 20000 + key, channel="llm")
    print(base64.b64encode(key.encode()).decode(), quote(key), json.dumps(key))
    print(base64.b64encode(b"user:" + key.encode() + b":more").decode())
    if FAIL:
        raise ValueError("raised " + key)
    return {"value": key, "nested": [{key: "as a key"}], "encoded": quote(key, safe="")}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("canary")
    level = {"ASTRA_SCHEDULER_LOG_LEVEL": "debug", "ASTRA_WORKER_LOG_LEVEL": "debug"}
    with running(folder, 1, heartbeat_ms=1000, environ=level) as site:
        put(site, "canary", CANARY)
        put(site, "other", OTHER)
        yield site


def put(site: System, name: str, value: str, **more: Any) -> dict[str, Any]:
    answer = site.rest.http.put(f"/api/v1/secrets/{name}", json={"value": value, **more})
    assert answer.status_code == 200, answer.text
    assert value not in answer.text
    return dict(answer.json())


def leaking(*, fails: bool) -> dict[str, Any]:
    ref = {"secretRef": {"name": "canary"}}
    code = LEAKS.replace("FAIL", str(fails))
    inputs = {"key": ref, "deep": {"list": [ref]}}
    return workflow(node("core.python", "leak", parameters={"code": code, "inputs": inputs}))


def spellings(value: str) -> list[bytes]:
    raw = value.encode()
    texts = [value, quote(value), quote(value, safe=""), json.dumps(value)[1:-1]]
    texts += [json.dumps(value, ensure_ascii=False)[1:-1]]
    for before in range(3):
        text = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        texts.append(text[4:-2])
    return [text.encode() for text in texts]


def everything(site: System, runs: list[str]) -> dict[str, bytes]:
    """All that is left of it, by where it is."""
    found = {str(path): path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}
    found |= {f"output of {one.name}": one.said().encode() for one in site.processes}
    for run in runs:
        for part in ("", "/logs", "/artifacts", "/definition"):
            found[f"run{part}"] = json.dumps(site.rest.get(f"runs/{run}{part}")).encode()
        for one in site.rest.get(f"runs/{run}")["nodes"]:
            detail = site.rest.get(f"runs/{run}/nodes/{one['nodeId']}")
            found[f"node of {run}"] = json.dumps(detail).encode()
        with site.rest.http.stream("GET", "/api/v1/events", params={"runId": run}) as events:
            found[f"events of {run}"] = b"".join(_until_end(events))
    for name in ("workers", "secrets", "audit", "runs", "resources"):
        found[name] = site.rest.http.get(f"/api/v1/{name}").content
    found["metrics"] = site.rest.http.get("/metrics").content
    return found


def _until_end(events: httpx.Response) -> Iterator[bytes]:
    for line in events.iter_lines():
        yield line.encode()
        if "run.status" in line and any(word in line for word in ("succeeded", "failed")):
            return
        if line.startswith("data:") and '"finishedAt":"' in line:
            return


def test_a_canary_is_found_nowhere_but_in_the_handler(site: System) -> None:
    runs = []
    for fails in (False, True):
        run = site.rest.submit(leaking(fails=fails))
        view = site.rest.finished(run)
        assert view["status"] == ("failed" if fails else "succeeded"), view
        runs.append(run)
    shown = json.dumps(site.rest.get(f"runs/{runs[0]}/logs")) + json.dumps(
        [site.rest.get(f"runs/{run}") for run in runs]
    )
    for word in ("printed ***", "logged ***", "*** streamed", "raised ***"):
        assert word in shown, (word, shown)
    site.rest.read_everything()
    leaks = [
        (place, needle)
        for place, content in everything(site, runs).items()
        for value in (CANARY, OTHER)
        for needle in spellings(value)
        if needle in content
    ]
    assert leaks == []


def test_it_stays_hidden_when_the_scheduler_is_killed_in_the_middle(tmp_path: Path) -> None:
    code = (
        "def main(key):\n    import time\n    print('began', key, flush=True)\n    time.sleep(3)\n"
    )
    ref = {"secretRef": {"name": "canary"}}
    slow = workflow(node("core.python", "slow", parameters={"code": code, "inputs": {"key": ref}}))
    with running(tmp_path, 1, heartbeat_ms=1000) as site:
        put(site, "canary", CANARY)
        run = site.rest.submit(slow)
        site.until(lambda: site.rest.run_status(run) == "running", "the handler runs")
        site.restart()
        assert site.rest.finished(run)["status"] == "succeeded"
        leaks = [
            (place, needle)
            for place, content in everything(site, [run]).items()
            for needle in spellings(CANARY)
            if needle in content
        ]
        assert leaks == []


def test_each_set_delete_and_use_is_audited(site: System) -> None:
    run = site.rest.run(leaking(fails=False))["runId"]
    put(site, "brief", "a value for a moment")
    assert site.rest.http.delete("/api/v1/secrets/brief").status_code == 204

    def audited() -> set[tuple[str, str, str]]:
        rows = site.rest.get("audit", limit=200)["items"]
        return {(one["action"], one["who"], one["detail"].get("subject", "")) for one in rows}

    used = ("secret.use", f"run:{run}", "canary")
    site.until(lambda: used in audited(), "the use is audited")
    seen = audited()
    assert {("secret.set", "bootstrap", "brief"), ("secret.delete", "bootstrap", "brief")} <= seen


def test_only_the_attempt_that_refers_to_a_secret_gets_it(site: System) -> None:
    code = (
        "def main(key=None, also=None):\n    return {'names': sorted(ctx.secrets), 'also': also}\n"
    )
    ref = {"secretRef": {"name": "canary"}}
    plain = workflow(node("core.python", "none", parameters={"code": code}))
    view = site.rest.run(plain)
    assert view["nodes"][0]["result"]["names"] == []
    first = node("core.python", "one", parameters={"code": code, "inputs": {"key": ref}})
    view = site.rest.run(workflow(first))
    assert view["nodes"][0]["result"]["names"] == ["canary"]
    path = f"runs/{view['runId']}/nodes/{view['nodes'][0]['nodeId']}"
    assert site.rest.get(path)["parameters"]["inputs"] == {"key": ref}


def test_a_reference_that_comes_with_a_result_is_a_value_like_any_other(site: System) -> None:
    code = "def main():\n    return {'secretRef': {'name': 'other'}}\n"
    giving = node("core.python", "giving", parameters={"code": code})
    taking = node("core.echo", "taking", parameters={"value": {}})
    edge = {
        "source": {"node": giving["id"], "port": "result"},
        "target": {"node": taking["id"], "port": "value"},
    }
    view = site.rest.run(workflow(giving, taking, edges=[edge]))
    assert view["status"] == "succeeded"
    assert view["nodes"][1]["result"] == {"value": {"secretRef": {"name": "other"}}}


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        ({"secretRef": {"name": "nobody"}}, "E.SECRET.NOT_FOUND"),
        ({"secretRef": {"name": "scoped"}}, "E.SECRET.SCOPE"),
        ("=secrets.nobody", "E.SECRET.NOT_FOUND"),
        ("= secrets.scoped ", "E.SECRET.SCOPE"),
        ({"secretRef": {}}, "E.WORKFLOW.INVALID"),
        ({"secretRef": "canary"}, "E.WORKFLOW.INVALID"),
        ({"secretRef": {"name": "canary"}, "more": 1}, "E.WORKFLOW.INVALID"),
        ({"secretRef": {"name": "../x"}}, "E.WORKFLOW.INVALID"),
    ],
)
def test_what_a_node_may_not_have_is_a_problem_with_a_pointer(
    site: System, ref: object, code: str
) -> None:
    put(site, "scoped", "only for llm", packages=["llm"])
    definition = workflow(node("core.echo", "n", parameters={"value": [ref]}))
    submitted = site.rest.http.post("/api/v1/runs", json={"workflow": definition})
    validated = site.rest.http.post("/api/v1/workflows/validate", json=definition)
    for answer in (submitted, validated):
        found = json.dumps(answer.json())
        assert code in found and "/nodes/0/parameters/value/0" in found, found
    assert submitted.status_code in (400, 403, 404, 422)


def test_a_secret_that_was_deleted_meanwhile_fails_the_node(site: System) -> None:
    put(site, "fleeting", "there and gone")
    ref = {"secretRef": {"name": "fleeting"}}
    code = "def main():\n    import time\n    time.sleep(2)\n"
    first = node("core.python", "first", parameters={"code": code})
    second = node("core.echo", "second", parameters={"value": ref})
    edge = {"source": {"node": first["id"]}, "target": {"node": second["id"]}}
    run = site.rest.submit(workflow(first, second, edges=[edge]))
    assert site.rest.http.delete("/api/v1/secrets/fleeting").status_code == 204
    view = site.rest.finished(run)
    assert view["status"] == "failed"
    assert view["nodes"][1]["error"]["code"] == "E.SECRET.NOT_FOUND"
