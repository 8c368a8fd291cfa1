from __future__ import annotations

import re

import pytest

from astraflow.core import errors
from tests.tables import each_row

ROWS = [(name, row) for name, row in vars(errors).items() if isinstance(row, errors.Code)]
KINDS = [
    errors.LocalProtocolError,
    errors.RemoteProtocolError,
    errors.Refused,
    errors.Conflict,
    errors.NotFound,
    errors.Unavailable,
    errors.StoreError,
    errors.Bug,
]


@each_row(("name", "row"), ROWS)
def test_a_row_is_well_formed_and_named_after_its_code(name: str, row: errors.Code) -> None:
    assert name == row.code.removeprefix("E.").replace(".", "_").upper()
    assert re.fullmatch(r"E(\.[A-Z][A-Z_]*)+|[A-Z_]+|[a-z_]+", row.code)
    assert 400 <= row.http <= 599
    for sentence in (row.says, row.do):
        assert sentence == sentence.strip()
        assert sentence
        assert not sentence.endswith(".")
        assert sentence[0].islower()


def test_the_catalogue_holds_every_row_once() -> None:
    assert list(errors.CATALOGUE.values()) == [row for _, row in ROWS]
    assert all(code == row.code for code, row in errors.CATALOGUE.items())


def test_every_code_of_the_first_documents_is_there() -> None:
    known = {
        "E.AUTH.INVALID_TOKEN",
        "E.SESSION.STALE_BINDING",
        "E.SESSION.DENIED",
        "E.CMD.UNKNOWN",
        "E.CMD.CONCURRENCY_VIOLATION",
        "E.PKG.INVALID",
        "E.PKG.PERMISSION",
        "E.INTERNAL",
        "E.TIMEOUT",
        "E.RUNNER.FAILURE",
        "CANCEL_TIMEOUT",
    }
    assert known <= errors.CATALOGUE.keys()


def test_the_catalogue_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        errors.CATALOGUE["E.NEW"] = errors.INTERNAL  # type: ignore[index]
    with pytest.raises(AttributeError):
        errors.INTERNAL.http = 200  # type: ignore[misc]


@each_row("kind", KINDS)
def test_an_error_carries_its_row_and_where_it_happened(kind: type[errors.AstraflowError]) -> None:
    error = kind(errors.OVERLOADED, "too many: 7", pointer="/a/0", detail={"limit": 6})
    assert isinstance(error, errors.AstraflowError)
    assert str(error) == "E.OVERLOADED: too many: 7"
    assert error.retryable
    assert (error.code, error.pointer, error.detail) == (errors.OVERLOADED, "/a/0", {"limit": 6})


def test_whether_trying_again_helps_is_read_from_the_row() -> None:
    assert not errors.Refused(errors.WORKFLOW_CYCLE, "a circle").retryable
    assert str(errors.WORKFLOW_CYCLE) == "E.WORKFLOW.CYCLE"
