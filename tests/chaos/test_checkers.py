"""The test of the tests: each checker finds what it is for."""

from __future__ import annotations

from typing import Any

from tests.chaos import checkers
from tests.chaos.site_harness import kept_attempts
from tests.chaos.truth import Line
from tests.chaos.workload import Told

RUN, NODE, KEY = "r", "n", "k"


def _line(attempt: int, word: str, ns: int) -> Line:
    return Line(RUN, KEY, attempt, word, ns, 7)


def _event(number: int, kind: str, **body: Any) -> dict[str, Any]:
    return {"id": number, "type": kind, "data": body}


def _state(number: int, status: str, attempt: int = 1) -> dict[str, Any]:
    return _event(number, "node.state", nodeId=NODE, status=status, attempt=attempt)


def _view(status: str, node: str, attempt: int = 1, last: int = 4) -> dict[str, Any]:
    shown = {"nodeId": NODE, "status": node, "attempt": attempt, "result_of": (KEY, attempt)}
    return {"status": status, "lastEvent": last, "nodes": [shown]}


def _told(*events: dict[str, Any], views: list[dict[str, Any]]) -> Told:
    return Told(RUN, 0, {NODE: KEY}, events=list(events), views=views, is_over=True)


def _good() -> Told:
    return _told(
        _event(1, "run.status", status="queued"),
        _state(2, "dispatched"),
        _state(3, "succeeded"),
        _event(4, "run.status", status="succeeded"),
        views=[_view("running", "running", last=2), _view("succeeded", "succeeded")],
    )


TRUTH = {KEY: [_line(1, "start", 10), _line(1, "end", 20)]}


def test_a_run_as_it_should_be_passes_every_checker() -> None:
    told = [_good()]
    assert checkers.lost_runs(told) == []
    assert checkers.not_terminal(told) == []
    assert checkers.started_twice(TRUTH) == []
    assert checkers.overlapping(TRUTH) == []
    assert checkers.results_without_truth(told, TRUTH) == []
    assert checkers.accepted_twice(told) == []
    assert checkers.started_after_cancel(told, TRUTH) == ([], 0)
    assert checkers.went_back(told) == []
    assert checkers.events_are_complete(told) == []


def test_an_attempt_that_lived_into_the_next_one_is_found() -> None:
    lines = [_line(1, "start", 10), _line(2, "start", 20), _line(1, "beat", 21)]
    assert len(checkers.overlapping({KEY: lines})) == 1


def test_an_attempt_that_started_twice_is_found() -> None:
    assert len(checkers.started_twice({KEY: [_line(1, "start", 10), _line(1, "start", 11)]})) == 1


def test_a_success_that_nothing_proves_is_found() -> None:
    assert len(checkers.results_without_truth([_good()], {KEY: [_line(1, "start", 10)]})) == 1


def test_the_result_of_another_attempt_is_found() -> None:
    told = _good()
    told.views[-1]["nodes"][0]["result_of"] = (KEY, 2)
    assert len(checkers.results_without_truth([told], TRUTH)) == 1


def test_a_state_after_an_outcome_is_found() -> None:
    told = _good()
    told.events.insert(3, _state(4, "running", 2))
    assert len(checkers.accepted_twice([told])) == 1


def test_a_gap_and_a_repeat_in_a_stream_are_found() -> None:
    gap, repeat = _good(), _good()
    del gap.events[1]
    repeat.events.insert(1, repeat.events[1])
    assert len(checkers.events_are_complete([gap])) == 1
    assert len(checkers.events_are_complete([repeat])) == 1


def test_events_that_fold_to_something_else_than_is_shown_are_found() -> None:
    told = _good()
    told.views[-1] = _view("failed", "failed")
    assert len(checkers.events_are_complete([told])) == 2


def test_a_status_that_went_back_is_found() -> None:
    told = _good()
    told.views.append(_view("running", "running"))
    assert len(checkers.went_back([told])) == 2


def test_a_run_that_did_not_end_is_found() -> None:
    assert len(checkers.not_terminal([_told(views=[_view("running", "running")])])) == 1


