"""Runs that were accepted lately are followed from memory: whole or not at all, and within a bound."""

from __future__ import annotations

import pytest

from astraflow.core.ids import RunId
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.runs.run import RunRecord
from astraflow.scheduler import tapes as tapes_module
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.tapes import Tapes
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import FactSegment
from tests.unit.plans import AT, make_plan


def record_of(run: str) -> RunRecord:
    return RunRecord(make_plan(1), RunAccepted(AT, RunId(run), "acme", "wf"))


def segment(run: str, first: int, last: int, size: int = 10) -> FactSegment:
    return FactSegment(RunId(run), first, last, b"x" * size)


def test_a_tape_has_all_segments_of_its_run() -> None:
    tapes = Tapes()
    run = record_of("a")
    tapes.begin(run)
    segments = [segment("a", 1, 3), segment("a", 4, 4), segment("a", 5, 9)]
    for one in segments:
        tapes.add(one)
    assert tapes.find(RunId("a"), 0) == segments
    assert tapes.find(RunId("a"), 3) == segments[1:]
    assert tapes.find(RunId("a"), 6) == segments[2:]  # a part of it was seen
    assert tapes.find(RunId("a"), 9) == []
    assert tapes.find_run(RunId("a")) is run
    assert tapes.last_event(RunId("a")) == 9


def test_the_last_event_is_one_that_is_committed() -> None:
    tapes = Tapes()
    run = record_of("a")
    tapes.begin(run)
    assert tapes.last_event(RunId("a")) is None  # its first segment follows
    run.last_event = 7  # the engine is ahead of the store
    tapes.add(segment("a", 1, 3))
    assert tapes.last_event(RunId("a")) == 3


def test_a_run_that_was_not_seen_from_its_beginning_has_none() -> None:
    tapes = Tapes()
    tapes.add(segment("a", 4, 5))
    assert tapes.last_event(RunId("a")) is None
    assert tapes.find(RunId("a"), 0) is None
    assert tapes.find_run(RunId("a")) is None
    assert tapes.bytes == 0


def test_a_run_that_takes_too_much_loses_its_tape() -> None:
    tapes = Tapes()
    tapes.begin(record_of("a"))
    tapes.begin(record_of("b"))
    tapes.add(segment("a", 1, 1, tapes_module.RUN_BYTES))
    tapes.add(segment("b", 1, 1))
    assert tapes.find(RunId("a"), 0) is None
    tapes.add(segment("a", 2, 2))
    assert tapes.find(RunId("a"), 0) is None
    assert tapes.find(RunId("b"), 0) == [segment("b", 1, 1)]


def test_what_was_written_to_the_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tapes = Tapes()
    for name in "abc":
        tapes.begin(record_of(name))
        tapes.add(segment(name, 1, 1))
    monkeypatch.setattr(tapes_module, "ALL_BYTES", tapes.bytes)
    tapes.add(segment("a", 2, 2))
    assert tapes.find(RunId("b"), 0) is None
    assert len(tapes) == 2
    assert tapes.bytes <= tapes_module.ALL_BYTES
    tapes.clear()
    assert (len(tapes), tapes.bytes) == (0, 0)


async def test_nothing_is_held_once_another_scheduler_may_write() -> None:
    feed = Feed(MemoryStore())
    feed.publish([segment("a", 1, 1)], [], [record_of("a")])
    assert await feed.read(RunId("a"), 0, 100) == [segment("a", 1, 1)]
    feed.end()
    feed.begin()
    assert await feed.read(RunId("a"), 0, 100) == []
