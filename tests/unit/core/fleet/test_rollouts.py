"""Bringing a version to all workers, in waves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.fleet.facts import NoTransition
from astraflow.core.fleet.rollouts import (
    RolloutFailed,
    RolloutRecord,
    RolloutRolledBack,
    RolloutStarted,
    RolloutStep,
    RolloutSucceeded,
    RolloutTable,
    RolloutWaveGood,
    RolloutWaveInterrupted,
    RolloutWaveStarted,
    WorkerStanding,
    advance,
    fold,
)
from astraflow.core.fleet.rollouts import RolloutHealth as Health

GOOD = Health(100, 0)


def rollout(**fields: Any) -> RolloutRecord:
    given: dict[str, Any] = {
        "rollout_id": "r1",
        "tenant": "acme",
        "name": "text",
        "version": "2.0",
        "waves": (25, 100),
        "soak_seconds": 10.0,
        **fields,
    }
    return RolloutRecord(**given)


def workers(count: int, having: int = 0, **fields: Any) -> list[WorkerStanding]:
    return [WorkerStanding(f"w{index}", index < having, **fields) for index in range(count)]


def test_the_first_wave_is_a_share_of_the_workers_always_the_same_ones() -> None:
    shuffled = list(reversed(workers(8)))
    step = advance(rollout(), 0, shuffled, Health())
    assert step == RolloutStep(None, ("w0", "w1"))


def test_a_share_of_a_few_is_at_least_one() -> None:
    assert advance(rollout(), 0, workers(1), Health()).install_on == ("w0",)


def test_what_is_under_way_is_not_asked_for_again() -> None:
    assert advance(rollout(), 0, workers(8, is_installing=True), Health()).install_on == ()


def test_a_wave_that_has_it_must_be_good_for_its_time() -> None:
    standing = workers(8, having=2)
    good = advance(rollout(), 1_000, standing, GOOD).fact
    assert good == RolloutWaveGood("acme", 1_000, "text")
    first = fold(rollout(), good)
    assert (first.good_since, first.wave) == (1_000, 0)
    assert advance(first, 99_999, standing, GOOD, 9.999).fact is None
    started = advance(first, 11_000, standing, GOOD, 10.0).fact
    assert started == RolloutWaveStarted("acme", 11_000, "text", 1)
    second = fold(first, started)
    assert (second.good_since, second.wave) == (None, 1)
    assert advance(second, 11_001, standing, GOOD).install_on == tuple(f"w{i}" for i in range(2, 8))


def test_after_the_last_wave_the_version_becomes_active() -> None:
    last = rollout(wave=1, good_since=0)
    step = advance(last, 10_000, workers(8, having=8), GOOD, 10.0)
    assert step.fact == RolloutSucceeded("acme", 10_000, "text")
    assert fold(last, step.fact).state == "succeeded"


def test_a_worker_that_comes_to_a_good_wave_without_it_makes_it_wait() -> None:
    waiting = rollout(wave=1, good_since=0)
    step = advance(waiting, 20_000, workers(9, having=8), GOOD)
    assert (step.fact, step.install_on) == (RolloutWaveInterrupted("acme", 20_000, "text"), ("w8",))
    assert step.fact is not None and fold(waiting, step.fact).good_since is None


def test_without_workers_it_waits() -> None:
    assert advance(rollout(), 0, [], Health()) == RolloutStep()


def test_a_worker_that_cannot_install_it_ends_the_rollout() -> None:
    failed = [WorkerStanding("w0", False, failure="no such wheel")]
    step = advance(rollout(), 5, failed, Health())
    error = "worker w0 could not install it: no such wheel"
    assert step.fact == RolloutFailed("acme", 5, "text", error)
    assert fold(rollout(), step.fact).state == "failed"


def test_a_failure_outside_the_wave_does_not_count_yet() -> None:
    standing = [*workers(4, having=1), WorkerStanding("w9", False, failure="later")]
    assert not isinstance(advance(rollout(), 0, standing, GOOD).fact, RolloutFailed)


def test_attempts_that_fail_too_often_end_the_rollout() -> None:
    step = advance(rollout(), 5, workers(4, having=1), Health(10, 2))
    assert step.fact == RolloutFailed("acme", 5, "text", "2 of 10 attempts of the version failed")
    fine = advance(rollout(), 5, workers(4, having=1), Health(10, 1))
    assert isinstance(fine.fact, RolloutWaveGood)


def test_a_rollout_is_stored_and_read_back_as_it_is() -> None:
    one = rollout(previous="1.0", good_since=7, error="x")
    assert msgspec.json.decode(msgspec.json.encode(one), type=RolloutRecord) == one


def test_one_rollout_of_a_package_runs_at_a_time_and_ends_once() -> None:
    table = RolloutTable()
    table.apply(RolloutStarted("acme", 0, "text", rollout()))
    with pytest.raises(NoTransition):
        table.apply(RolloutStarted("acme", 0, "text", rollout()))
    table.count_end("acme", "text", "2.0", is_failed=True)
    table.count_end("acme", "text", "1.0", is_failed=True)
    assert table.health_of(rollout()) == Health(1, 1)
    ended = table.apply(RolloutRolledBack("acme", 7, "text", "ann"))
    assert (ended.state, ended.error, ended.updated_at) == (
        "rolled_back",
        "rolled back by ann",
        7,
    )
    assert (len(table), table.find("acme", "text"), list(table)) == (0, None, [])
    with pytest.raises(NoTransition):
        table.apply(RolloutSucceeded("acme", 8, "text"))
