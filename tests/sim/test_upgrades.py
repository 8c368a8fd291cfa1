"""Worlds with nodes of two releases: sound, repeatable, and quick to notice what would break an upgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from astraflow.core.cluster import upgrades
from tests.sim.upgrades import (
    UpgradeNode,
    UpgradeProcess,
    UpgradeSimulation,
    missing_in_upgrades,
    simulate_upgrade,
)

SEEDS = 16
ENOUGH_SEEDS = 30


def test_no_world_of_two_releases_breaks_an_invariant() -> None:
    seen: dict[str, int] = {}
    for seed in range(SEEDS):
        outcome = simulate_upgrade(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"
        for what, times in outcome.seen.items():
            seen[what] = seen.get(what, 0) + times
    assert missing_in_upgrades(seen) == []


def test_the_same_seed_is_the_same_world_of_two_releases() -> None:
    assert simulate_upgrade(3).digest == simulate_upgrade(3).digest


@contextmanager
def _all(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def _written_at_once() -> Any:
    """The later release does not ask whether it may write. Its row writer notices."""
    return patch.object(UpgradeProcess, "may_write", lambda _: True)


def _written_at_once_and_not_checked() -> Any:
    """Nor does its row writer look: it is stored where the earlier release will read it."""
    return _all(_written_at_once(), patch.object(UpgradeProcess, "check_facts", lambda *_: None))


def _raised_for_the_newest() -> Any:
    """The owner of the home shard does not wait for nodes of the earlier release, and the store does not look again."""

    def newest(nodes: Any) -> int | None:
        return max((node.facts_version for node in nodes), default=None)

    return _all(
        patch.object(upgrades, "read_by_all", newest),
        patch.object(UpgradeSimulation, "is_too_early", lambda *_: False),
    )


def _raised_without_a_second_look() -> Any:
    """A node that joins between the decision and the transaction is overlooked."""
    return patch.object(UpgradeSimulation, "is_too_early", lambda *_: False)


def _claimed_by_who_reads_less() -> Any:
    """A node that was away does not compare what it reads with what is written."""
    return patch.object(UpgradeNode, "has_ended_for_reading_less", lambda _: False)


PLANTED: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "writtenatonce": (_written_at_once, {"crash"}),
    "writtenunchecked": (_written_at_once_and_not_checked, {"I50"}),
    "raisedfornewest": (_raised_for_the_newest, {"I50"}),
    "raisedblindly": (_raised_without_a_second_look, {"I50"}),
    "claimedblindly": (_claimed_by_who_reads_less, {"I50"}),
}


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_bug_of_upgrades_is_caught(name: str) -> None:
    plant, caught_by = PLANTED[name]
    for seed in range(ENOUGH_SEEDS):
        with plant():
            violation = simulate_upgrade(seed).violation
        if violation is not None:
            assert violation.invariant in caught_by, f"{name}, seed {seed}: {violation}"
            assert violation.invariant == "I50" or "UnreadableFact" in str(violation)
            print(f"{name}: seed {seed}, {violation}")
            return
    pytest.fail(f"{name} was not noticed in {ENOUGH_SEEDS} seeds")
