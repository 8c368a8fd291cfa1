"""The worker table: who is available, and how full."""

from __future__ import annotations

import pytest

from astraflow.core.dispatch.workers import Offer, WorkerEntry, WorkerTable

PKG = {"pkg": frozenset({"1.0"})}


def offer(slots: int = 2, **fields: object) -> Offer:
    return Offer(slots, fields.pop("packages", PKG), **fields)  # type: ignore[arg-type]


def table(slots: int = 2, **fields: object) -> tuple[WorkerTable, WorkerEntry]:
    workers = WorkerTable()
    worker = workers.register("acme", "w1", "s1", 1, offer(slots, **fields))
    workers.check()
    return workers, worker


def listed(workers: WorkerTable, package: str = "pkg") -> list[str]:
    return list(workers.available("acme", package))


def test_a_registered_worker_is_available_for_its_packages_in_its_tenant() -> None:
    workers, worker = table()
    assert listed(workers) == ["w1"]
    assert listed(workers, "other") == []
    assert list(workers.available("other", "pkg")) == []
    assert workers.find("acme", "w1") is worker
    assert workers.find("other", "w1") is None
    assert list(workers) == [worker]
    assert workers.of_tenant("acme") == [worker]
    assert workers.of_tenant("other") == []


def test_a_full_worker_is_not_available_until_a_slot_is_free() -> None:
    workers, worker = table(slots=2)
    workers.take_slot(worker, "t.a")
    assert (listed(workers), worker.load) == (["w1"], 0.5)
    workers.take_slot(worker, "t.a")
    workers.check()
    assert listed(workers) == []
    assert worker.is_reachable
    workers.free_slot(worker, "t.a")
    workers.check()
    assert listed(workers) == ["w1"]
    assert worker.used_by_type == {"t.a": 1}
    workers.free_slot(worker, "t.a")
    assert worker.used_by_type == {}


def test_giving_back_a_slot_twice_is_a_bug() -> None:
    workers, worker = table()
    with pytest.raises(AssertionError, match="given back twice"):
        workers.free_slot(worker, "t.a")


def test_a_limit_per_node_type_bounds_that_type_alone() -> None:
    workers, worker = table(slots=4, per_node_limits={"t.gpu": 1})
    assert worker.has_room_for("t.gpu")
    workers.take_slot(worker, "t.gpu")
    assert not worker.has_room_for("t.gpu")
    assert worker.has_room_for("t.cpu")


@pytest.mark.parametrize("status", ["degraded", "lost", "offline"])
def test_a_worker_in_trouble_is_not_available(status: str) -> None:
    workers, worker = table()
    worker.since = "frame"
    workers.set_status(worker, status)  # type: ignore[arg-type]
    workers.check()
    assert listed(workers) == []
    has_session = status == "degraded"
    assert (worker.session_id is not None) == has_session
    assert (worker.since is not None) == has_session


def test_a_draining_worker_is_not_available_until_the_drain_is_lifted() -> None:
    workers, worker = table()
    workers.set_draining(worker, True)
    workers.check()
    assert listed(workers) == []
    workers.set_draining(worker, False)
    assert listed(workers) == ["w1"]


def test_a_later_register_replaces_what_is_offered() -> None:
    workers, worker = table()
    new = offer(1, packages={"new": frozenset({"2.0"})})
    assert workers.register("acme", "w1", "s2", 2, new) is worker
    workers.check()
    assert listed(workers) == []
    assert listed(workers, "new") == ["w1"]
    assert (worker.session_id, worker.incarnation) == ("s2", 2)


def test_an_expected_worker_is_known_and_not_available() -> None:
    workers = WorkerTable()
    worker = workers.expect("acme", "w1")
    workers.take_slot(worker, "t.a")
    workers.check()
    assert worker.status == "offline"
    assert not worker.is_reachable
    assert workers.register("acme", "w1", "s1", 1, offer(1)) is worker
    workers.check()
    assert listed(workers) == []  # its one slot is taken by what it still runs


def test_a_worker_that_was_given_work_goes_to_the_end_of_the_line() -> None:
    workers, first = table(slots=4)
    workers.register("acme", "w2", "s2", 1, offer(4))
    assert listed(workers) == ["w1", "w2"]
    workers.take_slot(first, "t.a")
    assert listed(workers) == ["w2", "w1"]
