"""Which of what is committed has a log line, at which level."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from astraflow.core.engine.batch import Batch, FleetChange
from astraflow.core.fleet.facts import Audited, FleetFact
from astraflow.core.fleet.installs import PackageReported
from astraflow.core.fleet.rollouts import RolloutFailed, RolloutSucceeded, RolloutWaveGood
from astraflow.core.fleet.versions import VersionActivated
from astraflow.core.fleet.workers import HeartbeatMissed, WorkerRecovered
from astraflow.scheduler.batch_log import BatchLog
from tests.tables import each_row
from tests.unit.observe.records import KeptRecords

LOG = logging.getLogger("astraflow.test.batches")


@contextmanager
def kept(level: int) -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []
    handler = KeptRecords(records)
    LOG.setLevel(level)
    LOG.addHandler(handler)
    try:
        yield records
    finally:
        LOG.removeHandler(handler)


def package(status: str, details: bytes = b"{}") -> PackageReported:
    return PackageReported("acme", 0, "w1", "text", "1.0", status, None, details)


@each_row(
    ("fact", "line"),
    [
        (HeartbeatMissed("acme", 0, "w1", 1), ("WARNING", "worker w1 missed a heartbeat")),
        (HeartbeatMissed("acme", 0, "w1", 2), None),
        (WorkerRecovered("acme", 0, "w1"), None),
        (package("installed"), ("INFO", "package text 1.0 installed")),
        (package("removed"), ("INFO", "package text 1.0 removed")),
        (package("failed", b"not JSON"), ("INFO", "package text 1.0 failed")),
        (package("downloading"), ("DEBUG", "package text 1.0 downloading")),
        (VersionActivated("acme", 0, "text", "1.0"), ("INFO", "package text 1.0 is active")),
        (RolloutSucceeded("acme", 0, "text"), ("INFO", "rollout of package text succeeded")),
        (RolloutFailed("acme", 0, "text", "no"), ("INFO", "rollout of package text failed")),
        (RolloutWaveGood("acme", 0, "text"), None),
        (
            Audited("acme", 0, "ann", "pkg.publish", "r1", None, subject="text 1.0"),
            ("INFO", "pkg.publish text 1.0 by ann"),
        ),
        (Audited("acme", 0, "ann", "cancel", "r1", None), None),
    ],
)
def test_a_fact_of_the_fleet_has_its_line(fact: FleetFact, line: tuple[str, str] | None) -> None:
    batch = Batch()
    batch.fleet.append(FleetChange(fact, cause="frame-1"))
    with kept(logging.DEBUG) as records:
        BatchLog(LOG).committed(batch)
    assert [(one.levelname, one.getMessage()) for one in records] == (
        [] if line is None else [line]
    )
    assert all(one.__dict__["tenant"] == "acme" for one in records)


def test_the_line_of_a_failed_package_has_its_code() -> None:
    batch = Batch()
    batch.fleet.append(FleetChange(package("failed", b'{"code":"E.PKG.INVALID"}'), cause="f1"))
    with kept(logging.INFO) as records:
        BatchLog(LOG).committed(batch)
    (record,) = records
    assert (record.__dict__["code"], record.__dict__["id"]) == ("E.PKG.INVALID", "f1")


def test_the_line_of_an_operation_has_the_request() -> None:
    batch = Batch()
    batch.fleet.append(FleetChange(Audited("acme", 0, "ann", "pkg.install", "r1", "E.X")))
    with kept(logging.INFO) as records:
        BatchLog(LOG).committed(batch)
    assert [(one.__dict__["corr"], one.__dict__["code"]) for one in records] == [("r1", "E.X")]
