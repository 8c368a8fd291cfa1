"""A parked engine places nothing, and does everything else."""

from __future__ import annotations

from astraflow.core.engine.commands import SuspendTenant
from astraflow.core.engine.placing import PARKED
from astraflow.core.engine.wait_reasons import Reason, Reasons
from astraflow.core.runs.facts import TaskWaiting
from tests.unit.core.engine.rig import Rig, Worker
from tests.unit.core.engine.test_tenants import configure, tell
from tests.unit.plans import make_plan


def park(rig: Rig, is_parked: bool = True) -> None:
    rig.engine.set_parked(is_parked)
    rig.run()


def reasons(rig: Rig, run_id: str = "run1") -> list[Reason | None]:
    run = rig.run_of(run_id)
    return [Reasons(rig.engine.view).of(run, task) for task in range(len(run.tasks))]


def test_a_run_is_accepted_waits_and_says_why(rig: Rig, worker: Worker) -> None:
    park(rig)
    rig.submit(make_plan(2))
    rig.wait(60.0)
    assert worker.started == []
    assert reasons(rig) == [Reason("tenant", PARKED)] * 2
    assert not any(isinstance(fact, TaskWaiting) for fact in rig.facts()), "it stores nothing"


def test_it_asks_for_no_turns_while_it_waits(rig: Rig, worker: Worker) -> None:
    park(rig)
    rig.submit(make_plan(3))
    assert not rig.engine.will_place
    assert not rig.engine.has_more
    due = rig.engine.deadline()
    assert due is None or due > rig.now


def test_it_goes_on_when_it_is_not_parked_any_more(rig: Rig, worker: Worker) -> None:
    park(rig)
    rig.submit(make_plan(1))
    park(rig, False)
    assert worker.tasks() == [("run1.0", 1)]
    worker.finish()
    rig.run()
    assert rig.active() == []


def test_what_runs_already_ends_and_nothing_follows_it(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(2, [(0, 1)]))
    park(rig)
    worker.finish()
    rig.run()
    assert worker.tasks() == [("run1.0", 1)]
    assert reasons(rig)[1] == Reason("tenant", PARKED)
    park(rig, False)
    assert worker.tasks() == [("run1.0", 1), ("run1.1", 1)]


def test_a_failed_attempt_is_not_made_again_before_its_time(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1))
    park(rig)
    worker.crash()
    rig.wait(120.0)
    again = rig.worker("w2")
    rig.wait(60.0)
    assert again.started == []
    park(rig, False)
    assert again.tasks() == [("run1.0", 2)]


def test_what_waits_can_be_cancelled(rig: Rig, worker: Worker) -> None:
    park(rig)
    rig.submit(make_plan(2))
    rig.cancel()
    assert rig.active() == []
    park(rig, False)
    assert worker.started == []


def test_sessions_live_and_new_ones_are_opened(rig: Rig, worker: Worker) -> None:
    park(rig)
    second = rig.worker("w2")
    rig.wait(300.0)
    assert worker.conn is not None
    assert second.conn is not None
    assert rig.closed == []


def test_a_suspended_tenant_is_told_that_first(rig: Rig, worker: Worker) -> None:
    park(rig)
    rig.submit(make_plan(1))
    configure(rig)
    tell(rig, SuspendTenant)
    assert reasons(rig) == [Reason("tenant", "tenant acme is suspended")]
