"""How the process of a command ends, and what it does not load."""

from __future__ import annotations

import json

import pytest
import typer

from astraflow.cli.exit_codes import ending, fail
from astraflow.core import errors
from tests.tables import each_row


@each_row(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), 130),
        (typer.Exit(3), 3),
        (typer.Abort(), 1),
        (errors.Unavailable(errors.OVERLOADED, "busy"), 3),
        (RuntimeError("a bug"), 1),
    ],
)
def test_whatever_is_raised_has_its_exit_code(raised: BaseException, code: int) -> None:
    with pytest.raises(SystemExit) as ended, ending():
        raise raised
    assert ended.value.code == code


def test_a_bug_is_json_too_and_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), ending(as_json=True):
        raise RuntimeError("a bug")
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == "E.INTERNAL"
    assert "test_ending.py" in err


def test_an_error_lists_its_problems_up_to_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [{"pointer": f"/nodes/{number}", "message": "no"} for number in range(30)]
    with pytest.raises(typer.Exit):
        fail(errors.WORKFLOW_INVALID, "wrong", 1, problems=problems)
    _, err = capsys.readouterr()
    assert "  /nodes/19: no\n  and 10 more\n" in err
    assert err.endswith("\n\nhint: fix the field that the pointer names\n")
    with pytest.raises(typer.Exit):
        fail(errors.WORKFLOW_INVALID, "wrong", 1, as_json=True, problems=problems)
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 30
