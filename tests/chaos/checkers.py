"""What must hold after a run, each as a function that returns every way in which it does not."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from astraflow.core.ids import RunId
from astraflow.core.workflow import core_manifest
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.ended_runs import EndedRuns
from astraflow.scheduler.plans import Plans
from astraflow.store import open_store
from astraflow.store.store import HOME_SHARD, Store
from tests.chaos.shapes import place_of
from tests.chaos.truth import Line
from tests.chaos.workload import TERMINAL, Told

__all__ = [
    "accepted_twice",
    "answered_otherwise",
    "check_database",
    "check_store",
    "events_are_complete",
    "lost_runs",
    "made_otherwise",
    "not_terminal",
    "not_undone",
    "overlapping",
    "results_without_truth",
    "started_after_cancel",
    "started_twice",
    "went_back",
]

Truth = Mapping[str, Sequence[Line]]
ENDED = frozenset({"succeeded", "failed", "skipped", "cancelled"})
_ORDER = {"queued": 0, "running": 1, "succeeded": 2, "failed": 2, "cancelled": 2}


def lost_runs(told: Iterable[Told]) -> list[str]:
    """P1: what was accepted is there."""
    return [f"{one.run_id}: {problem}" for one in told for problem in one.problems]


def not_terminal(told: Iterable[Told]) -> list[str]:
    """P2: every accepted run has ended."""
    return [
        f"{one.run_id} is {one.views[-1]['status'] if one.views else 'unseen'}"
        for one in told
        if not one.views or one.views[-1]["status"] not in TERMINAL
    ]


def started_twice(truth: Truth) -> list[str]:
    """P5: an attempt starts at most once, in one process."""
    found = []
    for key, lines in truth.items():
        starts = Counter(line.attempt for line in lines if line.word == "start")
        found += [f"{key} attempt {at}: {n} starts" for at, n in starts.items() if n > 1]
    return found


def overlapping(truth: Truth) -> list[str]:
    """P8: all that an attempt did was before anything that a later one did."""
    found = []
    for key, lines in truth.items():
        spans: dict[int, tuple[int, int]] = {}
        for line in lines:
            first, last = spans.get(line.attempt, (line.ns, line.ns))
            spans[line.attempt] = min(first, line.ns), max(last, line.ns)
        for (one, (_, end)), (other, (begin, _)) in combinations(sorted(spans.items()), 2):
            if end > begin:
                found.append(
                    f"{key}: attempt {one} lived {(end - begin) / 1e6:.1f} ms into {other}"
                )
    return found


def results_without_truth(told: Iterable[Told], truth: Truth) -> list[str]:
    """What is shown as succeeded was done, by the attempt that is shown, and its result is that attempt's."""
    return [problem for one in told if one.views for problem in _unproved(one, truth)]


def _unproved(told: Told, truth: Truth) -> Iterator[str]:
    for node in told.items:
        if node["type"] == "core.python" and place_of(node) not in told.keys:
            yield f"{told.run_id}: nobody knows the place {place_of(node)}"
    for node in (*told.views[-1]["nodes"], *told.items):
        key = told.keys.get(place_of(node))
        if node["nodeId"] in told.asks.wrapped and node["status"] == "succeeded":
            yield from _unproved_call(told, node, truth)
        if key is None or node["status"] != "succeeded":
            continue
        ended = [line.attempt for line in truth.get(key, ()) if line.word == "end"]
        if node["attempt"] not in ended:
            yield f"{told.run_id} {key}: attempt {node['attempt']} accepted, {ended} ended"
        result_of = node.get("result_of")
        if result_of not in (None, (None, None), (key, node["attempt"])):
            yield f"{told.run_id} {key}: attempt {node['attempt']} shows the result of {result_of}"


def _unproved_call(told: Told, node: dict[str, Any], truth: Truth) -> Iterator[str]:
    """The result that came through a middleware is that of one of the calls."""
    key, attempt = node["result_of"]
    begins = told.asks.wrapped[node["nodeId"]]
    ended = [line.attempt for line in truth.get(str(key), ()) if line.word == "end"]
    if not str(key).startswith(begins) or attempt not in ended:
        yield f"{told.run_id} {begins}: the result of {key} attempt {attempt}, {ended} ended"


