from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.cluster.shards import (
    GIVE_EVERY_S,
    KEEP_S,
    LATE_S,
    LIVE_S,
    ORPHAN_S,
    STEADY_S,
    UNEVEN,
    Moves,
    NodeSeen,
    ShardMoves,
    ShardSeen,
    Shares,
)

LOOK_S = 0.25


def seen(*names: str, up_s: float = 100.0, **fields: object) -> list[NodeSeen]:
    return [NodeSeen(name, f"http://{name}", 0.0, up_s, **fields) for name in names]  # type: ignore[arg-type]


def free(shard: int, owner: str = "") -> ShardSeen:
    return ShardSeen(shard, owner, True)


def owned(shard: int, owner: str, *tenants: str) -> ShardSeen:
    return ShardSeen(shard, owner, False, frozenset(tenants))


def first(shard: int, *names: str) -> str:
    return Shares(seen(*names), [free(shard)]).takers[shard]


def test_free_shards_are_divided_evenly_and_all_nodes_agree() -> None:
    names = [f"node-{number}" for number in range(5)]
    shards = [free(shard) for shard in range(16)]
    found = Shares(seen(*names), shards)
    assert sorted(found.counts.values()) == [3, 3, 3, 3, 4]
    again = Shares(reversed(seen(*names)), reversed(shards))
    assert (again.takers, again.counts) == (found.takers, found.counts)


def test_what_a_node_leaves_goes_to_those_with_the_fewest() -> None:
    shards = [owned(0, "a"), owned(1, "a"), owned(2, "b"), free(3, "gone"), free(4, "gone")]
    assert Shares(seen("a", "b", "c"), shards).takers == {3: "c", 4: first(4, "b", "c")}


def test_two_lanes_are_on_two_nodes() -> None:
    for one in range(16):
        for other in range(one):
            assert len(set(Shares(seen("a", "b"), [free(one), free(other)]).takers.values())) == 2


def test_a_free_shard_is_claimed_by_the_first_at_once_and_by_another_later() -> None:
    nodes = seen("a", "b")
    winner, other = (first(1, "a", "b"), next(n for n in "ab" if n != first(1, "a", "b")))
    assert ShardMoves(winner).decide(nodes, [free(1)], 10.0).claim == {1}
    late = ShardMoves(other)
    assert late.decide(nodes, [free(1)], 10.0).claim == set()
    assert late.decide(nodes, [free(1)], 10.0 + ORPHAN_S).claim == {1}


def test_a_withheld_shard_is_nobodys_and_a_parked_one_is_like_any_other() -> None:
    nodes = seen("a", "b")
    parked = ShardSeen(1, "gone", True, losses=(0.0, 1.0, 2.0))
    withheld = ShardSeen(2, "gone", True, losses=(0.0, 1.0, 2.0, 3.0))
    claims: set[int] = set()
    for name in ("a", "b"):
        moves = ShardMoves(name)
        moves.decide(nodes, [parked, withheld], 0.0)
        claims |= moves.decide(nodes, [parked, withheld], 10 * ORPHAN_S).claim
    assert claims == {1}


def test_a_shard_that_is_not_withheld_any_more_is_claimed_as_if_it_had_just_become_free() -> None:
    nodes = seen("a", "b")
    winner, other = (first(1, "a", "b"), next(n for n in "ab" if n != first(1, "a", "b")))
    for name, wanted in ((winner, {1}), (other, set())):
        moves = ShardMoves(name)
        moves.decide(nodes, [ShardSeen(1, "", True, losses=(0.0,) * 4)], 0.0)
        assert moves.decide(nodes, [free(1)], 10 * ORPHAN_S).claim == wanted


def placed(shard: int, owner: str, at: str, *, is_free: bool = False) -> ShardSeen:
    return ShardSeen(shard, owner, is_free, place=f"http://{at}")


