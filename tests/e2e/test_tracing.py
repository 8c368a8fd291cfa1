"""Traces from the caller through scheduler and worker to the handler, with real processes and a real collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import link, node, workflow
from tests.e2e.collector import Collector, ReceivedSpan, collecting
from tests.processes.system import System, running
from tests.processes.waiting import until

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TELLS = "def main():\n    return {'traceparent': ctx.traceparent}\n"
WAITS = """
import os, time

def main(folder):
    open(os.path.join(folder, "started"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.05)
"""


def tells() -> dict[str, Any]:
    return node("core.python", parameters={"code": TELLS})


def traced(collector: Collector) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }


def submit(site: System, definition: dict[str, Any], traceparent: str | None = None) -> str:
    headers = {} if traceparent is None else {"traceparent": traceparent}
    answer = site.rest.http.post("/api/v1/runs", json={"workflow": definition}, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def trace_of(collector: Collector, run_id: str, count: int) -> dict[str, ReceivedSpan]:
    """The spans of a run, once there are so many, by name."""

    def found() -> list[ReceivedSpan]:
        spans = [one for one in collector.all() if one.attributes["astraflow.run.id"] == run_id]
        return spans if len(spans) >= count else []

    spans = until(found, f"{count} spans of {run_id}")
    assert len(spans) == count
    return {one.name: one for one in spans}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.mark.timeout(120)
def test_a_trace_goes_from_the_caller_to_the_handler(collector: Collector, tmp_path: Path) -> None:
    with running(tmp_path / "site", 1, environ=traced(collector)) as site:
        definition = workflow(tells())
        run_id = submit(site, definition, f"00-{TRACE}-{CALLER}-01")
        (shown,) = site.rest.finished(run_id)["nodes"]
        spans = trace_of(collector, run_id, 3)
        run = spans[f"run {definition['id']}"]
        attempt, execution = spans["attempt core.python"], spans["execute core.python"]
        assert {one.trace for one in spans.values()} == {TRACE}
        assert (run.parent, attempt.parent, execution.parent) == (CALLER, run.id, attempt.id)
        assert [one.service for one in (run, attempt, execution)] == [
            "astraflow-scheduler", "astraflow-scheduler", "astraflow-worker",
        ]  # fmt: skip
        assert shown["result"]["traceparent"] == execution.header
        assert attempt.attributes["astraflow.attempt"] == 1
        assert attempt.attributes["astraflow.worker.id"] == shown["workerId"]
        assert run.began_ns <= attempt.began_ns <= attempt.ended_ns <= run.ended_ns
        assert not any(one.is_error for one in spans.values())


@pytest.mark.timeout(120)
def test_runs_without_a_caller_get_traces_of_their_own(
    collector: Collector, tmp_path: Path
) -> None:
    with running(tmp_path / "site", 1, environ=traced(collector)) as site:
        good = submit(site, workflow(node("core.noop")), "not a traceparent")
        again = {"maxAttempts": 2, "backoff": {"initialSeconds": 0.01}}
        bad = submit(site, workflow(node("core.fail", parameters={"message": "no"}, retry=again)))
        traces = set()
        for run_id, count in ((good, 3), (bad, 5)):
            site.rest.finished(run_id)
            trace_of_run = trace_of(collector, run_id, count)
            run = next(one for name, one in trace_of_run.items() if name.startswith("run "))
            assert run.parent == ""
            traces.add(run.trace)
        assert len(traces) == 2
        failed = [one for one in collector.all() if one.attributes["astraflow.run.id"] == bad]
        assert all(one.is_error for one in failed)
        assert {one.attributes["error.type"] for one in failed} >= {"E.RUNNER.FAILURE"}
        attempts = {
            one.attributes["astraflow.attempt"]: one.id
            for one in failed
            if one.name.startswith("attempt ")
        }
        executions = {
            one.attributes["astraflow.attempt"]: one.parent
            for one in failed
            if one.name.startswith("execute ")
        }
        assert attempts == executions and attempts.keys() == {1, 2}


@pytest.mark.timeout(120)
def test_a_trace_that_is_not_sampled_is_passed_on_and_not_exported(
    collector: Collector, tmp_path: Path
) -> None:
    with running(tmp_path / "site", 1, environ=traced(collector)) as site:
        quiet = site.rest.finished(submit(site, workflow(tells()), f"00-{TRACE}-{CALLER}-00"))
        told = quiet["nodes"][0]["result"]["traceparent"]
        assert told.startswith(f"00-{TRACE}-") and told.endswith("-00")
        loud = submit(site, workflow(node("core.noop")))
        trace_of(collector, loud, 3)
        assert collector.spans(TRACE) == []


@pytest.mark.timeout(120)
def test_without_an_export_a_trace_passes_through(tmp_path: Path) -> None:
    header = f"00-{TRACE}-{CALLER}-01"
    with running(tmp_path / "site", 1) as site:
        for given, wanted in ((header, header), (None, None), ("00-zz", None)):
            view = site.rest.finished(submit(site, workflow(tells()), given))
            assert view["nodes"][0]["result"]["traceparent"] == wanted


@pytest.mark.timeout(120)
def test_a_trace_survives_the_scheduler(collector: Collector, tmp_path: Path) -> None:
    # Leases that outlive a restart on a busy machine: an attempt that is lost has spans of its own.
    with running(tmp_path / "site", 1, heartbeat_ms=5_000, environ=traced(collector)) as site:
        inputs = {"folder": str(tmp_path)}
        first = node("core.python", "first", parameters={"code": WAITS, "inputs": inputs})
        second = node("core.noop", "second")
        definition = workflow(first, second, edges=[link(first, second)])
        run_id = submit(site, definition, f"00-{TRACE}-{CALLER}-01")
        until((tmp_path / "started").exists, "the attempt")
        site.restart()
        (tmp_path / "go").touch()
        assert site.rest.finished(run_id)["status"] == "succeeded"
        spans = trace_of(collector, run_id, 5)
        run = spans[f"run {definition['id']}"]
        assert run.parent == CALLER
        for name in ("core.python", "core.noop"):
            assert spans[f"attempt {name}"].parent == run.id
            assert spans[f"execute {name}"].parent == spans[f"attempt {name}"].id


@pytest.mark.timeout(120)
def test_a_collector_that_is_away_costs_no_run(tmp_path: Path) -> None:
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    with running(tmp_path / "site", 1, environ=away) as site:
        for _ in range(3):
            assert site.rest.run(workflow(node("core.noop")))["status"] == "succeeded"


@pytest.mark.timeout(120)
def test_the_attempts_of_items_are_spans_that_say_where_they_are(
    collector: Collector, tmp_path: Path
) -> None:
    box = node("core.container", "box", map={"over": "=range(3)"})
    inside = node("core.echo", parent=box["id"], parameters={"value": "=item"})
    beside = node("core.noop")
    with running(tmp_path / "site", 1, environ=traced(collector)) as site:
        run_id = submit(site, workflow(box, inside, beside), f"00-{TRACE}-{CALLER}-01")
        assert site.rest.finished(run_id)["status"] == "succeeded"

        def found() -> list[ReceivedSpan]:
            spans = collector.spans(TRACE)
            return spans if len(spans) >= 9 else []

        spans = until(found, "the spans of the run, four attempts and four executions")
    assert len(spans) == len({one.id for one in spans}) == 9
    run = next(one for one in spans if one.name.startswith("run "))
    attempts = [one for one in spans if one.name.startswith("attempt ")]
    assert {one.parent for one in attempts} == {run.id}
    assert {one.attributes.get("astraflow.scope.path") for one in attempts} == {
        None,
        *(f"{box['id']}:{item}/{box['id']}:0" for item in range(3)),
    }
    executions = [one for one in spans if one.name.startswith("execute ")]
    assert sorted(one.parent for one in executions) == sorted(one.id for one in attempts)
