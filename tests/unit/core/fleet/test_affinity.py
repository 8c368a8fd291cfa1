"""Affinity records: who holds a key, and for how long after a worker was lost."""

from __future__ import annotations

import pytest

from astraflow.core.fleet.affinity import (
    AffinityAcquired,
    AffinityExpected,
    AffinityReleased,
    AffinityRevived,
    AffinityStale,
    AffinityTable,
)
from astraflow.core.fleet.facts import NoTransition


class Keys(AffinityTable):
    """The table, used as the engine uses it. `at`, in milliseconds, and `now` are the same clock."""

    def acquire(self, key: str, worker: str, now: float, ttl_s: float) -> bool:
        record = self.lookup("acme", key)
        if record is None:
            at, end = int(now * 1000), int((now + ttl_s) * 1000)
            self.apply(AffinityAcquired("acme", at, key, worker, at, end), now)
        self.begin_use("acme", key, worker, now + ttl_s)
        return record is None or record.worker_id == worker

    def settle(self, key: str, worker: str, now: float, ttl_s: float) -> None:
        self.end_use("acme", key, worker, now + ttl_s)

    def release(self, key: str) -> None:
        self.apply(AffinityReleased("acme", 0, key), 0.0)

    def mark_stale(self, worker: str, until: float) -> None:
        for key in self.keys_of("acme", worker):
            self.apply(AffinityStale("acme", 0, key, int(until * 1000)), 0.0)

    def revive(self, worker: str, now: float, ttl_s: float) -> None:
        for key in self.stale_keys_of("acme", worker):
            self.apply(AffinityRevived("acme", 0, key, int((now + ttl_s) * 1000)), 0.0)

    def expire(self, now: float) -> list[tuple[str, str, str]]:
        over = self.expired(now)
        for _, key, _ in over:
            self.release(key)
        return over


def table(*keys: str, worker: str = "w1", ttl_s: float = 100.0) -> Keys:
    """A table in which one task of each key has begun and ended on one worker."""
    made = Keys()
    for key in keys:
        assert made.acquire(key, worker, 0.0, ttl_s)
        made.settle(key, worker, 0.0, ttl_s)
    made.check()
    return made


def test_the_first_worker_to_use_a_key_has_it() -> None:
    affinity = table("model")
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.worker_id, record.state, record.expires_at) == ("w1", "active", 100.0)
    assert affinity.lookup("acme", "other") is None


def test_another_worker_does_not_get_a_key_that_is_held() -> None:
    affinity = table("model")
    assert not affinity.acquire("model", "w2", 1.0, 100.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert record.worker_id == "w1"
    affinity.check()


def test_the_same_key_of_two_tenants_is_two_keys() -> None:
    affinity = table("model")
    affinity.apply(AffinityAcquired("other", 0, "model", "w2", 0, 100_000), 0.0)
    assert len(affinity) == 2
    affinity.check()


def test_each_use_makes_a_key_live_longer() -> None:
    affinity = table("model")
    affinity.acquire("model", "w1", 50.0, 100.0)
    affinity.settle("model", "w1", 60.0, 100.0)
    assert affinity.expire(159.0) == []
    assert affinity.expire(160.0) == [("acme", "model", "w1")]
    assert len(affinity) == 0
    affinity.check()


def test_a_key_does_not_expire_while_a_task_uses_it() -> None:
    affinity = Keys()
    affinity.acquire("model", "w1", 0.0, 10.0)
    assert affinity.expire(1000.0) == []
    affinity.settle("model", "w1", 1000.0, 10.0)
    assert affinity.expire(1010.0) == [("acme", "model", "w1")]


def test_a_task_that_ends_on_a_worker_without_the_key_changes_nothing() -> None:
    affinity = table("model")
    affinity.settle("model", "w2", 99.0, 100.0)
    affinity.settle("unknown", "w1", 99.0, 100.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.inflight, record.expires_at) == (0, 100.0)


def test_releasing_one_key_leaves_the_others_of_its_worker() -> None:
    affinity = table("a", "b")
    affinity.release("a")
    affinity.check()
    assert affinity.lookup("acme", "a") is None
    assert affinity.lookup("acme", "b") is not None
    with pytest.raises(NoTransition):
        affinity.release("unknown")
    assert len(affinity) == 1


def test_the_keys_of_a_lost_worker_wait_for_it_for_the_grace_and_no_longer() -> None:
    affinity = table("model")
    affinity.mark_stale("w1", 40.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.state, record.expires_at) == ("stale", 40.0)
    assert affinity.expire(39.0) == []
    assert affinity.expire(40.0) == [("acme", "model", "w1")]


def test_the_grace_never_makes_a_key_live_longer() -> None:
    affinity = table("model", ttl_s=5.0)
    affinity.mark_stale("w1", 30.0)
    assert affinity.expire(5.0) == [("acme", "model", "w1")]


def test_a_stale_key_ends_with_the_last_task_that_uses_it() -> None:
    affinity = Keys()
    affinity.acquire("model", "w1", 0.0, 100.0)
    affinity.mark_stale("w1", 30.0)
    assert affinity.expire(30.0) == []
    affinity.check()
    affinity.settle("model", "w1", 32.0, 100.0)
    assert affinity.deadline() == 30.0
    assert affinity.expire(32.0) == [("acme", "model", "w1")]
    affinity.check()


def test_the_end_of_a_task_does_not_make_a_stale_key_live_longer() -> None:
    affinity = Keys()
    affinity.acquire("model", "w1", 0.0, 3600.0)
    affinity.mark_stale("w1", 30.0)
    affinity.settle("model", "w1", 20.0, 3600.0)
    assert affinity.expire(29.0) == []
    assert affinity.expire(30.0) == [("acme", "model", "w1")]


def test_a_key_that_a_stored_lease_uses_waits_for_its_worker() -> None:
    affinity = Keys()
    affinity.apply(AffinityExpected("acme", 0, "model", "w1", 0, 30_000), 0.0)
    affinity.begin_use("acme", "model", "w1")
    affinity.begin_use("acme", "model", "w1")
    affinity.begin_use("acme", "model", "w2")
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.worker_id, record.state, record.inflight) == ("w1", "stale", 2)
    affinity.revive("w1", 10.0, 100.0)
    assert (record.state, record.expires_at) == ("active", 110.0)
    affinity.check()


