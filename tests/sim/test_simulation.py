"""The simulator in the test run: a few hundred worlds, the same world twice, and the worlds that once failed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.sim.config import Config, draw
from tests.sim.demo import demo
from tests.sim.features import FEATURES, missing_pairs, pair
from tests.sim.simulation import simulate
from tests.sim.sometimes import SOMETIMES, missing

SEEDS = Path(__file__).parent / "seeds"
ROOT = Path(__file__).parent.parent.parent


def test_a_calm_world_does_all_its_work() -> None:
    config = Config(seed=3, workers=2, runs=3, tasks=5)
    outcome = simulate(3, config)
    assert outcome.violation is None
    assert outcome.executions == 15


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_world_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + 50):
        outcome = simulate(seed)
        assert outcome.violation is None, f"{outcome.config.describe()}: {outcome.violation}"


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_world_that_once_failed_does_not_fail_again(path: Path) -> None:
    saved = json.loads(path.read_text())
    fields: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in saved["config"].items()
    }
    outcome = simulate(fields["seed"], Config(**fields))
    assert outcome.violation is None, f"{saved['was']}: {outcome.violation}"


def test_the_same_seed_gives_the_same_world_in_every_process() -> None:
    """Two processes with different hash seeds, and this one, agree to the last line."""
    program = "from tests.sim.simulation import simulate; print(simulate(7).digest)"
    digests = set()
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    digests.add(simulate(7).digest)
    assert len(digests) == 1


def test_another_seed_gives_another_world() -> None:
    assert simulate(7).digest != simulate(8).digest


def test_the_demo_tells_a_run_that_survives() -> None:
    told = io.StringIO()
    assert demo(told) == 0
    lines = told.getvalue().splitlines()
    assert any("kill -9 of the scheduler" in line for line in lines)
    assert any("its lease ended" in line for line in lines)
    assert lines[-1].endswith("the run has succeeded; every line above was committed first")


def test_what_was_not_seen_is_named() -> None:
    everything = dict.fromkeys(SOMETIMES.values(), 1)
    assert missing(everything) == []
    del everything["session resumed"]
    assert missing(everything) == ["S1 a session resumed"]


def test_each_seed_switches_off_about_half_of_the_faults() -> None:
    counts = [len(draw(seed).faults) for seed in range(200)]
    assert min(counts) < 7 < sum(counts) / len(counts) < 14 < max(counts)


def test_a_pair_of_features_that_did_not_meet_is_named() -> None:
    everything = {pair(*two): 1 for two in combinations(FEATURES, 2)}
    assert missing_pairs(everything) == []
    del everything[pair("rebuilds", "calls")]
    assert missing_pairs(everything) == ["pair: calls and rebuilds"]


def test_a_world_of_features_has_those_and_the_faults_that_they_need() -> None:
    worlds = [one for one in map(draw, range(200)) if one.features]
    assert 25 <= len(worlds) <= 75
    for one in worlds:
        assert 2 <= len(one.features) <= 4
        assert one.chains == ("calls" in one.features)
        assert one.has("evict") or "rebuilds" not in one.features
