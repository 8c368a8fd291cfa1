"""Middlewares on real processes: what is shown of a chain, and what `kill -9` does to an open call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.e2e.chains import by_label, host, ran
from tests.processes.system import System, running


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as made:
        yield made


def run(system: System, *nodes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    view = system.rest.run(workflow(*nodes))
    return {**by_label(view), "run": view}


def events_of(system: System, run_id: str) -> list[dict[str, Any]]:
    """The numbered events of a run that has ended."""
    answer = system.rest.http.get("/api/v1/events", params={"runId": run_id})
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_each_node_of_a_chain_has_a_state_of_its_own(system: System, tmp_path: Path) -> None:
    log = node("core.log_calls", "log", parameters={"input": True})
    again = node("core.loop", "again", parameters={"times": 2})
    wrapped = host(tmp_path, log, again, value=7)
    nodes = run(system, wrapped, log, again)
    assert nodes["run"]["status"] == "succeeded"
    assert ran(tmp_path) == ["7", "7"]
    shown = nodes["host"]
    assert (shown["status"], shown["result"], shown["calls"]) == ("succeeded", {"value": 7}, 2)
    assert shown["middlewares"] == [log["id"], again["id"]]
    assert (shown["lastCall"]["status"], shown["lastCall"]["attempt"]) == ("succeeded", 1)
    for place, label in enumerate(("log", "again")):
        one = nodes[label]
        assert (one["status"], one["attempt"], one["failures"]) == ("succeeded", 1, 0)
        assert (one["hostNodeId"], one["chainIndex"]) == (wrapped["id"], place)
        assert one["startedAt"] <= one["finishedAt"]
        assert one["workerId"]
    run_id = nodes["run"]["runId"]
    details = {
        label: system.rest.get(f"runs/{run_id}/nodes/{nodes[label]['nodeId']}")
        for label in ("host", "log", "again")
    }
    assert [len(details[one]["attempts"]) for one in ("host", "log", "again")] == [2, 1, 1]
    assert len({one["callId"] for one in details["host"]["attempts"]}) == 2
    assert "callId" not in details["log"]["attempts"][0]
    assert any("host, call 2: succeeded" in line for line in details["host"]["story"])
    assert any("log: attempt 1 was leased" in line for line in details["log"]["story"])
    logs = system.rest.get(f"runs/{run_id}/logs", nodeId=log["id"])["items"]
    assert logs[0]["text"].startswith("calls core.python with {")
    assert {one["chainIndex"] for one in logs} == {0}
    bodies = [one["data"] for one in events_of(system, run_id) if one["type"] == "node.state"]
    outer = [one for one in bodies if one.get("middlewareNodeId") == log["id"]]
    assert [one["status"] for one in outer][-1] == "succeeded"
    called = [one for one in bodies if one.get("callId") and one["nodeId"] == wrapped["id"]]
    assert [one["status"] for one in called].count("succeeded") == 2
    assert {one["hostNodeId"] for one in called} == {wrapped["id"]}


@pytest.mark.parametrize(
    ("kind", "parameters", "result", "given"),
    [
        ("core.retry", {}, {"value": 1}, ["1"]),
        ("core.rate_limit", {"count": 1, "perSeconds": 0.01}, {"value": 1}, ["1"]),
        ("core.timeout", {"seconds": 60}, {"value": 1}, ["1"]),
        ("core.log_calls", {"result": True}, {"value": 1}, ["1"]),
        ("core.cache", {}, {"value": 1}, ["1"]),
        ("core.loop", {"times": 3}, {"value": 1}, ["1", "1", "1"]),
        ("core.loop", {"times": 0}, {}, []),
        ("core.echo", {"value": "instead"}, {"value": "instead"}, []),
    ],
)
def test_a_middleware_has_its_golden_result(
    system: System,
    tmp_path: Path,
    kind: str,
    parameters: dict[str, Any],
    result: Any,
    given: list[str],
) -> None:
    around = node(kind, "around", parameters=parameters)
    nodes = run(system, host(tmp_path, around, value=1), around)
    assert nodes["run"]["status"] == "succeeded", nodes["run"]["error"]
    assert (nodes["host"]["result"], ran(tmp_path)) == (result, given)
    assert (nodes["around"]["result"], nodes["host"]["calls"]) == (result, len(given))


def test_a_loop_gives_its_host_one_item_after_the_other(system: System) -> None:
    around = node("core.loop", "over", parameters={"over": ["a", "b"], "collect": True})
    wrapped = node("core.echo", "host", parameters={"value": "none"}, middlewares=[around["id"]])
    nodes = run(system, wrapped, around)
    assert nodes["host"]["result"] == {"value": "b", "rounds": [{"value": "a"}, {"value": "b"}]}


def test_each_item_of_a_map_has_a_chain_of_its_own(system: System) -> None:
    log = node("core.log_calls", "log")
    again = node("core.loop", "again", parameters={"times": 2})
    chain = [log["id"], again["id"]]
    given = {"parameters": {"value": "=item"}, "map": {"over": "=[1, 2, 3]"}}
    wrapped = node("core.echo", "host", middlewares=chain, **given)
    nodes = run(system, wrapped, log, again)
    assert nodes["host"]["result"] == {"items": [{"value": 1}, {"value": 2}, {"value": 3}]}
    assert [nodes[one]["items"]["succeeded"] for one in ("log", "again")] == [3, 3]
    run_id = nodes["run"]["runId"]
    path = f"runs/{run_id}/nodes/{wrapped['id']}"
    items = system.rest.get(f"{path}/items")["items"]
    assert [(one["calls"], one["lastCall"]["status"]) for one in items] == [(2, "succeeded")] * 3
    second = system.rest.get(path, scope=f"{wrapped['id']}:1")
    assert (len(second["attempts"]), second["result"]) == (2, {"value": 2})
    outer = system.rest.get(f"runs/{run_id}/nodes/{log['id']}", scope=f"{wrapped['id']}:1")
    assert (outer["attempt"], outer["chainIndex"], len(outer["attempts"])) == (1, 0, 1)


def test_a_cache_answers_a_second_run_of_the_same_input(system: System, tmp_path: Path) -> None:
    for value in (1, 1, 2):
        around = node("core.cache", "cache")
        nodes = run(system, host(tmp_path, around, value=value), around)
        assert nodes["host"]["result"] == {"value": value}
    assert ran(tmp_path) == ["1", "2"]


def test_a_cache_that_is_sent_to_one_worker_is_one_for_all(tmp_path: Path) -> None:
    folder = tmp_path / "truth"
    folder.mkdir()
    with running(tmp_path, workers=2) as system:
        for _ in range(6):
            sticky = {"key": "results", "mode": "sticky"}
            around = node("core.cache", "cache", affinity=sticky)
            nodes = run(system, host(folder, around, value=1), around)
            assert nodes["host"]["result"] == {"value": 1}
    assert ran(folder) == ["1"]


def test_failures_are_retried_by_new_calls_and_the_last_is_told(system: System) -> None:
    around = node("core.retry", "retry", parameters={"attempts": 3, "backoffSeconds": 0})
    wrapped = node("core.fail", "host", parameters={"message": "no"}, middlewares=[around["id"]])
    nodes = run(system, wrapped, around)
    assert (nodes["run"]["status"], nodes["host"]["calls"]) == ("failed", 3)
    assert nodes["retry"]["error"]["code"] == "E.RUNNER.FAILURE"
    assert nodes["host"]["lastCall"]["error"]["message"] == "no"


def test_a_call_that_takes_too_long_is_ended_and_told_so(system: System, tmp_path: Path) -> None:
    limit = node("core.timeout", "limit", parameters={"seconds": 0.3})
    wrapped = node("core.sleep", "host", parameters={"seconds": 600}, middlewares=[limit["id"]])
    nodes = run(system, wrapped, limit)
    assert nodes["run"]["status"] == "failed"
    error = nodes["limit"]["error"]
    assert (error["code"], error["category"]) == ("E.NEXT.TIMEOUT", "TIMEOUT")
    assert nodes["host"]["lastCall"]["status"] == "cancelled"


def test_a_host_that_has_to_be_killed_does_not_take_its_middleware_along(
    system: System, tmp_path: Path
) -> None:
    limit = node("core.timeout", "limit", parameters={"seconds": 0.3})
    wrapped = host(tmp_path, limit, value=1, until=str(tmp_path / "never"))
    nodes = run(system, wrapped, limit)
    assert (nodes["limit"]["error"]["code"], nodes["limit"]["attempt"]) == ("E.NEXT.TIMEOUT", 1)
    assert nodes["host"]["lastCall"]["error"]["code"] == "CANCEL_TIMEOUT"
    assert ran(tmp_path) == ["1"]


def test_a_middleware_that_wraps_nothing_is_refused_before_it_runs(system: System) -> None:
    definition = workflow(node("core.retry", "alone"), node("core.noop"))
    for path, body in (("workflows/validate", definition), ("runs", {"workflow": definition})):
        answer = system.rest.http.post(f"/api/v1/{path}", json=body)
        assert [one["pointer"] for one in answer.json()["errors"]] == ["/nodes/0"], answer.text


def test_a_node_that_is_no_middleware_has_nothing_to_call(system: System) -> None:
    code = "async def main():\n    from astraflow_sdk.current import CURRENT\n    return await CURRENT.get().next()"
    nodes = run(system, node("core.python", "plain", parameters={"code": code}))
    assert nodes["plain"]["error"]["code"] == "E.NEXT.INVALID"


def test_a_cancel_ends_a_chain_that_waits_for_its_host(system: System) -> None:
    around = node("core.retry", "retry")
    wrapped = node("core.sleep", "host", parameters={"seconds": 600}, middlewares=[around["id"]])
    run_id = system.rest.submit(workflow(wrapped, around))

    def is_called() -> bool:
        shown = by_label(system.rest.get(f"runs/{run_id}"))["host"]
        return bool(shown["calls"]) and shown["lastCall"]["status"] == "running"

    system.until(is_called, "a host that runs")
    system.rest.post(f"runs/{run_id}/cancel", wanted=200)
    view = system.rest.finished(run_id)
    nodes = by_label(view)
    assert view["status"] == "cancelled"
    assert [nodes[one]["status"] for one in ("host", "retry")] == ["cancelled", "cancelled"]
    assert (nodes["host"]["calls"], nodes["host"]["lastCall"]["status"]) == (1, "cancelled")


@pytest.mark.parametrize("moment", ["while the host runs", "after the host has ended"])
def test_a_scheduler_killed_while_a_call_is_open_loses_and_doubles_nothing(
    tmp_path: Path, moment: str
) -> None:
    go, folder = tmp_path / "go", tmp_path / "truth"
    folder.mkdir()
    # The leases are long, so that no attempt is lost because the scheduler was away.
    with running(tmp_path, workers=1, heartbeat_ms=5000) as system:
        log = node("core.log_calls", "log")
        again = node("core.loop", "again", parameters={"times": 2})
        wrapped = host(folder, log, again, value=1, until=str(go))
        run_id = system.rest.submit(workflow(wrapped, log, again))
        system.until(lambda: ran(folder), "a host that runs")
        system.scheduler.kill()
        if moment == "after the host has ended":
            go.touch()  # the worker has the result, and nobody to tell
        system.start()
        go.touch()
        view = system.rest.finished(run_id)
        nodes = by_label(view)
        assert view["status"] == "succeeded"
        assert ran(folder) == ["1", "1"], "one run of the host for each call"
        assert (nodes["host"]["calls"], nodes["host"]["result"]) == (2, {"value": 1})
        assert [nodes[one]["attempt"] for one in ("log", "again")] == [1, 1]


@pytest.mark.parametrize("lost", ["middleware", "host"])
def test_a_worker_killed_while_a_call_is_open_loses_and_doubles_nothing(
    tmp_path: Path, lost: str
) -> None:
    go, folder = tmp_path / "go", tmp_path / "truth"
    folder.mkdir()
    with running(tmp_path) as system:
        for name in ("middleware", "host"):
            system.new_worker(name, "--label", f"role={name}").start()
        system.until(lambda: len(system.rest.online()) == 2, "both workers online")
        around = node("core.loop", "loop", parameters={"times": 2}, workerHints=on("middleware"))
        wrapped = {**host(folder, around, value=1, until=str(go)), "workerHints": on("host")}
        run_id = system.rest.submit(workflow(wrapped, around))
        system.until(lambda: ran(folder), "a host that runs")
        system.workers[lost].kill()
        system.workers[lost].start()
        system.until(lambda: len(ran(folder)) == 2, "a host that runs again")
        go.touch()
        view = system.rest.finished(run_id)
        nodes = by_label(view)
        assert view["status"] == "succeeded"
        assert ran(folder) == ["1"] * 3, "the attempt that was lost, and one for each call"
        attempts = system.rest.get(f"runs/{run_id}/nodes/{wrapped['id']}")["attempts"]
        ends = [one["status"] for one in attempts]
        assert (ends.count("succeeded"), len(ends)) == (2, 3)
        # With its middleware a whole chain is lost; without the host only one attempt of one call.
        wanted = (2, 3) if lost == "middleware" else (1, 2)
        assert (nodes["loop"]["attempt"], nodes["host"]["calls"]) == wanted


def on(role: str) -> dict[str, Any]:
    return {"labels": {"role": role}}
