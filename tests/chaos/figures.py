"""The numbers of a run: how much was done, what was done to it, how long recovery took."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.chaos.nemesis import Kill
from tests.chaos.supervisor import Boot
from tests.chaos.truth import Line
from tests.chaos.workload import Told

__all__ = ["Figures", "measure", "percentile"]


@dataclass
class Figures:
    runs: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    events: int = 0
    resumes: int = 0
    late_starts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    restarts_s: list[float] = field(default_factory=list)
    redispatches_s: list[float] = field(default_factory=list)

    def lines(self) -> Iterable[str]:
        yield f"runs accepted          {self.runs}  ({_counted(self.statuses)})"
        yield f"nodes done             {sum(self.nodes.values())}  ({_counted(self.nodes)})"
        yield f"failures by code       {_counted(self.codes)}"
        yield f"attempts started       {self.attempts}"
        yield f"events read            {self.events}, streams resumed {self.resumes} times"
        yield f"starts under way when their cancel was answered  {self.late_starts}"
        yield f"faults                 {_counted(self.faults)}"
        yield f"restart to dispatch    {_spread(self.restarts_s)}"
        yield f"kill to redispatch     {_spread(self.redispatches_s)}"


def measure(
    told: Sequence[Told],
    truth: Mapping[str, Sequence[Line]],
    counts: Counter[str],
    kills: Sequence[Kill],
    boots: Sequence[Boot],
) -> Figures:
    figures = Figures(faults=Counter(counts))
    for one in told:
        figures.runs += 1
        figures.events += len(one.events)
        figures.resumes += one.resumes
        if not one.views:
            continue
        figures.statuses[one.views[-1]["status"]] += 1
        for node in one.views[-1]["nodes"]:
            figures.nodes[node["status"]] += 1
            if node["status"] == "failed" and node["error"]:
                figures.codes[node["error"]["code"]] += 1
    figures.attempts = sum(line.word == "start" for lines in truth.values() for line in lines)
    figures.restarts_s = _restarts(boots, told)
    figures.redispatches_s = _redispatches(kills, truth)
    return figures


def _restarts(boots: Sequence[Boot], told: Sequence[Told]) -> list[float]:
    """From the start of a scheduler's process to the first lease that it commits."""
    dispatched = sorted(
        _wall_ms(event["occurredAt"])
        for one in told
        for event in one.events
        if event["type"] == "node.state" and event["data"]["status"] == "dispatched"
    )
    starts = [boot.wall_ms for boot in boots if boot.name.startswith("scheduler")]
    found = []
    for at, start in enumerate(starts):
        place = bisect_left(dispatched, start)
        until = starts[at + 1] if at + 1 < len(starts) else float("inf")
        if place < len(dispatched) and dispatched[place] < until:
            found.append((dispatched[place] - start) / 1000)
    return found[1:]  # the first start had nothing to take up


def _redispatches(kills: Sequence[Kill], truth: Mapping[str, Sequence[Line]]) -> list[float]:
    """From the end of an attempt's host to the start of the next attempt."""
    found = []
    for lines in truth.values():
        starts = {line.attempt: line for line in lines if line.word == "start"}
        over = {line.attempt for line in lines if line.word in ("end", "raise")}
        for attempt, line in starts.items():
            after = starts.get(attempt + 1)
            if attempt in over or after is None:
                continue
            causes = [
                kill.at_ns
                for kill in kills
                if line.pid in kill.host_pids and line.ns <= kill.at_ns <= after.ns
            ]
            if causes:
                found.append((after.ns - causes[0]) / 1e9)
    return found


def _wall_ms(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1000


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "not seen"
    half, most = percentile(values, 0.5), percentile(values, 0.99)
    return f"p50 {half:.2f} s, p99 {most:.2f} s ({len(values)} times)"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
