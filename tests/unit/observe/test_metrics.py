from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import astraflow
from astraflow.observe import metrics as module
from astraflow.observe.metrics import Counter, Gauge, Histogram, Metrics, WorkerMetrics

SCHEDULER_NAMES = {
    "ws_conn_active": ("tenant",),
    "ws_heartbeat_miss": ("tenant", "worker"),
    "cmd_dispatch": ("tenant", "node_type"),
    "cmd_retry": ("reason",),
    "result_latency_ms": ("tenant", "node_type"),
    "ws_frame_bytes": ("tenant", "dir"),
    "pkg_ops": ("tenant", "op", "status"),
}
WORKER_NAMES = {
    "inflight_tasks": (),
    "task_duration_ms": ("node_type",),
    "heartbeat_sent": (),
    "heartbeat_degraded": (),
}


def families(text: bytes) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    return {
        family.name: [(sample.name, sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text.decode())
    }


def test_the_names_and_labels_of_the_older_documents_are_kept() -> None:
    metrics = Metrics()
    metrics.connections.set("t", to=1)
    metrics.heartbeats_missed.add("t", "w")
    metrics.dispatches.add("t", "core.noop")
    metrics.retries.add("lost")
    metrics.result_latency.observe(3, "t", "core.noop")
    metrics.frame_bytes.add("t", "in", by=10)
    metrics.package_operations.add("t", "install", "succeeded")
    found = families(metrics.text())
    for name, labels in SCHEDULER_NAMES.items():
        _, given, _ = found[name][0]
        assert given.keys() - {"le"} == set(labels), name
    text = metrics.text().decode()
    for line in ("ws_heartbeat_miss_total{", "cmd_dispatch_total{", "result_latency_ms_bucket{"):
        assert f"\n{line}" in text


def test_a_worker_has_its_own() -> None:
    metrics = WorkerMetrics()
    metrics.heartbeats_sent.add()
    metrics.inflight.set(to=3)
    metrics.task_duration.observe(12, "core.noop")
    found = families(metrics.text())
    assert found.keys() >= WORKER_NAMES.keys()
    assert found["inflight_tasks"] == [("inflight_tasks", {}, 3.0)]
    assert found["heartbeat_sent"] == [("heartbeat_sent_total", {}, 1.0)]


def test_what_was_never_counted_is_shown_as_nothing_or_zero() -> None:
    found = families(Metrics().text())
    assert found["cmd_dispatch"] == []
    assert found["astraflow_queue_depth"] == found["astraflow_slots_free"] == []
    assert found["astraflow_active_tasks"] == [("astraflow_active_tasks", {}, 0.0)]


def test_a_histogram_counts_under_each_bound() -> None:
    histogram = Histogram("h", "says", (1, 10))
    for value in (0.5, 1, 5, 100):
        histogram.observe(value)
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in histogram.family().samples
    }
    assert samples == {
        ("h_bucket", "1"): 2,
        ("h_bucket", "10"): 3,
        ("h_bucket", "+Inf"): 4,
        ("h_count", None): 4,
        ("h_sum", None): 106.5,
    }
    assert histogram.count() == 4
    assert histogram.count("none") == 0


def test_a_gauge_can_be_read_from_where_its_value_is_kept() -> None:
    gauge = Gauge("g", "says", ("tenant",))
    depth: dict[tuple[str, ...], float] = {("a",): 1.0}
    gauge.follow(lambda: depth)
    depth[("a",)] = 7
    assert gauge.value("a") == 7
    assert [sample.value for sample in gauge.family().samples] == [7]


def test_labels_that_users_make_up_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 3)
    counter = Counter("c", "says", ("tenant", "node_type"))
    for place in range(10):
        counter.add("t", f"made.up.{place}")
    assert counter.value("t", "other") == 7
    assert len(counter.family().samples) == 4
    counter.add("t", "made.up.0")
    assert counter.value("t", "made.up.0") == 2
    histogram = Histogram("h", "says", (1,), ("node_type",))
    for place in range(10):
        histogram.observe(1, f"made.up.{place}")
    assert histogram.count("other") == 7
    gauge = Gauge("g", "says", ("worker",))
    for place in range(5):
        gauge.set(f"w{place}", to=place)
        gauge.add(f"w{place}")
    assert gauge.value("other") == 5
    followed = Gauge("f", "says", ("tenant", "package"))
    depths: dict[tuple[str, ...], float] = {
        (tenant, f"p{place}"): 1.0 for place in range(4) for tenant in "ab"
    }
    followed.follow(lambda: depths)
    assert len(followed.family().samples) == 5
    assert (followed.value("a", "other"), followed.value("b", "other")) == (2, 3)
    assert sum(sample.value for sample in followed.family().samples) == len(depths)


def test_a_tenant_sees_its_own_and_what_belongs_to_none() -> None:
    metrics = Metrics()
    for tenant in ("a", "b"):
        metrics.runs_accepted.add(tenant)
        metrics.result_latency.observe(1, tenant, "x")
    metrics.retries.add("lost")
    text = metrics.text("a").decode()
    assert 'tenant="a"' in text
    assert 'tenant="b"' not in text
    assert 'cmd_retry_total{reason="lost"} 1.0' in text
    assert 'tenant="b"' in metrics.text().decode()


@pytest.mark.parametrize("kind", [Metrics, WorkerMetrics])
def test_every_declared_metric_is_fed_by_the_product(kind: type[Metrics | WorkerMetrics]) -> None:
    """A number that nothing counts tells an operator that nothing happens."""
    folder = Path(astraflow.__file__).parent
    sources = [file for file in folder.rglob("*.py") if "observe" not in file.parts]
    text = "".join(file.read_text() for file in sources)
    fed = set(re.findall(r"metrics\.(\w+)", text))
    declared = {name for name, one in vars(kind()).items() if not name.startswith("_")}
    assert declared - fed == set()
