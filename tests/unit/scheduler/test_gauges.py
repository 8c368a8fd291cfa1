from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.engine.batch import Batch, PackageTold
from astraflow.core.protocol.business import PkgEvent
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.gauges import SchedulerGauge


def told(status: Any, details: bytes = b"{}") -> PackageTold:
    return PackageTold(
        "acme", "w-1", PkgEvent("texts", "1.0.0", status, details=msgspec.Raw(details))
    )


@pytest.mark.parametrize(
    ("notice", "counted"),
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
    notice: PackageTold, counted: tuple[str, str] | None
) -> None:
    metrics = Metrics()
    gauge = SchedulerGauge(metrics, lambda: None)
    batch = Batch()
    batch.notices.append(notice)
    gauge.committed(0.001, batch, None)  # type: ignore[arg-type]
    operations = [
        (op, status) for op in ("install", "uninstall") for status in ("succeeded", "failed")
    ]
    for operation in operations:
        assert metrics.package_operations.value("acme", *operation) == (operation == counted)