def gives(name: str, nodes: list[NodeSeen], shards: list[ShardSeen], after_s: float) -> int | None:
    moves = ShardMoves(name)
    moves.decide(nodes, shards, 0.0)
    return moves.decide(nodes, shards, after_s).give


def test_a_placed_shard_goes_to_its_node_at_once_and_stays_there() -> None:
    nodes = seen("a", "b")
    assert gives("a", nodes, [placed(1, "a", "b")], GIVE_EVERY_S) == 1
    crowd = [placed(shard, "b", "b") for shard in range(5)]
    assert gives("b", nodes, crowd, 10 * KEEP_S) is None, "whatever the others have"
    assert gives("b", nodes, [*crowd, owned(9, "b"), owned(10, "b")], 10 * KEEP_S) in (9, 10)
    for name, wanted in (("a", set()), ("b", {1})):
        free_one = placed(1, "a", "b", is_free=True)
        assert ShardMoves(name).decide(nodes, [free_one], 0.0).claim == wanted


def test_a_placed_shard_is_served_by_others_while_its_node_is_gone_or_leaves() -> None:
    gone = [*seen("a"), NodeSeen("b", "http://b", LIVE_S + 1, 100.0)]
    leaving = [*seen("a"), *seen("b", is_leaving=True)]
    for nodes in (seen("a"), gone, leaving):
        free_one = placed(1, "b", "b", is_free=True)
        assert ShardMoves("a").decide(nodes, [free_one], 0.0).claim == {1}
        assert gives("a", nodes, [placed(1, "a", "b")], 10 * KEEP_S) is None


def test_a_node_that_comes_and_goes_gets_its_placed_shard_once_a_minute() -> None:
    nodes = [*seen("a"), *seen("b", up_s=STEADY_S)]
    assert gives("a", nodes, [placed(1, "a", "b")], KEEP_S / 2) is None
    assert gives("a", nodes, [placed(1, "a", "b")], KEEP_S) == 1


def test_a_shard_that_was_owned_between_two_looks_is_not_an_orphan() -> None:
    nodes = seen("a", "b")
    other = next(n for n in "ab" if n != first(1, "a", "b"))
    moves = ShardMoves(other)
    moves.decide(nodes, [free(1)], 0.0)
    moves.decide(nodes, [owned(1, "a")], 1.0)
    assert moves.decide(nodes, [free(1)], ORPHAN_S).claim == set()


def test_who_owned_a_free_shard_last_is_not_its_first_while_others_live() -> None:
    winner = first(1, "a", "b")
    other = next(n for n in "ab" if n != winner)
    assert ShardMoves(other).decide(seen("a", "b"), [free(1, winner)], 0.0).claim == {1}
    assert ShardMoves(winner).decide(seen("a", "b"), [free(1, winner)], 0.0).claim == set()
    assert ShardMoves(winner).decide(seen(winner), [free(1, winner)], 0.0).claim == {1}


def test_a_dead_or_leaving_node_is_first_of_nothing() -> None:
    winner = first(1, "a", "b")
    other = next(n for n in "ab" if n != winner)
    dead = [NodeSeen(winner, "", LIVE_S + 0.1, 100.0), *seen(other)]
    leaving = [*seen(winner, is_leaving=True), *seen(other)]
    for nodes in (dead, leaving):
        assert ShardMoves(other).decide(nodes, [free(1)], 0.0).claim == {1}


def test_a_node_that_leaves_or_is_late_is_going_until_it_is_dead() -> None:
    states = [NodeSeen("a", "", age, 100.0) for age in (0.0, LATE_S, LATE_S + 0.1, LIVE_S + 0.1)]
    assert [one.is_going for one in states] == [False, False, True, False]
    assert seen("a", is_leaving=True)[0].is_going


def test_a_node_that_leaves_claims_nothing() -> None:
    moves = ShardMoves("a").decide(seen("a"), [free(1)], 0.0, is_leaving=True)
    assert moves == Moves()


