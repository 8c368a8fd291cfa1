"""The named points at which a process can be ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from astraflow.chaos import POINTS, VARIABLE, reached_from
from astraflow.core import errors

PROGRAM = """
from astraflow.chaos import reached_from
reached = reached_from({"ASTRA_CHAOS_POINT": "after-commit:3"})
for point in ("after-commit", "before-send", "after-commit", "after-commit"):
    reached(point)
    print(point, flush=True)
"""


def test_without_the_variable_nothing_happens_at_any_point() -> None:
    reached = reached_from({})
    assert [reached(point) for point in POINTS] == [None] * len(POINTS)


@pytest.mark.parametrize(
    "value", ["nowhere", "after-commit:x", "after-commit:-1", "after-commit:1:dance"]
)
def test_a_point_that_does_not_exist_is_refused_by_name(value: str) -> None:
    with pytest.raises(errors.Refused, match=value):
        reached_from({VARIABLE: value})


def test_a_point_may_fail_each_time_from_some_time_on() -> None:
    reached = reached_from({VARIABLE: "placing/7:2:fail"})
    for point in ("placing/7", "placing/8", "after-commit"):
        reached(point)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="planted"):
            reached("placing/7")


def test_the_process_is_killed_when_it_passes_the_point_the_last_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -9
    assert done.stdout.split() == ["after-commit", "before-send", "after-commit"]
