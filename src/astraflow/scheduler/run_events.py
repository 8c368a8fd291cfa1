"""The events of one run, made from its segments as they come."""

from __future__ import annotations

from collections.abc import Iterable

from astraflow.core.contract.events import Event
from astraflow.core.runs.facts import RunFinished
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from astraflow.scheduler.ended_runs import facts_of
from astraflow.store.rows import FactSegment


class RunEvents:
    """How far one follower of a run has come."""

    __slots__ = ("after", "is_over", "places")

    def __init__(self, places: TaskPlaces, after: int) -> None:
        self.places = places
        self.after = after
        """The number of the last event that was made."""
        self.is_over = False

    def pass_over(self, segment: FactSegment, *, is_over: bool) -> None:
        """The events of the next segment are known from somebody who has the same places."""
        self.after = segment.last
        self.is_over = self.is_over or is_over

    def take(self, segments: Iterable[FactSegment]) -> list[Event]:
        """The events of the next segments, in order; those that were made before are left out."""
        events: list[Event] = []
        fact: object = None
        for numbered in (one for segment in segments for one in facts_of(segment)):
            fact = numbered.fact
            events += events_of(numbered.fact, numbered.first, self.places)
        if events and events[0].id <= self.after:
            events = [event for event in events if event.id > self.after]
        if events:
            self.after = events[-1].id
        self.is_over = self.is_over or isinstance(fact, RunFinished)
        return events
