"""What undoes what was done, when a run fails or is cancelled."""

from __future__ import annotations

from typing import Any

from astraflow.core.runs.commands import Cancel, Report
from astraflow.core.runs.facts import CompensationBegan, TaskFailure, TaskLeased
from astraflow.core.runs.rerun import keep_for_rerun_of_failed
from astraflow.core.workflow.plan import Feature
from tests.tables import each_row
from tests.unit.core.runs.test_scopes import BOOM, Playing, echo
from tests.unit.core.workflow.drafts import edge, found, node, plan, uid

BOX = "core.container"


def trip(**fields: Any) -> Any:
    """A flight, a hotel after it, then a car; the first two can be undone, the flight by two nodes in a row."""
    nodes = [
        echo(1, label="flight", parameters={"value": 11}, onFailure=uid(11), onCancel=uid(11)),
        echo(2, label="hotel", parameters={"value": 22}, onFailure=uid(12)),
        echo(3, label="car", **fields),
        echo(11, label="no flight", parameters={"value": "=nodes.flight.results.value"}),
        echo(13, label="tell"),
        echo(12, label="no hotel", parameters={"value": "=nodes.hotel.results.value"}),
    ]
    return plan(nodes, [edge(1, 2), edge(2, 3), edge(11, 13)])


def leased(played: Playing) -> list[str]:
    """The labels of what was run, in order."""
    tasks = [fact.task for fact in played.facts if isinstance(fact, TaskLeased)]
    return [played.run.node_at(task).label for task in tasks]


def play_to(played: Playing, count: int) -> None:
    for _ in range(count):
        task = played.queued[0]
        played.lease(task)
        played.end(task)


def test_what_was_done_is_undone_the_last_first() -> None:
    played = Playing(trip())
    assert Feature.COMPENSATION in played.plan.features
    play_to(played, 2)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    assert CompensationBegan(played.facts[0].at, "failure", (5, 3)) in played.facts
    assert len(played.queued) == 1  # one branch after the other
    played.play()
    assert leased(played) == ["flight", "hotel", "car", "no hotel", "no flight", "tell"]
    assert (played.result(12), played.result(11)) == ({"value": 22}, {"value": 11})
    assert played.run.status == "failed"
    assert played.run.error == BOOM


def test_a_container_that_undoes_a_node_reads_it_from_inside() -> None:
    nodes = [
        echo(1, label="flight", parameters={"value": 11}, onFailure=uid(11)),
        echo(2, label="car"),
        node(11, BOX),
        echo(12, parent=uid(11), parameters={"value": "=nodes.flight.results.value"}),
    ]
    played = Playing(plan(nodes, [edge(1, 2)]))
    play_to(played, 1)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    assert [played.given(one) for one in played.queued] == [{"value": 11}]
    played.play()
    assert played.run.status == "failed"


def test_what_was_not_done_is_not_undone() -> None:
    played = Playing(trip())
    play_to(played, 1)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    played.play()
    assert leased(played) == ["flight", "hotel", "no flight", "tell"]
    assert played.status(12) == "skipped E.TASK.NOT_NEEDED"


def test_a_run_that_succeeds_skips_its_branches() -> None:
    played = Playing(trip()).play()
    assert played.run.status == "succeeded"
    assert [played.status(number) for number in (11, 12, 13)] == ["skipped E.TASK.NOT_NEEDED"] * 3


def test_a_failure_that_is_handled_undoes_nothing() -> None:
    nodes = [
        echo(1, label="a", onFailure=uid(3)),
        echo(2, label="b"),
        echo(3, label="undo"),
        echo(4, label="mend"),
    ]
    played = Playing(plan(nodes, [edge(1, 2), edge("2.error", 4)]))
    play_to(played, 1)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    played.play()
    assert (played.run.status, played.status(3)) == ("succeeded", "skipped E.TASK.NOT_NEEDED")


def test_a_cancelled_run_runs_the_branches_for_a_cancel_and_no_others() -> None:
    played = Playing(trip())
    play_to(played, 2)
    task = played.queued[0]
    played.lease(task)
    played.give(Cancel("ann", 5))
    assert played.queued == []
    played.give(Report(task, 1, "w1", "CANCELLED"))
    assert len(played.queued) == 1
    played.give(Cancel("bob", 5))  # another one changes nothing
    played.play()
    assert leased(played) == ["flight", "hotel", "car", "no flight", "tell"]
    assert played.run.status == "cancelled"


