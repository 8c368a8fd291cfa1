"""Leases: granted once, renewed by name only, looked at when they end."""

from __future__ import annotations

import pytest

from astraflow.core.dispatch.leases import SPARE_ENDS, AttemptLease, LeaseTable
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.runs.run import RunRecord
from tests.unit.plans import AT, make_plan


def lease(task: int = 0, attempt: int = 1, worker: str = "w1", now: float = 0.0) -> AttemptLease:
    run = RunRecord(make_plan(3), RunAccepted(AT, RunId("run1"), "acme", "wf"))
    return AttemptLease(
        run, task, run.task_id(task), attempt, WorkerEntry("acme", worker), 30.0, now
    )


def table(*leases: AttemptLease) -> LeaseTable:
    made = LeaseTable()
    for one in leases:
        made.grant(one)
    made.check()
    return made


def test_a_lease_is_found_by_its_task_and_attempt_only() -> None:
    one = lease(attempt=2)
    leases = table(one)
    assert leases.find(TaskId("run1.0"), 2) is one
    assert leases.find(TaskId("run1.0"), 1) is None
    assert leases.find(TaskId("run1.1"), 2) is None
    assert list(leases) == [one]


def test_a_task_has_one_lease_at_a_time() -> None:
    leases = table(lease())
    with pytest.raises(AssertionError, match="one lease at a time"):
        leases.grant(lease(attempt=2))


def test_the_leases_of_a_worker_are_those_of_its_tenant() -> None:
    one, two = lease(0), lease(1, worker="w2")
    leases = table(one, two)
    assert leases.of_worker("acme", "w1") == [one]
    assert leases.of_worker("other", "w1") == []


class TestRenew:
    def test_a_named_attempt_is_renewed(self) -> None:
        one = lease()
        leases = table(one)
        assert leases.renew("acme", "w1", [(TaskId("run1.0"), 1)], 10.0) == []
        assert one.until == 40.0

    def test_an_attempt_that_is_not_named_is_not_renewed(self) -> None:
        one, two = lease(0), lease(1)
        leases = table(one, two)
        leases.renew("acme", "w1", [(TaskId("run1.0"), 1)], 10.0)
        assert (one.until, two.until) == (40.0, 30.0)

    def test_what_is_named_and_not_held_is_to_be_stopped(self) -> None:
        one, elsewhere = lease(0, attempt=2), lease(1, worker="w2")
        leases = table(one, elsewhere)
        named = [
            (TaskId("run1.0"), 1),
            (TaskId("run1.1"), 1),
            (TaskId("run9.9"), 1),
            (TaskId("run1.0"), 2),
        ]
        assert leases.renew("acme", "w1", named, 10.0) == named[:3]
        assert elsewhere.until == 30.0

    def test_a_revoked_lease_is_not_renewed_and_its_attempt_is_to_be_stopped(self) -> None:
        one = lease()
        one.is_revoked = True
        leases = table(one)
        assert leases.renew("acme", "w1", [(TaskId("run1.0"), 1)], 10.0) == [(TaskId("run1.0"), 1)]
        assert one.until == 30.0

    def test_a_renewal_never_makes_a_lease_shorter(self) -> None:
        one = lease(now=100.0)
        leases = table(one)
        leases.renew("acme", "w1", [(TaskId("run1.0"), 1)], 50.0)
        assert one.until == 130.0


class TestEnd:
    def test_an_ended_lease_is_gone_from_everywhere(self) -> None:
        one, two = lease(0), lease(1)
        leases = table(one, two)
        assert leases.end(TaskId("run1.0"), 1) is one
        leases.check()
        assert leases.of_worker("acme", "w1") == [two]
        assert leases.end(TaskId("run1.1"), 1) is two
        leases.check()
        assert len(leases) == 0
        assert leases.of_worker("acme", "w1") == []

    def test_ending_another_attempt_ends_nothing(self) -> None:
        leases = table(lease(attempt=2))
        assert leases.end(TaskId("run1.0"), 1) is None
        assert len(leases) == 1


class TestExpiry:
    def test_a_lease_expires_at_its_own_time_and_stays_until_it_is_ended(self) -> None:
        one, two = lease(0), lease(1, now=5.0)
        leases = table(one, two)
        assert leases.deadline() == 30.0
        assert leases.expired(29.9) == []
        assert leases.expired(30.0) == [one]
        assert leases.find(TaskId("run1.0"), 1) is one
        leases.end(TaskId("run1.0"), 1)
        leases.check()
        assert leases.deadline() == 35.0

    def test_a_renewed_lease_is_looked_at_again_when_it_ends(self) -> None:
        one = lease()
        leases = table(one)
        leases.renew("acme", "w1", [(TaskId("run1.0"), 1)], 20.0)
        assert leases.expired(30.0) == []
        leases.check()
        assert leases.deadline() == 50.0
        assert leases.expired(50.0) == [one]

    def test_the_end_of_a_former_attempt_does_not_touch_the_next(self) -> None:
        leases = table(lease(attempt=1))
        leases.end(TaskId("run1.0"), 1)
        two = lease(attempt=2, now=10.0)
        leases.grant(two)
        assert leases.expired(30.0) == []
        assert leases.expired(40.0) == [two]

    def test_what_has_ended_is_not_kept_until_it_would_have_expired(self) -> None:
        kept = lease(0)
        leases = table(kept)
        for attempt in range(1, 3 * SPARE_ENDS):
            leases.grant(lease(1, attempt))
            leases.end(TaskId("run1.1"), attempt)
            leases.check()
        assert len(leases._ends) <= 2 + SPARE_ENDS
        assert leases.expired(30.0) == [kept]

    def test_without_leases_nothing_is_due(self) -> None:
        leases = LeaseTable()
        assert leases.deadline() is None
        assert leases.expired(1e9) == []
