from __future__ import annotations

from typing import Any

from astraflow.core.engine.batch import Batch, FleetChange
from astraflow.core.fleet.installs import PackageReported
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.current import Current
from astraflow.scheduler.gauges import SchedulerGauge
from tests.tables import each_row


def told(status: Any, details: bytes = b"{}") -> PackageReported:
    return PackageReported("acme", 0, "w1", "text", "1.0", status, None, details)


@each_row(
    ("fact", "counted"),
    [
        (told("installed"), ("install", "succeeded")),
        (told("removed"), ("uninstall", "succeeded")),
        (told("failed", b'{"step":"unpack"}'), ("install", "failed")),
        (told("failed", b'{"step":"remove"}'), ("uninstall", "failed")),
        (told("failed", b"[1]"), ("install", "failed")),
        (told("downloading"), None),
        (told("installing"), None),
    ],
)
def test_a_package_operation_is_counted_when_it_has_ended(
    fact: PackageReported, counted: tuple[str, str] | None
) -> None:
    metrics = Metrics()
    gauge = SchedulerGauge(metrics, Current())
    batch = Batch()
    batch.fleet.append(FleetChange(fact))
    gauge.committed(0.001, batch)
    operations = [
        (op, status) for op in ("install", "uninstall") for status in ("succeeded", "failed")
    ]
    for operation in operations:
        assert metrics.package_operations.value("acme", *operation) == (operation == counted)
