"""The view: task ids, numbered facts, and what stays in memory."""

from __future__ import annotations

from astraflow.core.engine.active_runs import split_task_id
from astraflow.core.engine.view import package_key, worker_key
from astraflow.core.ids import TaskId
from astraflow.core.runs.facts import TaskFailed, TaskSkipped, width
from astraflow.core.workflow.plan import AffinityHint
from tests.tables import each_row
from tests.unit.core.engine.rig import Rig, Worker
from tests.unit.plans import make_plan, retrying


class TestTaskIds:
    def test_an_id_names_the_run_and_the_place_of_the_task(self) -> None:
        assert split_task_id(TaskId("run.with.dots.7")) == ("run.with.dots", 7)

    @each_row(
        "task_id", ["", "run1", ".7", "run1.", "run1.x", "run1.-1", "run1.1234567890", "run1.٣"]
    )
    def test_other_ids_name_nothing(self, task_id: str) -> None:
        assert split_task_id(TaskId(task_id)) is None

    def test_a_task_is_found_by_its_own_tenant_only(self, rig: Rig) -> None:
        rig.submit(make_plan(2))
        view = rig.engine.view
        assert view.runs.find_task("acme", TaskId("run1.1")) == (rig.run_of(), 1)
        assert view.runs.find_task("other", TaskId("run1.1")) is None
        assert view.runs.find_task("acme", TaskId("run1.2")) is None
        assert view.runs.find_task("acme", TaskId("run2.0")) is None
        assert view.runs.find_task("acme", TaskId("nonsense")) is None


def test_what_tasks_sleep_on_is_named_by_tenant() -> None:
    assert worker_key("acme", "w1") != worker_key("other", "w1")
    assert package_key("acme", "w1") != worker_key("acme", "w1")


def test_the_events_of_a_run_are_numbered_without_gaps_over_all_batches(rig: Rig) -> None:
    worker = rig.worker()
    rig.submit(make_plan(3, [(0, 1), (1, 2)], nodes={0: retrying()}))
    worker.fail()
    rig.wait(2.0)
    worker.finish()
    worker.fail()
    expected = 1
    for numbered in rig.store:
        assert numbered.first == expected
        expected += width(numbered.fact)
    kinds = [type(one.fact) for one in rig.store]
    assert TaskFailed in kinds
    assert TaskSkipped in kinds


def test_nothing_of_a_finished_run_stays_in_memory() -> None:
    rig = Rig(max_active_tasks=2)
    worker = rig.worker()
    nodes = {0: {"concurrency_key": "k", "affinity": AffinityHint("a", "preferred")}}
    rig.submit(make_plan(2, [(0, 1)], nodes=nodes))
    worker.finish()
    worker.finish()
    rig.wait(1.0)
    view = rig.engine.view
    assert (len(view.runs), view.runs.tasks, view.placing.bindings, len(view.sent)) == (0, 0, {}, 0)
    assert (len(view.queue), len(view.leases), len(view.keys)) == (0, 0, 0)
    assert rig.engine.view.batch.is_empty
    rig.submit(make_plan(2), "run2")  # there is room again
    assert rig.replies[-1].run_id == "run2"


def test_a_frame_of_an_attempt_that_is_over_is_not_waited_for(rig: Rig, worker: Worker) -> None:
    """A dispatch and a cancel are on the way, unacknowledged, when the report comes."""
    rig.submit(make_plan(1))
    rig.cancel()
    assert len(rig.engine.view.sent) == 2
    worker.finish(status="CANCELLED")
    assert len(rig.engine.view.sent) == 0
