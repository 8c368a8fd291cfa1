"""Every target keeps its contract on what is known, on 2,000 changed inputs, and under atheris."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.mutation import mutants
from tests.fuzz.targets import KEPT, TARGETS, kept
from tests.processes.process import ROOT

INPUTS = 2_000


@pytest.mark.parametrize("name", TARGETS)
def test_known_inputs_are_accepted_or_refused_as_documented(name: str) -> None:
    inputs = [*TARGETS[name].seeds(), *kept(name)]
    assert inputs
    for value in inputs:
        TARGETS[name].run(value)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_are_accepted_or_refused_as_documented(name: str) -> None:
    corpus = [*TARGETS[name].seeds(), *kept(name)]
    seen = set()
    for value in itertools.islice(mutants(corpus, Random(name)), INPUTS):
        TARGETS[name].run(value)
        seen.add(value)
    assert len(seen) > INPUTS / 2, "the inputs must differ"


@pytest.mark.parametrize("name", TARGETS)
def test_the_fuzzer_itself_runs(name: str, tmp_path: Path) -> None:
    is_guided = importlib.util.find_spec("atheris") is not None
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz", name, "--seconds", "20", "--runs", "500"),
            *("--keep", str(tmp_path / "keep"), "--work", str(tmp_path / "work")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wanted = "stat::number_of_executed_units" if is_guided else "500 inputs, no finding"
    assert wanted in answer.stdout + answer.stderr


def test_the_same_seed_makes_the_same_inputs() -> None:
    corpus = TARGETS["codec"].seeds()
    one = list(itertools.islice(mutants(corpus, Random(7)), 50))
    assert one == list(itertools.islice(mutants(corpus, Random(7)), 50))
    assert one != list(itertools.islice(mutants(corpus, Random(8)), 50))


def test_findings_are_kept_by_target() -> None:
    assert {path.name for path in KEPT.iterdir() if path.is_dir()} <= set(TARGETS)
