"""Tasks that become ready together wait as one, and are placed as if each had been queued alone."""

from __future__ import annotations

from astraflow.core.ids import RunId
from astraflow.core.runs.facts import RunFinished
from tests.unit.core.engine.rig import Rig
from tests.unit.plans import make_plan

RUN = RunId("run1")


def entries(rig: Rig) -> int:
    """How many of the waiting tasks have an entry of their own in the queue."""
    return sum(map(len, rig.engine.view.queue._entries.values()))


def test_the_tasks_of_a_new_run_wait_as_one(rig: Rig) -> None:
    rig.submit(make_plan(20))
    assert (len(rig.engine.view.queue), entries(rig)) == (20, 1)
    worker = rig.worker(slots=20)
    assert worker.tasks() == [(f"run1.{task}", 1) for task in range(20)]
    for number in range(20):
        worker.finish(number)
    assert rig.facts()[-1] == RunFinished(rig.at, "succeeded")
    rig.engine.view.queue.check()


def test_what_follows_one_task_waits_as_one_behind_what_needs_something_else(rig: Rig) -> None:
    edges = [(0, task) for task in range(1, 21)]
    worker = rig.worker(slots=1)
    rig.submit(make_plan(21, edges, nodes={10: {"concurrency_key": "key"}}))
    worker.finish()
    assert (len(rig.engine.view.queue), entries(rig)) == (19, 3)
    for _ in range(20):
        worker.finish()
    # A key is a line of its own: it stands where it was queued.
    assert worker.tasks() == [(f"run1.{task}", 1) for task in range(21)]
    assert rig.facts()[-1] == RunFinished(rig.at, "succeeded")


def test_waiting_as_one_ends_with_the_run(rig: Rig) -> None:
    rig.submit(make_plan(20))
    rig.cancel()
    assert len(rig.engine.view.queue) == 0
    assert isinstance(rig.facts()[-1], RunFinished)
    rig.engine.view.queue.check()


def test_a_few_tasks_have_entries(rig: Rig) -> None:
    rig.submit(make_plan(3))
    assert (len(rig.engine.view.queue), entries(rig)) == (3, 3)
