"""The load generator works: a few workers, tasks and readers instead of thousands. What it measures is not asserted."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest
import uvloop

from benchmarks import load
from benchmarks.figures import Figure
from tests.processes.process import ROOT

TINY = load.Sizes(workers=4, tasks=200, readers=3, width=20, runs=3, watched_s=0.2, step_s=120)
TOO_MANY = 10**9
uvloop.new_event_loop().close()  # the first one leaves a pipe of the whole process open


@pytest.fixture(autouse=True)
def _same_limits() -> Iterator[None]:
    """The benchmark raises those of its process."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def by_name(found: list[Figure]) -> dict[str, float]:
    return {figure.name: figure.value for figure in found}


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_every_step_is_done(store: load.StoreKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SESSIONS_A_PROCESS", 1)
    monkeypatch.setattr(load, "READERS_A_PROCESS", 2)
    found = by_name(load.figures(msgspec.structs.replace(TINY, store=store)))
    assert not [name for name in found if "STOPPED" in name]
    for name in (
        *("2 workers: sessions accepted", "4 workers: sessions accepted", "4 workers: idle"),
        *("2 workers: fan-out 1→20→1", "4 workers: fan-out 1→20→1"),
        *("3 readers: an event is seen after, median", "200 waiting tasks: memory of a task"),
        "100 waiting tasks: a submission while they come, 99 of 100",
        *("2 readers: a run of one node, median", "4 workers, at the end: scheduler"),
    ):
        assert name in found, found
    assert found["3 readers: events seen, of all"] == 100
    assert found["200 waiting tasks: the depth that it shows"] == TINY.tasks


def test_a_step_that_takes_too_long_ends_it_and_what_was_found_is_kept() -> None:
    found = by_name(load.figures(load.Sizes(workers=1, watched_s=60, step_s=3)))
    assert found["1 workers: STOPPED, not done in"] == 3
    assert "scheduler, idle" in found
    assert "1 workers: idle" not in found


def test_a_machine_that_allows_too_few_files_is_told_of() -> None:
    command = [sys.executable, "-m", "benchmarks", "load", "--workers", str(TOO_MANY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "files open here, and 1,000,001,256 are needed: raise the limit" in done.stderr
