"""Every slot starts at most one run, whenever the scheduler dies; with catch-up of all times, exactly one."""

from __future__ import annotations

from itertools import count

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.triggers.decisions import due, next_due, ready
from astraflow.core.triggers.fires import key_of
from astraflow.core.triggers.record import FireStarted, TriggerFact, TriggerRecord, fold
from astraflow.core.workflow.definition import CronTrigger
from astraflow.core.workflow.schedules import Schedule

START = 1_774_742_400_000  # 2026-03-29T00:00:00Z, an hour before a change of the clocks
CHANGES = (START, 1_792_886_400_000, 1_775_311_200_000)


class World:
    """What survives a crash: the row of the trigger, and the runs by their keys."""

    def __init__(self, record: TriggerRecord) -> None:
        self.record = record
        self.runs: dict[str, str] = {}
        self.started: list[int] = []
        self._ids = count(1)

    def commit(self, facts: list[TriggerFact]) -> None:
        for fact in facts:
            self.record = fold(self.record, fact)

    def submit(self, key: str, slot: int) -> str:
        if key not in self.runs:
            self.runs[key] = f"run-{next(self._ids)}"
            self.started.append(slot)
        return self.runs[key]

    def turn(self, at: int, crash: int, *, is_active: bool = False) -> None:
        """One turn of the scheduler, which dies at this point of it; 0: it does not."""
        facts = due(self.record, at, is_active=is_active)
        if crash == 1:
            return
        self.commit(facts)
        if crash == 2:
            return
        for place, fire in enumerate(ready(self.record, is_active=is_active)):
            record = self.record
            key = key_of(record.workflow_id, record.name, fire.slot)
            run_id = self.submit(key, fire.scheduled_at)
            if crash == 3 + place:
                return
            who = (record.tenant, at, record.workflow_id, record.name)
            self.commit([FireStarted(*who, fire, run_id)])


def trigger(spec: CronTrigger, at: int) -> TriggerRecord:
    return TriggerRecord(
        tenant="t", workflow_id="w", name="n", spec=spec, since=at, created_at=at, updated_at=at
    )


SPECS = st.builds(
    CronTrigger,
    expression=st.sampled_from(
        ["* * * * *", "*/10 * * * *", "30 2 * * *", "0 2,3 * * *", "15 * * * *", "*/20 * * * * *"]
    ),
    time_zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    jitter_seconds=st.sampled_from([0.0, 30.0, 600.0]),
    overlap=st.sampled_from(["allow", "skip", "queue"]),
    catch_up=st.sampled_from(["none", "last", "all"]),
    max_catch_up=st.sampled_from([1, 3, 1_000]),
)
TURNS = st.lists(
    st.tuples(st.integers(1, 5_400), st.integers(0, 6), st.booleans()), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(SPECS, st.sampled_from(CHANGES), TURNS)
def test_a_slot_starts_at_most_one_run(
    spec: CronTrigger, start: int, turns: list[tuple[int, int, bool]]
) -> None:
    world = World(trigger(spec, start))
    at = start
    for passed_s, crash, is_active in turns:
        at += passed_s * 1000
        world.turn(at, crash, is_active=is_active)
    assert len(world.started) == len(set(world.started))
    times = set(Schedule(spec.expression, spec.time_zone).newest(start, at, 4_000))
    assert set(world.started) <= times
    assert all(slot <= at for slot in world.started)


@settings(max_examples=40, deadline=None)
@given(SPECS, st.sampled_from(CHANGES), TURNS)
def test_with_catch_up_of_all_each_slot_starts_one_run(
    spec: CronTrigger, start: int, turns: list[tuple[int, int, bool]]
) -> None:
    spec = msgspec.structs.replace(spec, catch_up="all", max_catch_up=1_000, overlap="allow")
    world = World(trigger(spec, start))
    at = start
    for passed_s, crash, _ in turns:
        at += passed_s * 1000
        world.turn(at, crash)
    at += int(spec.jitter_seconds * 1000)
    while (looked := next_due(world.record)) is not None and looked <= at:
        world.turn(at, 0)
    world.turn(at, 0)
    bound = at - int(spec.jitter_seconds * 1000)
    schedule = Schedule(spec.expression, spec.time_zone)
    expected = schedule.newest(start, bound, 4_000)
    started = sorted(world.started)
    assert started[: len(expected)] == expected
    assert len(started) == len(set(started))
    assert not world.record.pending
