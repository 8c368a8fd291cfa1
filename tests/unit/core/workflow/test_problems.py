from __future__ import annotations

from astraflow.core.errors import PKG_INVALID, WORKFLOW_CYCLE, WORKFLOW_INVALID, Refused
from astraflow.core.workflow.limits import MAX_PROBLEMS
from astraflow.core.workflow.problems import DefinitionProblem, InvalidDocument, Problems
from tests.tables import each_row


def test_all_problems_are_listed_up_to_the_limit() -> None:
    problems = Problems()
    for number in range(MAX_PROBLEMS):
        problems.add(f"/{number}", WORKFLOW_INVALID, "wrong")
    assert [row.pointer for row in problems.found()] == [f"/{n}" for n in range(MAX_PROBLEMS)]


def test_beyond_the_limit_the_last_entry_counts_the_rest() -> None:
    problems = Problems()
    for number in range(MAX_PROBLEMS + 50):
        problems.add(f"/{number}", WORKFLOW_INVALID, "wrong")
    found = problems.found()
    assert len(found) == MAX_PROBLEMS
    assert found[-1] == DefinitionProblem("", "E.WORKFLOW.LIMIT", "and 51 more")


def test_one_code_can_stand_for_all() -> None:
    problems = Problems(only=PKG_INVALID)
    for _ in range(MAX_PROBLEMS + 1):
        problems.add("/x", WORKFLOW_CYCLE, "wrong")
    assert {row.code for row in problems.found()} == {"E.PKG.INVALID"}


@each_row("text", ["a\u202eb", "\u2066", "a\x00", "\x7f", "\x1b[31m", "\ud800"])
def test_text_that_deceives_the_eye_is_a_problem(text: str) -> None:
    problems = Problems()
    problems.check_text("/label", text, 256)
    assert [row.code for row in problems.found()] == ["E.WORKFLOW.BAD_TEXT"]


@each_row("text", ["", "plain", "zwei\nZeilen\t", "naïve", "עברית\u200f", "👩\u200d🚀"])
def test_text_of_any_language_is_fine(text: str) -> None:
    problems = Problems()
    problems.check_text("/label", text, 256)
    assert problems.found() == []


def test_text_beyond_its_limit_and_empty_keys_are_problems() -> None:
    problems = Problems()
    problems.check_text("/a", "x" * 257, 256)
    problems.check_key("/b", "", 256)
    problems.check_key("/c", "key", 256)
    assert [(row.pointer, row.code) for row in problems.found()] == [
        ("/a", "E.WORKFLOW.LIMIT"),
        ("/b", "E.WORKFLOW.BAD_TEXT"),
    ]


def test_the_refusal_carries_every_problem() -> None:
    rows = [
        DefinitionProblem("/a", "E.WORKFLOW.CYCLE", "round", ("x",)),
        DefinitionProblem("/b", "E.X", "wrong"),
    ]
    refusal = InvalidDocument(WORKFLOW_INVALID, rows)
    assert isinstance(refusal, Refused)
    assert refusal.problems == tuple(rows)
    assert refusal.pointer == "/a"
    assert refusal.message == "round (and 1 more)"
    assert refusal.detail == {
        "problems": [
            {"pointer": "/a", "code": "E.WORKFLOW.CYCLE", "message": "round"},
            {"pointer": "/b", "code": "E.X", "message": "wrong"},
        ]
    }
    assert InvalidDocument(WORKFLOW_INVALID, rows[:1]).message == "round"