def test_a_deadline_is_a_failure() -> None:
    played = Playing(trip())
    play_to(played, 2)
    played.give(Cancel("", 5, "deadline"))
    played.play()
    assert leased(played)[-3:] == ["no hotel", "no flight", "tell"]
    assert played.run.status == "failed"


def test_a_branch_that_fails_does_not_keep_the_others_from_running() -> None:
    played = Playing(trip(retry={"maxAttempts": 1}))
    play_to(played, 2)
    other = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "closed")
    for outcome in (BOOM, other):
        task = played.queued[0]
        played.lease(task)
        played.end(task, outcome)
    played.play()
    assert leased(played)[-3:] == ["no hotel", "no flight", "tell"]
    assert (played.run.status, played.run.error) == ("failed", BOOM)


def test_a_branch_is_retried_and_goes_on_after_a_cancel() -> None:
    nodes = [
        echo(1, label="a", onFailure=uid(3)),
        echo(2, label="b"),
        echo(3, label="undo", retry={"maxAttempts": 3, "backoff": {"initialSeconds": 0}}),
    ]
    played = Playing(plan(nodes, [edge(1, 2)]))
    play_to(played, 1)
    for outcome in (BOOM, BOOM):
        task = played.queued[0]
        played.lease(task)
        played.end(task, outcome)
    played.give(Cancel("ann", 5))
    assert len(played.queued) == 1
    played.play()
    assert played.status(3) == "succeeded"
    assert played.run.status == "cancelled"


def test_a_container_can_undo_and_be_undone() -> None:
    nodes = [
        node(1, BOX, label="do", onFailure=uid(3)),
        echo(2, parent=uid(1), label="inner"),
        node(3, BOX, label="undo"),
        echo(4, parent=uid(3), label="inner undo"),
        echo(5, label="bad"),
    ]
    played = Playing(plan(nodes, [edge(1, 5)]))
    play_to(played, 1)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    played.give(Cancel("ann", 5))
    played.play()
    assert leased(played) == ["inner", "bad", "inner undo"]
    assert played.status(3) == "succeeded"


def test_what_was_undone_is_not_kept_for_a_rerun() -> None:
    played = Playing(trip())
    play_to(played, 2)
    task = played.queued[0]
    played.lease(task)
    played.end(task, BOOM)
    played.play()
    assert keep_for_rerun_of_failed(played.run) == {}


@each_row(
    ("nodes", "edges", "expected"),
    [
        ([echo(1, onFailure=uid(9))], [], [("/nodes/0/onFailure", "UNKNOWN_NODE")]),
        ([echo(1, onCancel=uid(1))], [], [("/nodes/0/onCancel", "INVALID")]),
        (
            [echo(1, onFailure=uid(3)), echo(2, onFailure=uid(3)), echo(3)],
            [],
            [("/nodes/1/onFailure", "INVALID")],
        ),
        ([echo(1, onFailure=uid(2)), echo(2)], [edge(1, 2)], [("/nodes/1", "INVALID")]),
        (
            [echo(1, onFailure=uid(2)), echo(2), echo(3), echo(4)],
            [edge(2, 3), edge(4, 3)],
            [("/nodes/2", "INVALID")],
        ),
        (
            [echo(1, onFailure=uid(2)), echo(2, onFailure=uid(3)), echo(3)],
            [],
            [("/nodes/1", "INVALID")],
        ),
        (
            [node(1, BOX), echo(2, parent=uid(1), onFailure=uid(3)), echo(3)],
            [],
            [("/nodes/1/onFailure", "INVALID")],
        ),
        (
            [echo(1, onFailure=uid(3), onCancel=uid(4)), echo(3), echo(4), echo(5)],
            [edge(3, 5), edge(4, 5)],
            [("/nodes/3", "INVALID")],
        ),
    ],
)
def test_a_branch_that_makes_no_sense_is_reported(
    nodes: list[Any], edges: list[Any], expected: list[Any]
) -> None:
    assert found(nodes, edges) == expected
