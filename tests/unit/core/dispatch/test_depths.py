"""How many tasks wait for a package."""

from __future__ import annotations

import pytest

from astraflow.core.dispatch import depths as module
from astraflow.core.dispatch.depths import Depths
from astraflow.core.dispatch.queue import ReadyQueue
from astraflow.core.ids import RunId
from tests.unit.core.dispatch.test_queue import demand

MILLION = 1_000_000


def test_tasks_are_counted_by_tenant_and_package_whatever_else_they_need() -> None:
    queue = ReadyQueue()
    for task, wanted in enumerate(
        (demand(), demand(pin="w1"), demand(package="other"), demand("umbrella"))
    ):
        queue.push(RunId("r1"), task, wanted)
    queue.push(RunId("r1"), 4, demand(), ready_at=9.0)  # it waits, too
    queue.push(RunId("r1"), 0, demand(), priority=1)  # again: it replaces its entry
    queue.check()
    counted = {("acme", "pkg"): 3, ("acme", "other"): 1, ("umbrella", "pkg"): 1}
    assert queue.depths.by_bundle() == counted


def test_a_block_counts_as_its_tasks_and_a_depth_that_is_zero_is_still_there() -> None:
    queue = ReadyQueue()
    queue.push_all(RunId("r1"), range(MILLION), demand())
    assert queue.depths.by_bundle() == {("acme", "pkg"): MILLION}
    for _ in range(3):
        entry = queue.next()
        assert entry is not None
        queue.served(entry)
    queue.forget(RunId("r1"), 7)
    assert queue.depths.by_bundle() == {("acme", "pkg"): MILLION - 4}
    queue.forget_run(RunId("r1"))
    queue.check()
    assert queue.depths.by_bundle() == {("acme", "pkg"): 0}


def test_what_nobody_waits_for_is_forgotten_when_there_is_too_much_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    depths = Depths()
    for name in ("a", "b", "c"):
        depths.add(demand(package=name))
    depths.add(demand(package="b"), -1)
    assert depths.by_bundle()["acme", "b"] == 0
    depths.add(demand(package="d"))
    assert set(depths.by_bundle()) == {("acme", "a"), ("acme", "c"), ("acme", "d")}