def answered_otherwise(told: Iterable[Told]) -> list[str]:
    """What a node waited for is what it was told."""
    found = []
    for one in told:
        wanted: dict[str, Any] = {
            node: {"name": name} for node, name in one.asks.signals.items()
        } | one.asks.approvals
        for node in one.views[-1]["nodes"] if one.views else ():
            if node["nodeId"] not in wanted or node["status"] != "succeeded":
                continue
            if node["told"] != wanted[node["nodeId"]]:
                found.append(f"{one.run_id} {node['nodeId']} was told {node['told']}")
    return found


def not_undone(told: Iterable[Told]) -> list[str]:
    """What succeeded in a run that did not is undone; in one that did, nothing is."""
    found = []
    for one in told:
        if not one.views:
            continue
        status = one.views[-1]["status"]
        nodes = {node["nodeId"]: node["status"] for node in one.views[-1]["nodes"]}
        for done, undo in one.asks.undone_by.items():
            is_wanted = status in ("failed", "cancelled") and nodes[done] == "succeeded"
            if is_wanted == (nodes[undo] == "skipped"):
                found.append(f"{one.run_id} is {status}: {done} {nodes[done]}, {nodes[undo]}")
    return found


def accepted_twice(told: Iterable[Told]) -> list[str]:
    """P6: one outcome a node, and nothing after it."""
    return [problem for one in told for problem in _second_outcomes(one)]


def _second_outcomes(told: Told) -> Iterator[str]:
    over: dict[str, str] = {}
    for event in told.events:
        if event["type"] != "node.state":
            continue
        node, status = place_of(event["data"]), event["data"]["status"]
        if node in over:
            yield f"{told.run_id} {node}: {status} after {over[node]} (event {event['id']})"
        if status in ENDED:
            over[node] = status


def started_after_cancel(told: Iterable[Told], truth: Truth) -> tuple[list[str], int]:
    """P9: after a cancel is answered no attempt is issued. What was under way may still arrive; it is counted."""
    found, late = [], 0
    for one in told:
        if one.cancelled_ns is None:
            continue
        issued = _issued_before_cancel(one)
        undoes = set(one.asks.undone_by.values())
        for node, key in one.keys.items():
            if node in undoes:
                continue  # a cancel begins it
            for line in truth.get(key, ()):
                if line.word != "start" or line.ns <= one.cancelled_ns:
                    continue
                if (node, line.attempt) in issued:
                    late += 1
                else:
                    found.append(f"{one.run_id} {key}: attempt {line.attempt} after its cancel")
    return found, late


def _issued_before_cancel(told: Told) -> set[tuple[str, int]]:
    """Attempts whose dispatch is in the log before the cancel; the order of the log is the order of commits."""
    issued: set[tuple[str, int]] = set()
    for event in told.events:
        body = event["data"]
        if event["type"] == "run.status" and body.get("cancelRequested"):
            break
        if event["type"] == "node.state" and body["status"] == "dispatched":
            issued.add((place_of(event["data"]), body["attempt"]))
    return issued


def went_back(told: Iterable[Told]) -> list[str]:
    """Statuses that were shown never went back, attempts never fell."""
    return [problem for one in told for problem in _steps_back(one)]


def _steps_back(told: Told) -> Iterator[str]:
    for before, after in pairwise(told.views):
        old, new = before["status"], after["status"]
        if _ORDER[new] < _ORDER[old] or (old in TERMINAL and new != old):
            yield f"{told.run_id}: {old}, then {new}"
        if after["lastEvent"] < before["lastEvent"]:
            yield f"{told.run_id}: event {before['lastEvent']}, then {after['lastEvent']}"
        nodes = {node["nodeId"]: node for node in before["nodes"]}
        for node in after["nodes"]:
            was = nodes[node["nodeId"]]
            if node["attempt"] < was["attempt"]:
                yield f"{told.run_id} {node['nodeId']}: attempt {was['attempt']} fell"
            if was["status"] in ENDED and node["status"] != was["status"]:
                yield f"{told.run_id} {node['nodeId']}: {was['status']}, then {node['status']}"


