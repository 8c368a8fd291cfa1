"""Items of maps that are pushed to a pool."""

from __future__ import annotations

from tests.http_workers.foreign import ForeignPool, Task
from tests.http_workers.test_contract import refused
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.system import System


def pushed(system: System, pool: ForeignPool, **over: object) -> tuple[str, str, list[Task]]:
    """The run and the node of a map of three items, and its pushes in the order of the items."""
    settings = {"over": "=range(3)", **over}
    mapped = node(put_pool(system, pool), parameters={"n": "=item"}, map=settings)
    run_id = system.rest.submit(workflow(mapped))
    system.until(lambda: len(pool.tasks) == 3, "three pushes")
    return run_id, mapped["id"], sorted(pool.tasks, key=lambda one: one.envelope["parameters"]["n"])


def test_each_item_is_a_push_and_their_results_stand_in_order(
    system: System, pool: ForeignPool
) -> None:
    run_id, node_id, tasks = pushed(system, pool)
    assert len({one.task_id for one in tasks}) == 3
    for task in reversed(tasks):
        assert task.post("started").status_code == 200
        done = {"n": task.envelope["parameters"]["n"]}
        assert task.post("completed", outcome="SUCCEEDED", output=done).status_code == 200
    view = system.rest.finished(run_id)
    assert view["nodes"][0]["result"] == {"items": [{"n": 0}, {"n": 1}, {"n": 2}]}
    [first, *_] = system.rest.get(f"runs/{run_id}/nodes/{node_id}/items")["items"]
    assert (first["item"], first["attempt"], first["status"]) == (0, 1, "succeeded")


def test_an_item_that_fails_takes_back_those_that_nobody_has_started(
    system: System, pool: ForeignPool
) -> None:
    run_id, _, (failing, working, unstarted) = pushed(system, pool, failurePolicy="stop")
    for task in (failing, working):
        assert task.post("started").status_code == 200
    error = {"code": "E.X", "message": "no", "category": "USER_CODE"}
    assert failing.post("completed", outcome="FAILED", error=error).status_code == 200
    assert unstarted.post("started").status_code in (409, 410)
    beat = working.post("heartbeat").json()
    assert beat["shouldCancel"] is True
    assert system.rest.run_status(run_id) == "running"
    assert working.post("completed", outcome="CANCELLED").status_code == 200
    view = system.rest.finished(run_id)
    counts = view["nodes"][0]["items"]
    assert (view["status"], counts["failed"], counts["cancelled"]) == ("failed", 1, 2)
    refused(working.post("heartbeat"), 410, "task_expired")
