"""Worlds of lanes: sound, repeatable, and quick to notice what would break them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest

from astraflow.core.agent.slots import SlotDivision
from astraflow.core.engine.lanes import LaneTable
from tests.sim import lanes
from tests.sim.config import Config
from tests.sim.lanes import simulate_lanes

ENOUGH_SEEDS = 60


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_world_of_lanes_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + 20):
        outcome = simulate_lanes(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


def test_the_same_seed_is_the_same_world() -> None:
    assert simulate_lanes(3).digest == simulate_lanes(3).digest


def _slots_that_are_given_before_they_are_free() -> AbstractContextManager[Any]:
    """I46: a lane gets a slot that another one may still use."""
    return patch.multiple(
        SlotDivision, _possible=lambda self, lane: lane.goal, check=lambda self: None
    )


def _hunger_that_is_told_once() -> AbstractContextManager[Any]:
    """I47: what was told on a connection that is gone is not told again."""

    def is_news(self: LaneTable, tenant: str, worker_id: str, hunger: Any) -> bool:
        told: dict[str, Any] = self._told.setdefault("once", {})
        last, told[worker_id] = told.get(worker_id), hunger
        return last is None or (last.tasks == 0) != (hunger.tasks == 0)

    return patch.object(LaneTable, "is_news", is_news)


def _keys_in_every_lane() -> AbstractContextManager[Any]:
    """I48: a run with a concurrency key goes to any lane."""
    return patch.object(lanes, "needs_home", lambda plan: False)


def _installs_by_every_lane() -> AbstractContextManager[Any]:
    """I49: each lane has installed what its tasks lack."""
    return patch.object(LaneTable, "is_home", lambda self, tenant: True)


BUSY: dict[str, Any] = {"workers": 2, "runs": 8, "tasks": 8, "slots": 2, "handlers": ("ok", "slow")}
PLANTED: dict[str, tuple[Callable[[], AbstractContextManager[Any]], set[str], dict[str, Any]]] = {
    "earlyslots": (_slots_that_are_given_before_they_are_free, {"I46"}, BUSY),
    "hungeronce": (
        _hunger_that_is_told_once,
        {"I47", "I24"},
        {**BUSY, "faults": ("cut",), "fault_phase_s": 20.0, "slots": 4, "runs": 30},
    ),
    "keysanywhere": (_keys_in_every_lane, {"I48"}, {**BUSY, "keyed": True}),
    "installsanywhere": (_installs_by_every_lane, {"I49"}, BUSY),
}


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_the_world_of_a_planted_bug_is_sound_without_it(name: str) -> None:
    _, _, fields = PLANTED[name]
    for seed in (12, 13):
        violation = simulate_lanes(seed, Config(seed=seed, **fields)).violation
        assert violation is None, f"seed {seed}: {violation}"


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_bug_of_lanes_is_caught(name: str) -> None:
    plant, caught_by, fields = PLANTED[name]
    for seed in range(ENOUGH_SEEDS):
        with plant():
            violation = simulate_lanes(seed, Config(seed=seed, **fields)).violation
        if violation is not None and violation.invariant in caught_by:
            print(f"{name}: seed {seed}, {violation}")
            return
    pytest.fail(f"{name} was not noticed in {ENOUGH_SEEDS} seeds")
