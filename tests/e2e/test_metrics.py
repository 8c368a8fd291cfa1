"""Every metric that the docs name has a sample, once something of everything has happened. Real processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from astraflow.observe.metrics import Metrics, WorkerMetrics
from tests.definitions import node, workflow
from tests.packages.archives import write_adapter
from tests.processes.process import ROOT, free_port
from tests.processes.system import System, running
from tests.processes.waiting import until

ADAPTER = """
    class Adapter:
        def say(self, ctx):
            return {}
"""
_ROW = re.compile(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|([^|]*)\|", re.MULTILINE)
_NAME = re.compile(r"`([a-z_]+)`")
_LABEL = re.compile(r"[a-z_]+")


def documented() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The metrics of the page, with their labels: of the scheduler, and of the worker."""
    page = (ROOT / "docs/observability.md").read_text()
    text = page[page.index("## Metrics") : page.index("## Health")]
    scheduler, _, worker = text.partition("\nWorker, on a port")
    return _names(scheduler), _names(worker)


def _names(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for names, labels in _ROW.findall(text):
        plain = re.sub(r"\([^)]*\)", "", labels)  # the values of a label
        for name in _NAME.findall(names):
            found[name] = set(_LABEL.findall(plain))
    return found


def samples(text: str) -> dict[str, set[str]]:
    """The metrics that have a sample, by the names of the page, with the labels of their samples."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            is_counter = family.type == "counter"
            name = f"{family.name}_total" if is_counter else family.name
            found.setdefault(name, set()).update(sample.labels.keys() - {"le"})
    return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path / "site") as site:
        yield site


def _happen(site: System, folder: Path, port: int) -> None:
    """Something of everything: a wait, work, a failure that is retried, a stream, packages, a missed heartbeat."""
    waiting = site.rest.submit(workflow(node("core.noop", "n")))
    until(lambda: site.rest.nodes(waiting)["n"]["waitingFor"], "a reason to wait")
    worker = site.new_worker("worker-1", ASTRA_WORKER_METRICS_PORT=str(port)).start()
    assert site.rest.finished(waiting)["status"] == "succeeded"
    again = {"maxAttempts": 2, "backoff": {"initialSeconds": 0.01}}
    fails_once = node("core.fail", parameters={"message": "once", "times": 1}, retry=again)
    assert site.rest.run(workflow(fails_once))["status"] == "succeeded"
    assert site.rest.http.get("/api/v1/events", params={"runId": waiting}).status_code == 200
    hooked = workflow(node("core.noop", "h"), triggers=[{"type": "webhook"}])
    assert site.rest.http.post("/api/v1/workflows", json=hooked).status_code == 201
    (hook,) = site.rest.get(f"workflows/{hooked['id']}/triggers")["items"]
    assert site.rest.http.post(hook["hookPath"], json={}).status_code == 202
    site.rest.publish(write_adapter(folder / "demo", "demo", "say", ADAPTER))
    site.rest.install("demo", "1.0.0")
    with worker.frozen():
        missed = "ws_heartbeat_miss_total"
        until(
            lambda: samples(site.rest.http.get("/metrics").text).get(missed), "a missed heartbeat"
        )
    until(site.rest.online, "the worker again")


@pytest.mark.timeout(180)
def test_every_metric_that_the_docs_name_has_a_sample(site: System, tmp_path: Path) -> None:
    port = free_port()
    _happen(site, tmp_path, port)
    of_scheduler, of_worker = documented()
    pages = (
        (of_scheduler, site.rest.http.get("/metrics").text),
        (of_worker, httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text),
    )
    for named, text in pages:
        assert samples(text) == named


def test_the_docs_name_every_metric_with_its_labels() -> None:
    for named, metrics in zip(documented(), (Metrics(), WorkerMetrics()), strict=True):
        assert {one.name: set(one.labels) for one in vars(metrics).values()} == named
