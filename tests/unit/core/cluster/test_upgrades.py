from __future__ import annotations

from astraflow.core.cluster.shards import NodeSeen
from astraflow.core.cluster.upgrades import KNOWN_S, FactsRaise, read_by_all


def node(facts: int, seen_s: float = 0.0) -> NodeSeen:
    return NodeSeen(f"n{facts}", "", seen_s, 100.0, facts_version=facts)


def test_all_read_what_the_node_reads_that_reads_least() -> None:
    assert read_by_all([]) is None
    assert read_by_all([node(3), node(2)]) == 2
    assert read_by_all([node(3), node(0)]) == 0, "its release does not say"


def test_a_node_counts_until_it_was_not_seen_for_a_minute() -> None:
    assert read_by_all([node(3), node(1, KNOWN_S)]) == 1
    assert read_by_all([node(3), node(1, KNOWN_S + 0.1)]) == 3
    assert read_by_all([node(1, KNOWN_S + 0.1)]) is None


def test_the_version_is_raised_when_all_have_read_more_for_a_while() -> None:
    rule = FactsRaise(10.0)
    assert rule.decide([node(2), node(1)], 1, 0.0) is None
    assert rule.decide([node(2), node(2)], 1, 5.0) is None
    assert rule.decide([node(2), node(2)], 1, 14.9) is None
    assert rule.decide([node(2), node(2)], 1, 15.0) == 2
    assert rule.decide([node(2), node(2)], 2, 15.3) is None


def test_a_node_of_the_release_before_that_comes_back_begins_the_wait_anew() -> None:
    rule = FactsRaise(10.0)
    assert rule.decide([node(2)], 1, 0.0) is None
    assert rule.decide([node(2), node(1)], 1, 9.0) is None
    assert rule.decide([node(2)], 1, 10.0) is None
    assert rule.decide([node(2)], 1, 20.0) == 2


def test_each_version_has_its_own_wait() -> None:
    rule = FactsRaise(10.0)
    assert rule.decide([node(2), node(3)], 1, 0.0) is None
    assert rule.decide([node(3), node(3)], 1, 9.0) is None
    assert rule.decide([node(3), node(3)], 1, 18.9) is None
    assert rule.decide([node(3), node(3)], 1, 19.0) == 3


def test_the_version_never_falls_and_may_be_raised_at_once() -> None:
    rule = FactsRaise(0.0)
    assert rule.decide([node(1)], 2, 0.0) is None
    assert rule.decide([node(2)], 2, 0.0) is None
    assert rule.decide([node(5)], 2, 0.0) == 5
