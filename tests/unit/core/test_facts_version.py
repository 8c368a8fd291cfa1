from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from astraflow.core.facts_version import (
    FACTS_VERSION,
    FIRST_FACTS,
    HeldBackFacts,
    UnreadableFact,
    VersionedFact,
)
from astraflow.core.fleet.facts import Announced
from astraflow.core.runs.facts import RunStarted, decode_fact, encode_fact

NEXT = FACTS_VERSION + 1


class MovedFact(Announced, frozen=True):
    facts_version: ClassVar[int] = NEXT


class NamedFact(Announced, frozen=True):
    newer_fields: ClassVar[Mapping[str, int]] = {"place": NEXT, "note": NEXT + 1, "marks": NEXT + 1}
    place: str = ""
    note: str | None = None
    marks: Mapping[str, int] = {}


def held_back(written: int, *facts: VersionedFact) -> str:
    try:
        HeldBackFacts(written).check(facts)
    except UnreadableFact as error:
        return error.message.rpartition(": ")[2]
    return ""


def test_the_facts_of_this_release_need_no_other_version_than_its_own() -> None:
    kinds = [VersionedFact]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ours = [kind for kind in kinds if kind.__module__.startswith("astraflow.")]
    assert len(ours) > 30
    for kind in ours:
        needed = {kind.facts_version, *kind.newer_fields.values()}
        assert needed <= set(range(FIRST_FACTS, FACTS_VERSION + 1)), kind
        assert set(kind.newer_fields) <= set(kind.__struct_fields__), kind


def test_a_newer_type_is_held_back_until_its_version_is_written() -> None:
    moved = MovedFact("acme", 1, "moved", b"{}")
    assert held_back(FACTS_VERSION, RunStarted(1), moved) == "MovedFact"
    assert held_back(NEXT, RunStarted(1), moved) == ""
    assert held_back(0, RunStarted(1)) == "RunStarted"


@pytest.mark.parametrize(
    ("place", "note", "marks", "needed"),
    [
        ("", None, {}, 0),
        ("here", None, {}, NEXT),
        ("", "", {}, NEXT + 1),
        ("", None, {"a": 1}, NEXT + 1),
        ("here", "x", {"a": 1}, NEXT + 1),
    ],
)
def test_a_newer_field_is_held_back_unless_it_says_nothing(
    place: str, note: str | None, marks: dict[str, int], needed: int
) -> None:
    fact = NamedFact("acme", 1, "named", b"{}", place, note, marks)
    for written in range(FACTS_VERSION, NEXT + 3):
        assert bool(held_back(written, fact)) == (written < needed)


def test_what_is_held_back_is_known_before_any_fact() -> None:
    assert HeldBackFacts(FACTS_VERSION), "the types above"
    assert not HeldBackFacts(NEXT + 1)


def test_how_a_fact_is_stored_does_not_say_its_version() -> None:
    stored = encode_fact(RunStarted(7))
    assert stored == b'{"fact":"run.started","at":7}'
    assert decode_fact(stored) == RunStarted(7)
