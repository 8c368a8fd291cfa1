"""Worlds of several nodes: sound, repeatable, and quick to notice what would break them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from astraflow.core.cluster import shards as rules
from astraflow.core.cluster.parking import Parking, parking_of
from astraflow.core.cluster.shards import NodeSeen, ShardSeen, Shares
from tests.sim.cluster import ShardStore, simulate_cluster
from tests.sim.config import Config

ENOUGH_SEEDS = 60


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_world_of_nodes_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + 10):
        outcome = simulate_cluster(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


def test_the_world_of_a_planted_bug_is_sound_without_it() -> None:
    for name, (_, _, fields) in PLANTED.items():
        for seed in (12, 13) if fields else ():
            violation = simulate_cluster(seed, Config(seed=seed, **fields)).violation
            assert violation is None, f"{name}, seed {seed}: {violation}"


def test_the_same_seed_is_the_same_world() -> None:
    assert simulate_cluster(3).digest == simulate_cluster(3).digest


@contextmanager
def _one_fence_for_all_shards() -> Iterator[None]:
    """I21: a commit that does not name its shard meets the epoch of another."""

    def is_stale(self: ShardStore, epoch: int) -> bool:
        return epoch < min(one.shard.epoch for one in self.cluster.shards)

    with patch.object(ShardStore, "is_stale", is_stale):
        yield


@contextmanager
def _a_claim_that_outlasts_the_leases() -> Iterator[None]:
    """I17: an owner that may speak for so long keeps its workers at work while the next one gives it away."""
    with patch.object(ShardStore, "LEASE_TTL_S", 60.0):
        yield


@contextmanager
def _shards_that_are_given_for_one_less() -> Iterator[None]:
    """I39: two nodes of which one has a shard more change places for ever."""
    with patch.object(rules, "UNEVEN", 1), patch.object(rules, "KEEP_S", 1.0):
        yield


@contextmanager
def _ranks_that_change_with_each_look() -> Iterator[None]:
    """I39: a shard is for the node that was not seen for longest, which is another one all the time."""

    ages: dict[str, float] = {}

    def taker_of(self: Shares, seen: ShardSeen) -> str | None:
        return max(self.counts, key=lambda name: ages[name], default=None)

    def worth(self: Shares, seen: ShardSeen, steady: Container[str]) -> tuple[int, int]:
        return (0, int(self.taker_of(seen) not in (None, seen.owner)))

    def begin(self: Shares, nodes: list[NodeSeen], shards: list[ShardSeen]) -> None:
        ages.update((node.node_id, node.seen_s) for node in nodes)
        init(self, nodes, shards)

    init = Shares.__init__
    with patch.multiple(Shares, __init__=begin, taker_of=taker_of, _worth=worth):
        yield


@contextmanager
def _only_the_first_claims() -> Iterator[None]:
    """I39: of a first node that has ended, and is still seen, nobody takes the shard."""

    def staying(nodes: list[NodeSeen]) -> list[NodeSeen]:
        return sorted(nodes, key=lambda node: node.node_id)[:1]

    with patch.object(rules, "staying", staying), patch.object(rules, "ORPHAN_S", 1e9):
        yield


@contextmanager
def _a_shard_that_is_never_parked() -> Iterator[None]:
    """I52: what its work does to one node it does to all, for ever."""
    with patch.object(rules, "parking_of", lambda losses: "open"):
        yield


@contextmanager
def _a_shard_that_is_never_withheld() -> Iterator[None]:
    """I52: it is not what the shard places that ends its nodes."""

    def at_most_parked(losses: tuple[float, ...]) -> Parking:
        return "open" if parking_of(losses) == "open" else "parked"

    with patch.object(rules, "parking_of", at_most_parked):
        yield


LONG: dict[str, Any] = {"workers": 3, "runs": 6, "tasks": 6, "handlers": ("long", "ok")}
"""Attempts that outlast a lease, and workers that find the next owner because their connection is cut."""
PLANTED: dict[str, tuple[Callable[[], Any], set[str], dict[str, Any]]] = {
    "onefence": (_one_fence_for_all_shards, {"I21"}, {}),
    "longclaim": (
        _a_claim_that_outlasts_the_leases,
        {"I17"},
        {**LONG, "faults": ("cut",), "fault_phase_s": 90.0},
    ),
    "unevenbyone": (_shards_that_are_given_for_one_less, {"I39"}, {}),
    "flaprank": (_ranks_that_change_with_each_look, {"I39"}, {}),
    "neverparked": (_a_shard_that_is_never_parked, {"I52"}, {}),
    "neverwithheld": (_a_shard_that_is_never_withheld, {"I52"}, {}),
    "onlyfirst": (_only_the_first_claims, {"I39", "I24"}, {}),
}


RARE = {"longclaim": 80}
"""Where to begin with what only one of some fifty worlds shows."""


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_bug_of_nodes_is_caught(name: str) -> None:
    plant, caught_by, fields = PLANTED[name]
    first = RARE.get(name, 0)
    for seed in range(first, first + ENOUGH_SEEDS):
        config = Config(seed=seed, **fields) if fields else None
        with plant():
            violation = simulate_cluster(seed, config).violation
        if violation is not None and violation.invariant in caught_by:
            print(f"{name}: seed {seed}, {violation}")
            return
    pytest.fail(f"{name} was not noticed in {ENOUGH_SEEDS} seeds")
