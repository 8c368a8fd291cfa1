"""Bringing a version to all workers, in waves."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.dispatch.rollout import Health, Rollout, Standing, Step, advance

GOOD = Health(100, 0)


def rollout(**fields: Any) -> Rollout:
    given: dict[str, Any] = {
        "rollout_id": "r1",
        "tenant": "acme",
        "name": "text",
        "version": "2.0",
        "waves": (25, 100),
        "soak_seconds": 10.0,
        **fields,
    }
    return Rollout(**given)


def workers(count: int, having: int = 0, **fields: Any) -> list[Standing]:
    return [Standing(f"w{index}", index < having, **fields) for index in range(count)]


def test_the_first_wave_is_a_share_of_the_workers_always_the_same_ones() -> None:
    shuffled = list(reversed(workers(8)))
    step = advance(rollout(), 0, shuffled, Health())
    assert step == Step(rollout(), ("w0", "w1"))


def test_a_share_of_a_few_is_at_least_one() -> None:
    assert advance(rollout(), 0, workers(1), Health()).install_on == ("w0",)


def test_what_is_under_way_is_not_asked_for_again() -> None:
    assert advance(rollout(), 0, workers(8, is_wished=True), Health()).install_on == ()


def test_a_wave_that_has_it_must_be_good_for_its_time() -> None:
    standing = workers(8, having=2)
    first = advance(rollout(), 1_000, standing, GOOD).rollout
    assert (first.good_since, first.wave) == (1_000, 0)
    assert advance(first, 10_999, standing, GOOD).rollout is first
    second = advance(first, 11_000, standing, GOOD).rollout
    assert (second.good_since, second.wave) == (None, 1)
    assert advance(second, 11_001, standing, GOOD).install_on == tuple(f"w{i}" for i in range(2, 8))


def test_after_the_last_wave_the_version_becomes_active() -> None:
    last = rollout(wave=1, good_since=0)
    step = advance(last, 10_000, workers(8, having=8), GOOD)
    assert (step.rollout.state, step.activate) == ("succeeded", True)


def test_a_worker_that_comes_to_a_good_wave_without_it_makes_it_wait() -> None:
    waiting = rollout(wave=1, good_since=0)
    step = advance(waiting, 20_000, workers(9, having=8), GOOD)
    assert (step.rollout.good_since, step.install_on, step.activate) == (None, ("w8",), False)


def test_without_workers_it_waits() -> None:
    assert advance(rollout(), 0, [], Health()) == Step(rollout())


def test_a_worker_that_cannot_install_it_ends_the_rollout() -> None:
    failed = [Standing("w0", False, failure="no such wheel")]
    step = advance(rollout(), 5, failed, Health())
    assert step.rollout.state == "failed"
    assert step.rollout.error == "worker w0 could not install it: no such wheel"
    assert not step.activate


def test_a_failure_outside_the_wave_does_not_count_yet() -> None:
    standing = [*workers(4, having=1), Standing("w9", False, failure="later")]
    assert advance(rollout(), 0, standing, GOOD).rollout.state == "running"


def test_attempts_that_fail_too_often_end_the_rollout() -> None:
    step = advance(rollout(), 5, workers(4, having=1), Health(10, 2))
    assert step.rollout.error == "2 of 10 attempts of the version failed"
    assert advance(rollout(), 5, workers(4, having=1), Health(10, 1)).rollout.state == "running"


def test_a_rollout_is_stored_and_read_back_as_it_is() -> None:
    one = rollout(previous="1.0", good_since=7, error="x")
    assert msgspec.json.decode(msgspec.json.encode(one), type=Rollout) == one