def test_an_owner_gives_back_one_shard_at_a_time_to_a_node_that_stays() -> None:
    mine = [owned(shard, "a") for shard in range(4)]
    moves = ShardMoves("a")
    assert moves.decide(seen("a"), mine, 0.0).give is None
    young = [*seen("a"), *seen("b", up_s=STEADY_S - 1)]
    assert moves.decide(young, mine, KEEP_S).give is None
    nodes = seen("a", "b")
    assert moves.decide(nodes, mine, KEEP_S).give == 0
    left = [owned(0, "b"), *mine[1:]]
    assert moves.decide(nodes, left, KEEP_S + GIVE_EVERY_S / 2).give is None
    assert moves.decide(nodes, left, KEEP_S + GIVE_EVERY_S).give == 1
    left = [owned(0, "b"), owned(1, "b"), *mine[2:]]
    assert moves.decide(nodes, left, KEEP_S + 3 * GIVE_EVERY_S).give is None, "it is even"


def test_one_of_the_fullest_gives_and_not_for_one_shard_less() -> None:
    shards = [owned(0, "a"), owned(1, "a"), owned(2, "b"), owned(3, "b"), owned(4, "c")]
    for name in "abc":
        moves = ShardMoves(name)
        moves.decide(seen("a", "b", "c"), shards, 0.0)
        assert moves.decide(seen("a", "b", "c"), shards, KEEP_S).give is None
    assert UNEVEN == 2
    given = {}
    for name in "abc":
        moves = ShardMoves(name)
        moves.decide(seen("a", "b", "c"), shards[:4], 0.0)
        given[name] = moves.decide(seen("a", "b", "c"), shards[:4], KEEP_S).give
    assert given == {"a": 0, "b": None, "c": None}


def test_a_lane_goes_to_a_node_without_one_of_its_tenant_even_if_that_has_more_shards() -> None:
    shards = [owned(0, "a", "acme"), owned(1, "b"), owned(2, "b"), owned(3, "b")]
    lane = ShardSeen(4, "", True, frozenset({"acme"}))
    assert Shares(seen("a", "b"), [*shards, lane]).takers == {4: "b"}


def given_by(name: str, nodes: list[NodeSeen], shards: list[ShardSeen]) -> int | None:
    moves = ShardMoves(name)
    moves.decide(nodes, shards, 0.0)
    return moves.decide(nodes, shards, KEEP_S).give


def test_lanes_of_one_tenant_are_moved_apart_although_shards_are_even() -> None:
    shards = [owned(0, "a"), owned(1, "a"), owned(2, "b", "acme"), owned(3, "b", "acme")]
    assert given_by("b", seen("a", "b"), shards) == 2
    assert given_by("a", seen("a", "b"), shards) is None
    apart = [owned(0, "a"), owned(1, "a"), owned(2, "a", "acme"), owned(3, "b", "acme")]
    assert given_by("a", seen("a", "b"), apart) == 0, "now b has fewer"
    even = [owned(0, "b"), *apart[1:]]
    assert [given_by(name, seen("a", "b"), even) for name in "ab"] == [None, None]


def test_lanes_are_not_put_together_to_have_as_many_shards() -> None:
    shards = [owned(0, "a", "acme"), owned(1, "a", "globex"), owned(2, "a", "initech")]
    lanes = [owned(3, "b", "acme", "globex", "initech")]
    assert given_by("a", seen("a", "b"), [*shards, *lanes]) is None


def test_nothing_is_given_to_a_node_that_has_just_come() -> None:
    shards = [owned(2, "b", "acme"), owned(3, "b", "acme")]
    young = [*seen("b"), *seen("a", up_s=STEADY_S - 1)]
    assert given_by("b", young, shards) is None


def test_a_shard_that_was_just_taken_is_kept() -> None:
    mine = [owned(shard, "a") for shard in range(3)]
    moves = ShardMoves("a")
    for at in range(int(KEEP_S)):
        assert moves.decide(seen("a", "b"), mine, float(at)).give is None