def test_an_attempt_that_was_issued_after_its_cancel_is_found_and_one_under_way_is_counted() -> (
    None
):
    told = _good()
    told.cancelled_ns = 5
    assert checkers.started_after_cancel([told], TRUTH) == ([], 1)
    told.events.insert(1, _event(2, "run.status", status="running", cancelRequested=True))
    assert len(checkers.started_after_cancel([told], TRUTH)[0]) == 1


def test_the_same_outcome_of_two_items_is_fine_and_two_of_one_are_found() -> None:
    told = _good()
    for number, item in ((4, 0), (5, 1), (6, 1)):
        told.events.append(_state(number, "succeeded"))
        told.events[-1]["data"]["scopePath"] = f"{NODE}:{item}"
    assert len(checkers.accepted_twice([told])) == 1


def test_an_item_that_nothing_proves_is_found() -> None:
    told = _good()
    place = {"nodeId": NODE, "scopePath": f"{NODE}:3"}
    told.keys[f"{NODE} {NODE}:3"] = "other"
    shown = {**place, "type": "core.python", "status": "succeeded", "attempt": 1}
    told.items.append(shown)
    assert len(checkers.results_without_truth([told], TRUTH)) == 1
    told.items[0] = {**shown, "scopePath": f"{NODE}:4"}
    assert len(checkers.results_without_truth([told], TRUTH)) == 1


def test_a_result_of_no_call_is_found() -> None:
    told = _good()
    told.keys.clear()
    told.asks.wrapped[NODE] = KEY
    assert checkers.results_without_truth([told], TRUTH) == []
    assert len(checkers.results_without_truth([told], {KEY: [_line(1, "start", 10)]})) == 1
    told.asks.wrapped[NODE] = "another"
    assert len(checkers.results_without_truth([told], TRUTH)) == 1


def test_an_answer_that_nobody_gave_is_found() -> None:
    told = _good()
    told.views[-1]["nodes"][0]["told"] = True
    told.asks.approvals[NODE] = True
    assert checkers.answered_otherwise([told]) == []
    told.asks.approvals[NODE] = False
    assert len(checkers.answered_otherwise([told])) == 1


def test_what_was_not_undone_and_what_was_for_no_reason_is_found() -> None:
    told = _good()
    told.asks.undone_by[NODE] = "undo"
    undo = {"nodeId": "undo", "status": "skipped"}
    told.views[-1]["nodes"].append(undo)
    assert checkers.not_undone([told]) == []
    told.views[-1]["status"] = "failed"
    assert len(checkers.not_undone([told])) == 1
    undo["status"] = "succeeded"
    assert checkers.not_undone([told]) == []
    told.views[-1]["status"] = "succeeded"
    assert len(checkers.not_undone([told])) == 1


def test_a_key_that_made_two_runs_and_a_run_that_is_gone_are_found() -> None:
    one, other = ("acme", "r1"), ("globex", "r2")
    assert checkers.made_otherwise([one, other], [other, one]) == []
    assert checkers.made_otherwise([one], [one, ("acme", "r3")]) == ["r3 of acme is of no key"]
    assert checkers.made_otherwise([one, other], [one]) == ["r2 of globex is in no store"]
    assert checkers.made_otherwise([one, one], [one]) == ["r1 of acme: 2 keys"]
    assert len(checkers.made_otherwise([one], [("globex", "r1")])) == 2


def test_attempts_across_a_fault_are_counted_and_those_that_were_lost_are_not_kept() -> None:
    kept = [_line(1, "start", 10), _line(1, "beat", 20), _line(1, "end", 30)]
    lost = [_line(1, "start", 10), _line(1, "beat", 20), _line(2, "start", 40), _line(2, "end", 50)]
    assert kept_attempts({KEY: kept}, 15) == (1, 1)
    assert kept_attempts({KEY: lost}, 15) == (1, 0)
    assert kept_attempts({KEY: kept}, 35) == (0, 0)
    assert kept_attempts({KEY: kept}, 5) == (0, 0)
    assert kept_attempts({KEY: lost}, 30) == (0, 0)
