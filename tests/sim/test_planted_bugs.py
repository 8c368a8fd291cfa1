"""The test of the test: every planted bug is noticed, by an invariant that speaks of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sim.planted import PLANTED
from tests.sim.simulation import Outcome, simulate

ENOUGH_SEEDS = 250

# Noticed by how often it happens, not by an invariant: see the last test.
_BY_COUNT = frozenset({"tightfence"})


def _first_failure(name: str) -> tuple[int, Outcome] | None:
    planted = PLANTED[name]
    for seed in range(ENOUGH_SEEDS):
        with planted.plant():
            outcome = simulate(seed, planted.config(seed))
        if outcome.violation is not None:
            return seed, outcome
    return None


@pytest.mark.parametrize("name", sorted(set(PLANTED) - _BY_COUNT))
def test_a_planted_bug_is_caught(name: str, record_property: Callable[[str, object], None]) -> None:
    found = _first_failure(name)
    assert found is not None, f"{name} was not noticed in {ENOUGH_SEEDS} seeds"
    seed, outcome = found
    assert outcome.violation is not None
    print(f"{name}: seed {seed}, {outcome.violation}")
    record_property("caught", f"seed {seed}, {outcome.violation.invariant}")
    assert outcome.violation.invariant in PLANTED[name].caught_by, outcome.violation


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_the_same_world_without_the_bug_is_sound(name: str) -> None:
    for seed in range(3):
        config = PLANTED[name].config(seed)
        if name == "tightfence":
            config = config.shrink(lease_s=12.0)
        outcome = simulate(seed, config)
        assert outcome.violation is None, f"{config.describe()}: {outcome.violation}"


def test_a_fence_that_is_too_tight_kills_needlessly() -> None:
    """R14: with a lease of three heartbeats, mere delay makes workers kill their own work."""
    planted = PLANTED["tightfence"]
    kills = {"tight": 0, "right": 0}
    for seed in range(25):
        with planted.plant():
            kills["tight"] += simulate(seed, planted.config(seed)).seen.get("self-fenced", 0)
        config = planted.config(seed).shrink(lease_s=12.0)
        kills["right"] += simulate(seed, config).seen.get("self-fenced", 0)
    assert kills["tight"] > 3 * kills["right"] > 0
