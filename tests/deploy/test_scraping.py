"""A real Prometheus, configured as shipped, collects from a real scheduler with a token for metrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.definitions import node, workflow
from tests.processes.process import ROOT, Process, free_port
from tests.processes.system import System, running

FOLDER = ROOT / "deploy/observability"
METRICS_TOKEN = "a token for metrics, and for nothing else"
OTHER = "umbrella"
TASKS = 3


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    settings = {"ASTRA_SCHEDULER_METRICS_TOKEN": METRICS_TOKEN}
    with running(tmp_path_factory.mktemp("scraped"), heartbeat_ms=20_000, environ=settings) as one:
        one.rest.post("tenants", {"tenant": OTHER}, wanted=201)
        one.rest.submit(workflow(*(node("core.noop") for _ in range(TASKS))))
        yield one


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _submit_as_other(system: System) -> None:
    made = system.rest.post("tokens", {"role": "editor", "tenant": OTHER}, wanted=201)
    answer = httpx.post(
        f"{system.url}/api/v1/runs",
        json={"workflow": workflow(node("core.noop"))},
        headers=_headers(made["token"]),
    )
    assert answer.status_code == 202, answer.text


def test_the_configured_token_opens_metrics_alone(system: System) -> None:
    assert httpx.get(f"{system.url}/metrics", headers=_headers(METRICS_TOKEN)).status_code == 200
    for path in ("me", "runs", "workers", "tokens"):
        answer = httpx.get(f"{system.url}/api/v1/{path}", headers=_headers(METRICS_TOKEN))
        assert (answer.status_code, answer.json()["code"]) == (403, "E.AUTH.FORBIDDEN"), path
    assert METRICS_TOKEN not in system.scheduler.said()


def test_prometheus_sees_what_waits_in_every_tenant(system: System, tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    assert program, "prometheus is missing: `make promtool` installs it"
    _submit_as_other(system)
    config: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"]["scrape_interval"] = "1s"
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{system.port}"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "alerts.yml").write_bytes((FOLDER / "alerts.yml").read_bytes())
    (tmp_path / "astraflow-token").write_text(METRICS_TOKEN)
    port = free_port()
    arguments = ["--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}"]
    arguments.append("--storage.tsdb.path=data")
    prometheus = Process("prometheus", arguments, tmp_path, command=(program,)).start()

    def asked(query: str) -> dict[tuple[str, str], float]:
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query"
            rows = httpx.get(url, params={"query": query}).json()["data"]["result"]
        except (httpx.TransportError, ValueError):
            return {}  # it starts
        return {
            (one["metric"]["tenant"], one["metric"]["package"]): float(one["value"][1])
            for one in rows
        }

    try:
        depths = {("default", "core"): TASKS, (OTHER, "core"): 1}
        prometheus.until(lambda: asked("astraflow_queue_depth") == depths, "the waiting tasks")
        # No worker has ever been here, and the slots are there to be compared with.
        assert asked("astraflow_slots_free") == dict.fromkeys(depths, 0)
    finally:
        prometheus.close()