def test_a_worker_that_comes_back_in_time_has_its_keys_again() -> None:
    affinity = table("model", "other")
    affinity.mark_stale("w1", 40.0)
    affinity.apply(AffinityAcquired("acme", 15_000, "other", "w1", 0, 115_000), 15.0)
    affinity.revive("w1", 20.0, 100.0)
    states = {
        key: (record.state, record.expires_at)
        for key in ("model", "other")
        if (record := affinity.lookup("acme", key)) is not None
    }
    assert states == {"model": ("active", 120.0), "other": ("active", 115.0)}
    affinity.check()


def test_losing_and_reviving_a_worker_without_keys_does_nothing() -> None:
    affinity = table("model")
    affinity.mark_stale("w9", 30.0)
    affinity.revive("w9", 0.0, 30.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert record.state == "active"


def test_a_stored_key_is_stale_and_keeps_the_tasks_that_use_it() -> None:
    affinity = Keys()
    affinity.restore("acme", "model", "w1", 0.0, 5.0)
    affinity.begin_use("acme", "model", "w1")
    affinity.begin_use("acme", "model", "w2")  # it is only preferred there
    affinity.check()
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.state, record.inflight, record.expires_at) == ("stale", 1, 5.0)


def test_a_key_that_is_nobodys_is_neither_stale_nor_revived() -> None:
    with pytest.raises(NoTransition):
        Keys().apply(AffinityStale("acme", 0, "model", 0), 0.0)
    with pytest.raises(NoTransition):
        table("model").apply(AffinityRevived("acme", 0, "model", 0), 0.0)


def test_a_key_is_watched_once_however_often_it_is_used() -> None:
    affinity = Keys()
    for now in range(1000):
        affinity.acquire("model", "w1", float(now), 100.0)
        affinity.settle("model", "w1", float(now), 100.0)
        assert affinity.expire(float(now)) == []
        affinity.check()
    assert len(affinity._ends) == 1
    assert affinity.expire(1098.9) == []
    assert affinity.expire(1099.0) == [("acme", "model", "w1")]
    assert affinity.deadline() is None


def test_keys_that_live_cost_nothing_when_others_end() -> None:
    affinity = table(*(f"long-{number}" for number in range(1000)), ttl_s=1000.0)
    affinity.acquire("short", "w1", 0.0, 5.0)
    affinity.settle("short", "w1", 0.0, 5.0)
    assert affinity.deadline() == 5.0
    assert affinity.expire(5.0) == [("acme", "short", "w1")]
    # None of the others was looked at: each would have been watched anew.
    assert affinity.deadline() == 1000.0
    assert len(affinity) == 1000
    affinity.check()


def test_a_key_that_was_released_and_had_again_has_a_time_of_its_own() -> None:
    affinity = table("model", ttl_s=10.0)
    affinity.release("model")
    affinity.acquire("model", "w2", 5.0, 10.0)
    affinity.settle("model", "w2", 5.0, 10.0)
    assert affinity.expire(10.0) == []
    assert affinity.expire(15.0) == [("acme", "model", "w2")]
