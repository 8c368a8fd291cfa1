from __future__ import annotations

import re

from astraflow.ulids import Ulids

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.ms = 1_794_727_229_007

    def now(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return self.ms


def test_ids_are_ulids_and_grow() -> None:
    clock = Turned()
    ids = Ulids(clock)
    made = [ids.new() for _ in range(2_000)]
    clock.ms += 1
    made += [ids.new() for _ in range(10)]
    assert all(ULID.fullmatch(one) for one in made)
    assert made == sorted(set(made))


def test_ids_grow_also_when_the_clock_goes_back() -> None:
    clock = Turned()
    ids = Ulids(clock)
    first = ids.new()
    clock.ms -= 60_000
    assert ids.new() > first


def test_two_sources_do_not_give_the_same_id() -> None:
    clock = Turned()
    one, other = Ulids(clock), Ulids(clock)
    assert {one.new() for _ in range(100)}.isdisjoint({other.new() for _ in range(100)})