class World:
    """Nodes that look at one store, with what each sees a little old. The store decides who gets a shard."""

    def __init__(self, rng: Random, names: list[str], shards: int) -> None:
        self.rng = rng
        self.tenants = {
            shard: frozenset(rng.sample(("acme", "globex"), rng.choice((0, 0, 1, 1, 2))))
            for shard in range(shards)
        }
        self.now = 0.0
        self.alive = {name: ShardMoves(name) for name in names}
        self.started = dict.fromkeys(names, -100.0)
        self.seen_at = dict.fromkeys(names, 0.0)
        self.owner = dict.fromkeys(range(shards), "")
        self.free_since: dict[int, float] = dict.fromkeys(range(shards), 0.0)
        self.moved: list[tuple[float, int]] = []

    def step(self) -> None:
        self.now += LOOK_S
        for name in self.rng.sample(sorted(self.alive), len(self.alive)):
            if self.rng.random() < 0.1:
                continue  # it looks later
            self.seen_at[name] = self.now
            nodes = [
                NodeSeen(one, "", self.now - at, self.now - self.started[one])
                for one, at in self.seen_at.items()
            ]
            shards = [
                ShardSeen(shard, owner, shard in self.free_since, self.tenants[shard])
                for shard, owner in self.owner.items()
            ]
            moves = self.alive[name].decide(nodes, shards, self.now)
            for shard in moves.claim:
                if shard in self.free_since:
                    del self.free_since[shard]
                    self.owner[shard] = name
                    self.moved.append((self.now, shard))
            if moves.give is not None and self.owner[moves.give] == name:
                self.free_since[moves.give] = self.now

    def kill(self, name: str) -> None:
        del self.alive[name]
        for shard, owner in self.owner.items():
            if owner == name:
                self.free_since.setdefault(shard, self.now)

    def start(self, name: str) -> None:
        self.alive[name] = ShardMoves(name)
        self.started[name] = self.now
        self.seen_at[name] = self.now


def lanes_together(owners: dict[int, str], tenants: dict[int, frozenset[str]]) -> int:
    """How many pairs of lanes of one tenant are on one node."""
    lanes = Counter((tenant, owner) for one, owner in owners.items() for tenant in tenants[one])
    return sum(count * (count - 1) // 2 for count in lanes.values())


def assert_divided(world: World) -> None:
    """No single move makes it better."""
    counts = Counter(world.owner.values())
    together = lanes_together(world.owner, world.tenants)
    for shard, owner in world.owner.items():
        for node in world.alive:
            moved = lanes_together(world.owner | {shard: node}, world.tenants)
            assert moved >= together
            assert moved > together or counts[owner] - counts[node] < UNEVEN


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4), shards=st.integers(1, 16))
def test_every_shard_has_an_owner_soon_and_none_moves_without_a_reason(
    seed: int, count: int, shards: int
) -> None:
    world = World(Random(seed), [f"n{number}" for number in range(count)], shards)
    for _ in range(int(10 / LOOK_S)):
        world.step()
    assert not world.free_since
    dead = world.rng.choice(sorted(world.alive)) if count > 1 else None
    if dead is not None:
        world.kill(dead)
    for _ in range(int(10 / LOOK_S)):
        world.step()
    assert not world.free_since, "a shard without an owner while a node lives"
    if dead is not None:
        world.start(f"{dead}-again")
    for _ in range(int(300 / LOOK_S)):
        world.step()
    settled = len(world.moved)
    assert_divided(world)
    for _ in range(int(120 / LOOK_S)):
        world.step()
    assert len(world.moved) == settled, "a shard moved although nothing had failed"
    for shard in range(shards):
        last = [at for at, moved in world.moved if moved == shard]
        steady = [b - a for a, b in pairwise(last) if a > 20]
        assert all(gap >= KEEP_S for gap in steady)
