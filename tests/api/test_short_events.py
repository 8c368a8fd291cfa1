"""The short way to the bytes of an event gives what the long way gives."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.api.short_events import short_bytes
from astraflow.api.shown_segments import event_bytes
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import (
    NO_VALUE,
    AttemptStarted,
    Fact,
    RunAccepted,
    RunFinished,
    RunStarted,
    TaskFact,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from tests.unit.core.runs.examples import FULL_FACTS, places
from tests.unit.plans import AT, make_plan, wrapped

SIMPLE: tuple[TaskFact, ...] = (
    TaskLeased(AT, 0, 1, "w1", 1, 30_000),
    TaskLeased(AT + 7, 1, 2**40, 'w"\\\u2028é', 1, 30_000, "key", "affinity"),
    AttemptStarted(AT, 1, 3),
    TaskSucceeded(AT, 0, 1, msgspec.Raw(b'{"text":"a\\nb","n":1e400}')),
    TaskSucceeded(0, 1, 2, NO_VALUE),
    TaskSucceeded(-1, 0, 1, msgspec.Raw(b"[]"), (), 5),
)

OF_RUNS = (
    RunAccepted(AT, RunId("r"), "acme", "wf"),
    RunStarted(AT),
    RunFinished(AT, "succeeded"),
    RunFinished(AT, "cancelled"),
)


def long_bytes(fact: Fact, first: int, of: TaskPlaces) -> bytes:
    return b"".join(map(event_bytes, events_of(fact, first, of)))


@pytest.mark.parametrize("fact", OF_RUNS, ids=lambda fact: type(fact).__name__)
def test_facts_of_runs_take_the_short_way(fact: Fact) -> None:
    assert short_bytes(fact, 5, places()) == long_bytes(fact, 5, places())


@pytest.mark.parametrize("fact", SIMPLE, ids=lambda fact: type(fact).__name__)
def test_simple_facts_take_the_short_way(fact: TaskFact) -> None:
    plan = make_plan(2, [(0, 1)])
    assert short_bytes(fact, 5, TaskPlaces(plan)) == long_bytes(fact, 5, TaskPlaces(plan))


@pytest.mark.parametrize("fact", FULL_FACTS, ids=lambda fact: type(fact).__name__)
def test_others_take_the_long_way_or_give_the_same(fact: Fact) -> None:
    short = short_bytes(fact, 9, places())
    assert short is None or short == long_bytes(fact, 9, places())


@pytest.mark.parametrize("fact", SIMPLE, ids=lambda fact: type(fact).__name__)
def test_what_is_wrapped_takes_the_long_way(fact: TaskFact) -> None:
    of = TaskPlaces(wrapped(1))
    for task in (0, 1):
        moved = msgspec.structs.replace(fact, task=task)
        short = short_bytes(moved, 9, of)
        assert short is None or short == long_bytes(moved, 9, of)
    assert short_bytes(msgspec.structs.replace(fact, task=0), 9, of) is None