def events_are_complete(told: Iterable[Told]) -> list[str]:
    """P17: 1..n, no gap, no repeat, and they fold to what REST shows."""
    return [problem for one in told if one.is_over for problem in _stream_problems(one)]


def _stream_problems(told: Told) -> Iterator[str]:
    numbers = [event["id"] for event in told.events]
    if numbers != list(range(1, len(numbers) + 1)):
        wrong = next(at for at, number in enumerate(numbers, 1) if number != at)
        yield f"{told.run_id}: event {numbers[wrong - 1]} in place of {wrong}"
        return
    view = told.views[-1]
    if view["lastEvent"] != len(numbers):
        yield f"{told.run_id}: {len(numbers)} events, REST says {view['lastEvent']}"
    status: str | None = None
    nodes: dict[str, tuple[str, int]] = {}
    for event in told.events:
        body: dict[str, Any] = event["data"]
        if event["type"] == "run.status":
            status = body["status"]
        elif event["type"] == "node.state":
            place = place_of(event["data"])
            attempt = body.get("attempt") or nodes.get(place, ("", 0))[1]
            nodes[place] = (body["status"], attempt)
    if status != view["status"]:
        yield f"{told.run_id}: the events end {status}, REST says {view['status']}"
    for node in view["nodes"]:
        if node.get("parent") is not None or node.get("chainIndex") is not None:
            continue  # one word for what may be many; events have each item and each call
        shown = (node["status"], node["attempt"])
        if nodes.get(node["nodeId"], ("pending", 0)) != shown:
            folded = nodes.get(node["nodeId"])
            yield f"{told.run_id} {node['nodeId']}: events give {folded}, REST {shown}"


def check_database(path: Path) -> list[str]:
    """The file itself, as SQLite sees it."""
    link = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        answers = [row[0] for row in link.execute("PRAGMA integrity_check")]
    finally:
        link.close()
    return [] if answers == ["ok"] else answers


def made_otherwise(told: Iterable[tuple[str, str]], stored: Iterable[tuple[str, str]]) -> list[str]:
    """P3: one run for each idempotency key. Both: the tenants and ids of runs, as clients were told, one for each key
    they used, and as they are in the store."""
    counts = Counter(told)
    found = [f"{run_id} of {tenant}: {n} keys" for (tenant, run_id), n in counts.items() if n > 1]
    there = set(stored)
    found += [f"{run_id} of {tenant} is in no store" for tenant, run_id in counts.keys() - there]
    found += [f"{run_id} of {tenant} is of no key" for tenant, run_id in there - counts.keys()]
    return found


async def check_store(
    url: str, told: Iterable[Told], shards: Sequence[int] = (HOME_SHARD,)
) -> list[str]:
    """Opened afresh and folded: everything is over, and nothing is leased."""
    store = open_store(url)
    await store.open()
    try:
        ended_runs = EndedRuns(store, Plans(store, Catalogs([core_manifest()])))
        found = [problem for shard in shards for problem in await _active(store, shard)]
        for one in told:
            row = await store.find_run(one.tenant, RunId(one.run_id))
            if row is None:
                found.append(f"{one.run_id} is not in the store")
                continue
            run = await ended_runs.run(row)
            if one.views and row.status != one.views[-1]["status"]:
                found.append(f"{one.run_id}: {row.status} in the store")
            found += [
                f"{one.run_id} task {at} is leased in the store"
                for at, task in enumerate(run.tasks)
                if task.is_held
            ]
        return found
    finally:
        await store.close()


async def _active(store: Store, shard: int) -> list[str]:
    if shard == HOME_SHARD:
        rows = await store.active_runs()
    else:
        other = store.of_shard(shard)
        await other.open()
        rows = await other.active_runs()
        await other.close()
    return [f"{row.run_id} is active in the store" for row in rows]
