"""Tier C in the test run: the true shells in virtual time, the same world twice, and bugs that must be noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.shells.config import Config, draw, draw_plain
from tests.sim.shells.planted import PLANTED
from tests.sim.shells.simulation import simulate_shells

ROOT = Path(__file__).parent.parent.parent
ENOUGH_SEEDS = 40


def test_a_calm_world_of_shells_does_all_its_work() -> None:
    outcome = simulate_shells(3, Config(seed=3, workers=2, runs=3, tasks=5))
    assert outcome.violation is None
    assert outcome.executions == 15


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_world_of_shells_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + 20):
        outcome = simulate_shells(seed)
        assert outcome.violation is None, f"{outcome.config.describe()}: {outcome.violation}"


@pytest.mark.parametrize(
    ("seed", "was"),
    [
        (20, "a caller that gave up its submission took the origin of the run with it"),
        (239, "a slow start lost its claim, and met a run that another scheduler had ended"),
        (278, "a view was given from an engine whose commit had failed"),
        (477, "a client waited for an engine that had ended"),
        (
            1636,
            "a connection that was closed as it was opened kept its worker from opening another",
        ),
        (42, "a scheduler that was cancelled as its store failed started over"),
    ],
)
def test_a_world_of_shells_that_once_failed_does_not_fail_again(seed: int, was: str) -> None:
    outcome = simulate_shells(seed, draw_plain(seed))
    assert outcome.violation is None, f"{was}: {outcome.violation}"


@pytest.mark.parametrize(
    ("seed", "was"),
    [
        (172, "a version whose publisher gave up was stored and never announced to the engine"),
        (513, "a call waited for a host, and all hosts for calls"),
        (734, "a run waited for a host, and all hosts kept objects for runs"),
        (61, "a worker said after an upload that a resource was there which had gone with it"),
    ],
)
def test_a_world_that_keeps_something_and_once_failed_does_not_fail_again(
    seed: int, was: str
) -> None:
    config = draw(seed)
    assert config.keeps
    outcome = simulate_shells(seed, config)
    assert outcome.violation is None, f"{was}: {outcome.violation}"


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_bug_planted_in_the_shells_is_caught(name: str) -> None:
    planted = PLANTED[name]
    for seed in range(ENOUGH_SEEDS):
        with planted.plant():
            outcome = simulate_shells(seed, planted.config(seed))
        if outcome.violation is not None:
            print(f"{name}: seed {seed}, {outcome.violation.invariant}")
            assert outcome.violation.invariant in planted.caught_by, outcome.violation
            return
    pytest.fail(f"{name} was not noticed in {ENOUGH_SEEDS} seeds")


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_the_same_world_of_shells_without_the_bug_is_sound(name: str) -> None:
    seeds = (
        1 if PLANTED[name].config(0).keeps else 2
    )  # worlds that keep something are large and alike
    for seed in range(seeds):
        outcome = simulate_shells(seed, PLANTED[name].config(seed))
        assert outcome.violation is None, f"{outcome.config.describe()}: {outcome.violation}"


def test_the_same_seed_gives_the_same_world_of_shells_in_every_process() -> None:
    program = (
        "from tests.sim.shells.simulation import simulate_shells as s; "
        "print([s(seed).digest for seed in (1, 2, 7, 20)])"
    )
    digests = set()
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    digests.add(str([simulate_shells(seed).digest for seed in (1, 2, 7, 20)]))
    assert len(digests) == 1
