"""Nodes that take their host down: the right code for them, another attempt for their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import checkers
from tests.chaos.shapes import python_node
from tests.chaos.supervisor import SHORT
from tests.chaos.truth import read_truth
from tests.definitions import workflow
from tests.processes.rest import Rest
from tests.processes.system import running
from tests.processes.waiting import until

MEMORY_BYTES = 200 * 1024**2


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "truth"
    folder.mkdir()
    yield folder
    assert checkers.started_twice(read_truth(folder)) == []
    assert checkers.overlapping(read_truth(folder)) == []


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Rest]:
    """Of a system with one worker."""
    limit = {"ASTRA_WORKER_HOST_MAX_MEM_BYTES": str(MEMORY_BYTES)}
    with running(tmp_path, 1, environ={**SHORT, **limit}) as system:
        yield system.rest


def _submit(rest: Rest, *nodes: dict[str, Any]) -> str:
    return rest.submit(workflow(*nodes))


def _once(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "retry": {"maxAttempts": 1}}


def _started(truth: Path, *keys: str) -> Callable[[], bool]:
    return lambda: all((truth / key).exists() for key in keys)


def _takes_its_host_down(rest: Rest, truth: Path, act: str, code: str) -> None:
    # They must outlast the bad one on a busy machine: a node that is alone in its host has no second attempt.
    neighbours = [python_node(truth, f"n{at}", "slow", seconds=8.0) for at in range(2)]
    other = _submit(rest, *neighbours)
    until(_started(truth, "n0", "n1"), "both neighbours at work")
    bad = rest.finished(_submit(rest, _once(python_node(truth, "bad", act))))
    (node,) = bad["nodes"]
    assert (node["status"], node["error"]["code"]) == ("failed", code)
    good = rest.finished(other)
    assert [node["status"] for node in good["nodes"]] == ["succeeded"] * 2
    lines = read_truth(truth)
    shared = {line.pid for key in ("n0", "n1", "bad") for line in lines[key] if line.attempt == 1}
    assert len(shared) == 1, "they did not begin in one host"
    alone = [line.pid for line in lines["bad"] if line.attempt == 2 and line.word == "start"]
    others = {line.pid for key in ("n0", "n1") for line in lines[key] if line.attempt == 2}
    assert len(alone) == 1 and alone[0] not in shared | others
    # Lost once with the shared host; the second death was in another host, and touched nobody.
    assert [node["attempt"] for node in good["nodes"]] == [2, 2]
    assert [node["failures"] for node in good["nodes"]] == [0, 0]


def test_a_node_that_segfaults_fails_alone_and_its_neighbours_run_again(
    rest: Rest, truth: Path
) -> None:
    _takes_its_host_down(rest, truth, "segfault", "E.RUNNER.CRASHED")


def test_a_node_that_eats_memory_is_killed_at_the_limit_and_said_so(
    rest: Rest, truth: Path
) -> None:
    _takes_its_host_down(rest, truth, "eat", "E.RUNNER.OOM")


def test_a_node_that_ignores_its_cancel_is_killed_after_its_grace(rest: Rest, truth: Path) -> None:
    other = _submit(rest, python_node(truth, "n0", "slow", seconds=3.0))
    bad = _submit(rest, python_node(truth, "bad", "stubborn", seconds=600.0))
    until(_started(truth, "n0", "bad"), "both at work")
    rest.post(f"runs/{bad}/cancel", wanted=200)
    view = rest.finished(bad)
    assert view["status"] == "cancelled"
    (node,) = view["nodes"]
    assert (node["status"], node["error"]["code"]) == ("failed", "CANCEL_TIMEOUT")
    good = rest.finished(other)
    assert [(one["status"], one["attempt"]) for one in good["nodes"]] == [("succeeded", 2)]
