"""Affinity records: who holds a key, and for how long after a worker was lost."""

from __future__ import annotations

from astraflow.core.dispatch.affinity import AffinityTable


def table(*keys: str, worker: str = "w1", ttl_s: float = 100.0) -> AffinityTable:
    """A table in which one task of each key has begun and ended on one worker."""
    made = AffinityTable()
    for key in keys:
        assert made.acquire("acme", key, worker, 0.0, ttl_s)
        made.settle("acme", key, worker, 0.0, ttl_s)
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
    assert not affinity.acquire("acme", "model", "w2", 1.0, 100.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert record.worker_id == "w1"
    affinity.check()


def test_the_same_key_of_two_tenants_is_two_keys() -> None:
    affinity = table("model")
    assert affinity.acquire("other", "model", "w2", 0.0, 100.0)
    assert len(affinity) == 2
    affinity.check()


def test_each_use_makes_a_key_live_longer() -> None:
    affinity = table("model")
    affinity.acquire("acme", "model", "w1", 50.0, 100.0)
    affinity.settle("acme", "model", "w1", 60.0, 100.0)
    assert affinity.expire(159.0) == []
    assert affinity.expire(160.0) == [("acme", "model", "w1")]
    assert len(affinity) == 0
    affinity.check()


def test_a_key_does_not_expire_while_a_task_uses_it() -> None:
    affinity = AffinityTable()
    affinity.acquire("acme", "model", "w1", 0.0, 10.0)
    assert affinity.expire(1000.0) == []
    affinity.settle("acme", "model", "w1", 1000.0, 10.0)
    assert affinity.expire(1010.0) == [("acme", "model", "w1")]


def test_a_task_that_ends_on_a_worker_without_the_key_changes_nothing() -> None:
    affinity = table("model")
    affinity.settle("acme", "model", "w2", 99.0, 100.0)
    affinity.settle("acme", "unknown", "w1", 99.0, 100.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.inflight, record.expires_at) == (0, 100.0)


def test_releasing_one_key_leaves_the_others_of_its_worker() -> None:
    affinity = table("a", "b")
    affinity.release("acme", "a")
    affinity.check()
    assert affinity.lookup("acme", "a") is None
    assert affinity.lookup("acme", "b") is not None
    affinity.release("acme", "unknown")
    assert len(affinity) == 1


def test_the_keys_of_a_lost_worker_wait_for_it_for_the_grace_and_no_longer() -> None:
    affinity = table("model")
    affinity.mark_stale("acme", "w1", 40.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.state, record.expires_at) == ("stale", 40.0)
    assert affinity.expire(39.0) == []
    assert affinity.expire(40.0) == [("acme", "model", "w1")]


def test_the_grace_never_makes_a_key_live_longer() -> None:
    affinity = table("model", ttl_s=5.0)
    affinity.mark_stale("acme", "w1", 30.0)
    assert affinity.expire(5.0) == [("acme", "model", "w1")]


def test_a_stale_key_ends_with_the_last_task_that_uses_it() -> None:
    affinity = AffinityTable()
    affinity.acquire("acme", "model", "w1", 0.0, 100.0)
    affinity.mark_stale("acme", "w1", 30.0)
    assert affinity.expire(30.0) == []
    affinity.check()
    affinity.settle("acme", "model", "w1", 32.0, 100.0)
    assert affinity.deadline() == 30.0
    assert affinity.expire(32.0) == [("acme", "model", "w1")]
    affinity.check()


def test_the_end_of_a_task_does_not_make_a_stale_key_live_longer() -> None:
    affinity = AffinityTable()
    affinity.acquire("acme", "model", "w1", 0.0, 3600.0)
    affinity.mark_stale("acme", "w1", 30.0)
    affinity.settle("acme", "model", "w1", 20.0, 3600.0)
    assert affinity.expire(29.0) == []
    assert affinity.expire(30.0) == [("acme", "model", "w1")]


def test_a_key_that_a_stored_lease_uses_waits_for_its_worker() -> None:
    affinity = AffinityTable()
    affinity.expect("acme", "model", "w1", 0.0, 30.0)
    affinity.expect("acme", "model", "w1", 0.0, 30.0)
    affinity.expect("acme", "model", "w2", 0.0, 30.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.worker_id, record.state, record.inflight) == ("w1", "stale", 2)
    affinity.revive("acme", "w1", 10.0, 100.0)
    assert (record.state, record.expires_at) == ("active", 110.0)
    affinity.check()


def test_a_worker_that_comes_back_in_time_has_its_keys_again() -> None:
    affinity = table("model", "other")
    affinity.mark_stale("acme", "w1", 40.0)
    affinity.acquire("acme", "other", "w1", 15.0, 100.0)
    affinity.revive("acme", "w1", 20.0, 100.0)
    states = {
        key: (record.state, record.expires_at)
        for key in ("model", "other")
        if (record := affinity.lookup("acme", key)) is not None
    }
    assert states == {"model": ("active", 120.0), "other": ("active", 115.0)}
    affinity.check()


def test_losing_and_reviving_a_worker_without_keys_does_nothing() -> None:
    affinity = table("model")
    affinity.mark_stale("acme", "w9", 30.0)
    affinity.revive("acme", "w9", 0.0, 30.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert record.state == "active"


def test_a_stored_key_goes_before_what_a_restored_lease_has_made_of_it() -> None:
    affinity = AffinityTable()
    assert affinity.acquire("acme", "model", "w2", 0.0, 100.0)
    affinity.restore("acme", "model", "w1", 0.0, 5.0)
    affinity.check()
    assert affinity.keys_of("acme", "w2") == []
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.worker_id, record.state, record.inflight) == ("w1", "stale", 0)


def test_a_stored_key_keeps_the_tasks_that_use_it() -> None:
    affinity = AffinityTable()
    assert affinity.acquire("acme", "model", "w1", 0.0, 100.0)
    affinity.restore("acme", "model", "w1", 0.0, 5.0)
    record = affinity.lookup("acme", "model")
    assert record is not None
    assert (record.state, record.inflight, record.expires_at) == ("stale", 1, 5.0)


def test_a_key_is_watched_once_however_often_it_is_used() -> None:
    affinity = AffinityTable()
    for now in range(1000):
        affinity.acquire("acme", "model", "w1", float(now), 100.0)
        affinity.settle("acme", "model", "w1", float(now), 100.0)
        assert affinity.expire(float(now)) == []
        affinity.check()
    assert len(affinity._ends) == 1
    assert affinity.expire(1098.9) == []
    assert affinity.expire(1099.0) == [("acme", "model", "w1")]
    assert affinity.deadline() is None


def test_keys_that_live_cost_nothing_when_others_end() -> None:
    affinity = table(*(f"long-{number}" for number in range(1000)), ttl_s=1000.0)
    affinity.acquire("acme", "short", "w1", 0.0, 5.0)
    affinity.settle("acme", "short", "w1", 0.0, 5.0)
    assert affinity.deadline() == 5.0
    assert affinity.expire(5.0) == [("acme", "short", "w1")]
    # None of the others was looked at: each would have been watched anew.
    assert affinity.deadline() == 1000.0
    assert len(affinity) == 1000
    affinity.check()


def test_a_key_that_was_released_and_had_again_has_a_time_of_its_own() -> None:
    affinity = table("model", ttl_s=10.0)
    affinity.release("acme", "model")
    affinity.acquire("acme", "model", "w2", 5.0, 10.0)
    affinity.settle("acme", "model", "w2", 5.0, 10.0)
    assert affinity.expire(10.0) == []
    assert affinity.expire(15.0) == [("acme", "model", "w2")]
