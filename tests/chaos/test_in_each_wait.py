"""The scheduler is killed in each kind of wait, open and about to end: nothing is lost, nothing doubled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.chaos import checkers
from tests.chaos.nemesis import POINTS
from tests.chaos.shapes import python_node
from tests.chaos.truth import read_truth
from tests.chaos.workload import TERMINAL, Told
from tests.definitions import link, node, workflow
from tests.e2e.chains import by_label
from tests.processes.system import System, running
from tests.processes.waiting import until

HEARTBEAT_MS = 10_000
"""Leases are long: a worker keeps its attempts for 36 s without a scheduler. Two starts of one on a busy machine take
10 s; with shorter leases the worker stops its attempts by itself, as it must, and they run a second time."""
DIES_S = 4.0
"""For a scheduler that is ready to come to its point; one that has nothing to write does not."""

Json = dict[str, Any]
View = dict[str, Json]


@dataclass(frozen=True)
class Kind:
    """Something that a run waits in. Nodes are known by their labels, which are their keys in the truth, too."""

    make: Callable[[Path], Json]
    is_open: Callable[[View, Path], object]
    """Whether a run is in it."""
    ended: Json
    """The statuses at the end."""
    starts: dict[str, int]
    """How often each key was started."""
    run_status: str = "succeeded"
    drive: Callable[[System, str, View], None] | None = None
    """What somebody outside must do; it may be done again."""


def _works(truth: Path, key: str, act: str = "ok", **fields: Any) -> Json:
    inputs = {name: fields.pop(name) for name in ("seconds",) if name in fields}
    return {**python_node(truth, key, act, **inputs), "label": key, "retry": None, **fields}


def _chain(*nodes: Json, more: tuple[Json, ...] = ()) -> Json:
    edges = [link(one, other) for one, other in pairwise(nodes)]
    return workflow(*nodes, *more, edges=edges)


def _has(truth: Path, key: str, word: str = "start") -> bool:
    return any(line.word == word for line in read_truth(truth).get(key, ()))


def _send(system: System, path: str, body: Json, key: str = "") -> None:
    """Once; whoever is killed may not answer."""
    headers = {"Idempotency-Key": key} if key else {}
    with contextlib.suppress(httpx.TransportError):
        answer = system.rest.http.post(f"/api/v1/{path}", json=body, headers=headers)
        assert answer.status_code in (200, 202, 204, 409, 503), answer.text


def _is_waiting(view: View, _: Path) -> bool:
    return view["wait"]["status"] not in ("pending", "succeeded")


def _wait(setting: str, **fields: Any) -> Callable[[Path], Json]:
    def make(truth: Path) -> Json:
        waits = node(f"core.{setting}", "wait", **{setting: fields})
        return _chain(_works(truth, "before"), waits, _works(truth, "after"))

    return make


def _signal(system: System, run_id: str, _: View) -> None:
    _send(system, f"runs/{run_id}/signals/paid", {"payload": {"sum": 5}}, f"paid-{run_id}")


def _approve(system: System, run_id: str, view: View) -> None:
    _send(system, f"runs/{run_id}/nodes/{view['wait']['nodeId']}/approval", {"approved": True})


def _retried(truth: Path) -> Json:
    retry = {"maxAttempts": 3, "backoff": {"initialSeconds": 4, "factor": 1, "jitter": 0}}
    return _chain(_works(truth, "wait", "fail_once", retry=retry), _works(truth, "after"))


def _wrapped(truth: Path) -> Json:
    wrapper = node("core.log_calls", "wrapper")
    host = _works(truth, "host", "slow", seconds=3, middlewares=[wrapper["id"]])
    return _chain(host, _works(truth, "after"), more=(wrapper,))


def _mapped(truth: Path) -> Json:
    each = _works(truth, "=f'item{index}'", "slow", seconds=1, map={"over": "=range(8)"})
    each = {**each, "label": "map", "map": {**each["map"], "concurrency": 3}}
    return _chain(each, _works(truth, "after"))


def _closing(truth: Path) -> Json:
    each = _works(
        truth,
        "=f'item{index}'",
        "=['fail', 'stubborn', 'stubborn', 'ok', 'ok'][index]",
        seconds="=[0, 4, 4, 0, 0][index]",
    )
    over = {"over": "=range(5)", "concurrency": 3, "failurePolicy": "stop"}
    return _chain({**each, "label": "map", "map": over}, _works(truth, "after"))


def _contained(truth: Path) -> Json:
    box = node("core.container", "box")
    first = _works(truth, "first", "slow", seconds=3, parent=box["id"])
    second = _works(truth, "second", parent=box["id"])
    return workflow(box, first, second, after := _works(truth, "after"), edges=[
        link(first, second), link(box, after)
    ])  # fmt: skip


def _undone(truth: Path) -> Json:
    undoes = [_works(truth, f"undo-{name}", "slow", seconds=2) for name in ("one", "two")]
    does = [
        _works(truth, name, onFailure=undo["id"])
        for name, undo in zip(("one", "two"), undoes, strict=True)
    ]
    return _chain(*does, _works(truth, "bad", "fail"), more=tuple(undoes))


ONCE = {"before": 1, "after": 1}
DONE = {"before": "succeeded", "wait": "succeeded", "after": "succeeded"}
KINDS = {
    "time": Kind(_wait("wait", seconds=4), _is_waiting, DONE, ONCE),
    "signal": Kind(_wait("signal", name="paid"), _is_waiting, DONE, ONCE, drive=_signal),
    "approval": Kind(_wait("approval", message="?"), _is_waiting, DONE, ONCE, drive=_approve),
    "retry": Kind(
        _retried,
        lambda view, truth: view["wait"]["failures"] == 1,
        {"wait": "succeeded", "after": "succeeded"},
        {"wait": 2, "after": 1},
    ),
    "next": Kind(
        _wrapped,
        lambda view, truth: _has(truth, "host"),
        {"host": "succeeded", "wrapper": "succeeded", "after": "succeeded"},
        {"host": 1, "after": 1},
    ),
    "map": Kind(
        _mapped,
        lambda view, truth: _has(truth, "item1") and not _has(truth, "item7"),
        {"map": "succeeded", "after": "succeeded"},
        {**{f"item{item}": 1 for item in range(8)}, "after": 1},
    ),
    "map that closes": Kind(
        _closing,
        lambda view, truth: _has(truth, "item0", "raise") and view["map"]["status"] == "running",
        {"map": "failed", "after": "skipped"},
        {f"item{item}": 1 for item in range(3)},
        "failed",
    ),
    "container": Kind(
        _contained,
        lambda view, truth: _has(truth, "first") and not _has(truth, "second"),
        {"box": "succeeded", "first": "succeeded", "second": "succeeded", "after": "succeeded"},
        {"first": 1, "second": 1, "after": 1},
    ),
    "compensation": Kind(
        _undone,
        lambda view, truth: _has(truth, "undo-two") and not _has(truth, "undo-one"),
        {"bad": "failed", "undo-one": "succeeded", "undo-two": "succeeded"},
        {"one": 1, "two": 1, "bad": 1, "undo-one": 1, "undo-two": 1},
        "failed",
    ),
}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1, heartbeat_ms=HEARTBEAT_MS) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", KINDS)
def test_a_scheduler_killed_in_a_wait_loses_and_doubles_nothing(
    system: System, tmp_path: Path, name: str
) -> None:
    died = [_kill_once(system, tmp_path / point, KINDS[name], point) for point in POINTS]
    assert any(died), "no scheduler came to its point"


def _kill_once(system: System, truth: Path, kind: Kind, point: str) -> bool:
    """A run of this kind, with two deaths of the scheduler; whether the second was at the point."""
    truth.mkdir()
    run_id = system.rest.submit(kind.make(truth))
    system.until(lambda: kind.is_open(_nodes(system, run_id), truth), "an open wait")
    died = _die_at(system, point, kind, run_id)
    view = _end(system, kind, run_id)
    _check(system, kind, view, truth, point)
    return died


def _nodes(system: System, run_id: str) -> View:
    return by_label(system.rest.get(f"runs/{run_id}"))


def _die_at(system: System, point: str, kind: Kind, run_id: str) -> bool:
    """One scheduler dies while the wait is open, the next at a named point when it writes or speaks."""
    nodes = _nodes(system, run_id)
    system.scheduler.kill()
    system.scheduler.start(ASTRA_CHAOS_POINT=f"{point}:2")
    until(lambda: not system.scheduler.is_alive() or _is_ready(system), "a scheduler that is ready")
    ends_at = time.monotonic() + DIES_S
    while system.scheduler.is_alive() and time.monotonic() < ends_at:
        if kind.drive is not None and _is_ready(system):
            kind.drive(system, run_id, nodes)
    died = not system.scheduler.is_alive()
    if not died:
        system.scheduler.kill()
    system.start()
    return died


def _is_ready(system: System) -> bool:
    return system.rest.status("/readyz") == 200


def _end(system: System, kind: Kind, run_id: str) -> Json:
    def look() -> Json | None:
        if kind.drive is not None:
            kind.drive(system, run_id, _nodes(system, run_id))
        view: Json = system.rest.get(f"runs/{run_id}")
        return view if view["status"] in TERMINAL else None

    return until(look, f"the end of {run_id}")


def _check(system: System, kind: Kind, view: Json, truth: Path, where: str) -> None:
    lines = read_truth(truth)
    starts = {key: sum(line.word == "start" for line in one) for key, one in sorted(lines.items())}
    nodes = by_label(view)
    assert view["status"] == kind.run_status, (where, view)
    assert {label: nodes[label]["status"] for label in kind.ended} == kind.ended, where
    assert starts == dict(sorted(kind.starts.items())), where
    assert checkers.started_twice(lines) == [], where
    assert checkers.overlapping(lines) == [], where
    told = Told(view["runId"], 0, {}, events=_events(system, view["runId"]), views=[view])
    told.is_over = True
    assert checkers.events_are_complete([told]) == [], where
    assert checkers.accepted_twice([told]) == [], where


def _events(system: System, run_id: str) -> list[Json]:
    with system.rest.http.stream("GET", "/api/v1/events", params={"runId": run_id}) as stream:
        lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in lines]
