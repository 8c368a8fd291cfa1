"""The worker table: who is available, and how full."""

from __future__ import annotations

import pytest

from astraflow.core.fleet.facts import NoTransition
from astraflow.core.fleet.workers import (
    DrainIntent,
    Offer,
    WorkerDegraded,
    WorkerDrainChanged,
    WorkerDrainRequested,
    WorkerDrainWithdrawn,
    WorkerEntry,
    WorkerForgotten,
    WorkerLeft,
    WorkerLost,
    WorkerPackageChanged,
    WorkerPressureChanged,
    WorkerRecovered,
    WorkerRegistered,
    WorkerTable,
)
from astraflow.core.ids import SessionId

PKG = {"pkg": frozenset({"1.0"})}


def offer(slots: int = 2, **fields: object) -> Offer:
    return Offer(slots, fields.pop("packages", PKG), **fields)  # type: ignore[arg-type]


def register(
    workers: WorkerTable,
    worker_id: str,
    session_id: str,
    incarnation: int,
    offered: Offer,
    *,
    is_first: bool = True,
) -> WorkerEntry:
    return workers.apply(
        WorkerRegistered(
            "acme", 0, worker_id, SessionId(session_id), incarnation, is_first, offered
        )
    )


W1 = ("acme", 0, "w1")


def table(slots: int = 2, **fields: object) -> tuple[WorkerTable, WorkerEntry]:
    workers = WorkerTable()
    worker = register(workers, "w1", "s1", 1, offer(slots, **fields))
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


@pytest.mark.parametrize("fact", [WorkerDegraded(*W1), WorkerLost(*W1), WorkerLeft(*W1)])
def test_a_worker_in_trouble_is_not_available(
    fact: WorkerDegraded | WorkerLost | WorkerLeft,
) -> None:
    workers, worker = table()
    worker.since = "frame"
    workers.apply(fact)
    workers.check()
    assert listed(workers) == []
    has_session = isinstance(fact, WorkerDegraded)
    assert (worker.session_id is not None) == has_session
    assert (worker.since is not None) == has_session


def test_a_draining_worker_is_not_available_until_the_drain_is_lifted() -> None:
    workers, _ = table()
    workers.apply(WorkerDrainChanged(*W1, is_draining=True))
    workers.check()
    assert listed(workers) == []
    workers.apply(WorkerDrainChanged(*W1, is_draining=False))
    assert listed(workers) == ["w1"]


def test_a_later_register_replaces_what_is_offered() -> None:
    workers, worker = table()
    new = offer(1, packages={"new": frozenset({"2.0"})})
    assert register(workers, "w1", "s2", 2, new) is worker
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
    assert register(workers, "w1", "s1", 1, offer(1)) is worker
    workers.check()
    assert listed(workers) == []  # its one slot is taken by what it still runs


def test_a_worker_that_was_given_work_goes_to_the_end_of_the_line() -> None:
    workers, first = table(slots=4)
    register(workers, "w2", "s2", 1, offer(4))
    assert listed(workers) == ["w1", "w2"]
    workers.take_slot(first, "t.a")
    assert listed(workers) == ["w2", "w1"]


def test_only_a_heartbeat_or_a_new_session_ends_a_degradation() -> None:
    workers, worker = table()
    workers.apply(WorkerDegraded(*W1))
    register(workers, "w1", "s1", 1, offer(), is_first=False)
    seen = [worker.status]
    workers.apply(WorkerRecovered(*W1))
    seen.append(worker.status)
    workers.apply(WorkerDegraded(*W1))
    register(workers, "w1", "s2", 1, offer())
    assert [*seen, worker.status] == ["degraded", "online", "online"]


def test_a_drain_lasts_over_sessions_until_it_is_withdrawn() -> None:
    workers, worker = table()
    workers.apply(WorkerDrainRequested(*W1, DrainIntent("upgrade")))
    assert (worker.shown_status, worker.state.drain) == ("draining", DrainIntent("upgrade"))
    workers.apply(WorkerLeft(*W1))
    register(workers, "w1", "s2", 2, offer())
    assert listed(workers) == []
    workers.apply(WorkerDrainWithdrawn(*W1))
    workers.check()
    assert (listed(workers), worker.shown_status) == (["w1"], "online")


def test_a_worker_that_says_that_it_drains_still_does_when_the_drain_is_withdrawn() -> None:
    workers, worker = table()
    worker.says_draining = True
    workers.apply(WorkerDrainRequested(*W1, DrainIntent()))
    workers.apply(WorkerDrainWithdrawn(*W1))
    assert worker.is_draining


def test_a_worker_short_of_memory_is_shown_as_draining() -> None:
    workers, worker = table()
    workers.apply(WorkerPressureChanged(*W1, is_pressed=True))
    workers.check()
    assert (worker.shown_status, worker.is_reachable, listed(workers)) == ("draining", True, [])


def test_a_version_that_was_installed_or_removed_changes_the_lists() -> None:
    workers, worker = table()
    workers.apply(WorkerPackageChanged(*W1, "new", "2.0", is_installed=True))
    assert (listed(workers, "new"), worker.has_version("new", "2.0")) == (["w1"], True)
    workers.apply(WorkerPackageChanged(*W1, "new", "2.0", is_installed=False))
    workers.check()
    assert (listed(workers, "new"), "new" in worker.offer.packages) == ([], False)


def test_a_fact_that_has_no_row_is_a_bug() -> None:
    workers, _ = table()
    with pytest.raises(NoTransition, match="no transition from 'online' by WorkerRecovered"):
        workers.apply(WorkerRecovered(*W1))
    with pytest.raises(AssertionError, match="in use"):
        workers.apply(WorkerForgotten(*W1))
    workers.apply(WorkerLost(*W1))
    with pytest.raises(NoTransition):
        workers.apply(WorkerDegraded(*W1))
    workers.apply(WorkerForgotten(*W1))
    assert list(workers) == []
