"""What clients see of maps that had nothing to do, and of the artifacts inside of scopes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.contract.runs import ItemCounts
from astraflow.core.errors import NotFound
from astraflow.core.runs.commands import Report
from astraflow.core.runs.facts import ArtifactRef
from astraflow.core.runs.scope_views import check_scope, view_artifacts, view_items, view_whole
from tests.tables import each_row
from tests.unit.core.runs.test_scopes import BOX, Playing, echo
from tests.unit.core.workflow.drafts import edge, node, plan, uid

NONE = ItemCounts(total=0, pending=0, running=0, succeeded=0, failed=0, skipped=0, cancelled=0)


def shown_items(played: Playing, number: int) -> ItemCounts | None:
    return next(
        one.items for one in view_whole(played.run, {}, {}).nodes if one.node_id == uid(number)
    )


@each_row("over", [{}, {"collect": "rows"}, {"failurePolicy": "collect"}])
def test_a_map_over_an_empty_list_counts_no_items(over: dict[str, Any]) -> None:
    played = Playing(plan([echo(1, map={"over": "=[]", **over}), echo(2)], [edge(1, 2)]))
    assert played.status(1) == "succeeded"
    assert shown_items(played, 1) == NONE
    assert shown_items(played, 2) is None
    assert view_items(played.run, 0, 0, 10) == []


def test_a_map_that_has_not_begun_or_failed_to_begin_counts_nothing() -> None:
    played = Playing(
        plan([echo(1), echo(2, map={"over": "=[]"}), echo(3, map={"over": "=7"})], [edge(1, 2)])
    )
    assert played.status(3) == "failed E.TASK.INPUT_INVALID"
    assert shown_items(played, 2) is None
    assert shown_items(played, 3) is None


def test_an_empty_map_inside_of_a_map_counts_no_items() -> None:
    nodes = [
        node(1, BOX, map={"over": "=[[], [5]]"}),
        echo(2, parent=uid(1), map={"over": "=item"}),
    ]
    played = Playing(plan(nodes)).play()
    counts = shown_items(played, 2)
    assert counts is not None
    assert (counts.total, counts.succeeded) == (2, 2)


@each_row(("result", "items"), [(b"7", None), (b'{"items":[1]}', None), (b'{"items":[]}', NONE)])
def test_a_map_that_was_given_its_result_counts_what_that_says(
    result: bytes, items: ItemCounts | None
) -> None:
    played = Playing(plan([echo(1, map={"over": "=[1]"}), echo(2)], [edge(1, 2)]))
    task = played.run.tasks[0]
    task.result = msgspec.Raw(result)
    played.run.scopes.clear()
    assert shown_items(played, 1) == items


def test_artifacts_are_those_of_a_scope_and_of_what_is_inside() -> None:
    nodes = [node(1, BOX, map={"over": "=range(12)"}), echo(2, parent=uid(1)), echo(3)]
    played = Playing(plan(nodes))
    while played.queued:
        task = played.queued[0]
        played.lease(task)
        made = ArtifactRef(f"r{task}", "w1", "file", 1, None, False, msgspec.Raw(b"{}"))
        result = msgspec.Raw(b"{}")
        played.give(Report(task, 1, "w1", "SUCCEEDED", result, artifacts=(made,)))
    run, box = played.run, uid(1)
    everything = {one.resource_id for one in view_artifacts(run, "")}
    assert len(everything) == 13
    inside = [view_artifacts(run, f"{box}:{item}") for item in range(12)]
    assert [len(one) for one in inside] == [1] * 12
    assert inside[1] == view_artifacts(run, f"{box}:1/{box}:0")
    assert len({one.resource_id for row in inside for one in row} & everything) == 12
    for wrong in (f"{box}:12", box, f"{uid(2)}:0"):
        with pytest.raises(NotFound):
            view_artifacts(run, wrong)
        with pytest.raises(NotFound):
            check_scope(run, wrong)
