"""Tier B in the test run: the core world on the real SQLite store."""

from __future__ import annotations

import pytest

from astraflow.core.engine.engine import Engine
from astraflow.scheduler import serving
from astraflow.scheduler.row_writer import RowWriter
from tests.sim.config import Config, draw
from tests.sim.sqlite.simulation import simulate_sqlite
from tests.sim.sqlite.store import SqliteBackedStore


def test_a_calm_world_on_sqlite_does_all_its_work() -> None:
    outcome = simulate_sqlite(3, Config(seed=3, workers=2, runs=3, tasks=5))
    assert outcome.violation is None
    assert outcome.executions == 15


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_world_on_sqlite_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + 20):
        outcome = simulate_sqlite(seed)
        assert outcome.violation is None, f"{outcome.config.describe()}: {outcome.violation}"


def test_torn_transactions_and_unknown_outcomes_are_survived() -> None:
    seen: dict[str, int] = {}
    for seed in range(10):
        drawn = draw(seed)
        config = drawn.shrink(faults=(*drawn.faults, "commit"), commit_fault=0.05)
        outcome = simulate_sqlite(seed, config)
        assert outcome.violation is None, f"{config.describe()}: {outcome.violation}"
        for what, times in outcome.seen.items():
            seen[what] = seen.get(what, 0) + times
    assert seen["transaction torn"] > 0
    assert seen["unknown commit resolved"] > 0
    assert seen["follower let go"] > 0


def test_a_row_that_does_not_repeat_its_facts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    write = RowWriter._write_run

    def broken(self: RowWriter, *args: object) -> object:
        change = write(self, *args)  # type: ignore[arg-type]
        return None if change is not None and change.finished_at is not None else change

    monkeypatch.setattr(RowWriter, "_write_run", broken)
    violation = simulate_sqlite(3, Config(seed=3)).violation
    assert violation is not None
    assert violation.invariant == "I20"


def test_an_unknown_outcome_that_is_not_read_back_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SqliteBackedStore, "is_committed", lambda *_: True)
    for seed in range(30):
        outcome = simulate_sqlite(seed, Config(seed=seed, faults=("commit",), commit_fault=0.1))
        if outcome.violation is not None:
            return
    pytest.fail("it was not noticed")


def test_a_start_that_does_not_read_where_resources_are_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(parts: serving.Parts, engine: Engine) -> None:
        """The rows of the fleet stay unread."""

    monkeypatch.setattr(serving, "_restore_fleet", nothing)
    many = {"runs": 5, "tasks": 6, "tenants": 1, "workers": 3, "slots": 1, "crash_every_s": 5.0}
    for seed in range(70):
        drawn = draw(seed)
        faults = (*drawn.faults, "scheduler_crash")
        # Of a machine that is gone for good nothing can be asked at the end.
        config = drawn.shrink(faults=faults, resources=True, packages=False, gone=False, **many)
        violation = simulate_sqlite(seed, config).violation
        if violation is not None:
            assert violation.invariant in ("I16", "I18", "I20"), violation
            return
    pytest.fail("it was not noticed")
