"""Whatever a handler returns or raises becomes one frame."""

from __future__ import annotations

import asyncio
import json
import types
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk import Cancelled, DataQualityError, InfrastructureError
from astraflow_sdk.host.outcome import encode_failure, encode_value
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from tests.unit.sdk.port import context

LIMIT = 1000


def told(value: object, **fields: Any) -> dict[str, Any]:
    ctx = context(**fields)
    frame: dict[str, Any] = json.loads(encode_value(ctx, value, LIMIT))
    assert (frame.pop("type"), frame.pop("task_id"), frame.pop("attempt")) == ("result", "t-1", 2)
    assert frame.pop("folder") is False
    return frame


def raised(problem: BaseException, cancelled: bool = False) -> dict[str, Any]:
    ctx = context()
    ctx.cancel_reason = "asked" if cancelled else None
    frame: dict[str, Any] = json.loads(encode_failure(ctx, problem))
    return frame


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_any_json_value_comes_through_as_it_was(value: Any) -> None:
    result = value if isinstance(value, dict) else {"result": value}
    if (
        isinstance(value, dict)
        and value.keys() <= {"status", "outputs", "artifacts"}
        and "status" in value
    ):
        return
    assert told(value) == {"status": "SUCCEEDED", "result": result}


def test_any_mapping_is_an_object() -> None:
    assert told(types.MappingProxyType({"a": 1}))["result"] == {"a": 1}


def test_the_answer_of_an_adapter_is_taken_apart() -> None:
    artifact = {"resource_id": "r", "worker_id": "w", "type": "file"}
    value = {"status": "succeeded", "outputs": {"a": 1}, "artifacts": [artifact]}
    assert told(value) == {"status": "SUCCEEDED", "result": {"a": 1}, "artifacts": [artifact]}
    assert told({"status": "skipped"}) == {"status": "SKIPPED", "result": {}}


def test_an_object_that_only_has_a_status_of_its_own_is_a_result() -> None:
    assert told({"status": 200, "body": ""})["result"] == {"status": 200, "body": ""}


@pytest.mark.parametrize("status", ["ready", None, ["x"]])
def test_a_status_of_another_kind_is_a_value_like_others(status: object) -> None:
    assert told({"status": status})["result"] == {"status": status}


@each_row(
    ("value", "code"),
    [
        ({"a": {1, 2}}, "E.RESULT.INVALID"),
        ({"a": float("nan")}, "E.RESULT.INVALID"),
        ({"a": "\udc00"}, "E.RESULT.INVALID"),
        ({(1, 2): 3}, "E.RESULT.INVALID"),
        ({"a": "x" * LIMIT}, "E.RESULT.TOO_LARGE"),
        ({"a": "ü" * (LIMIT // 2)}, "E.RESULT.TOO_LARGE"),
    ],
)
def test_what_cannot_be_told_is_a_failure(value: object, code: str) -> None:
    frame = told(value)
    assert frame["status"] == "FAILED"
    assert frame["error"]["code"] == code


def test_an_error_keeps_its_category_code_and_context() -> None:
    problem = DataQualityError("bad", retryable=True, code="MY.CODE", context={"row": 3})
    error = raised(problem)["error"]
    assert error.pop("stack").endswith("DataQualityError: bad\n")
    assert error == {
        "code": "MY.CODE",
        "category": "DATA_QUALITY",
        "message": "bad",
        "retryable": True,
        "context": {"row": 3},
    }


@pytest.mark.parametrize("context_value", [object(), "x" * 100_000])
def test_a_context_that_cannot_be_told_is_left_out_and_said_to_be(context_value: object) -> None:
    error = raised(InfrastructureError("down", context={"a": context_value}))["error"]
    assert error["message"] == "down"
    assert list(error["context"]) == ["unreadable"]


def test_halves_of_characters_and_nul_in_a_message_are_written_out() -> None:
    assert raised(ValueError("a\ud800b\0c"))["error"]["message"] == "ValueError: a\\ud800b\\0c"


def test_a_cancel_that_was_asked_for_is_a_cancel() -> None:
    for problem in (Cancelled(), asyncio.CancelledError()):
        assert raised(problem, cancelled=True)["status"] == "CANCELLED"


def test_a_cancel_that_nobody_asked_for_is_a_failure() -> None:
    for problem in (Cancelled(), asyncio.CancelledError()):
        assert raised(problem)["error"]["code"] == "E.RUNNER.FAILURE"


def test_an_error_after_a_cancel_is_still_an_error() -> None:
    assert raised(ValueError("x"), cancelled=True)["status"] == "FAILED"


def test_an_outcome_says_whether_there_may_be_a_folder(tmp_path: Path) -> None:
    ctx = context(data_dir=str(tmp_path / "1"))
    assert json.loads(encode_value(ctx, {}, LIMIT))["folder"] is False
    assert json.loads(encode_failure(ctx, ValueError("no")))["folder"] is False
    assert ctx.data_dir.is_dir()
    assert "folder" not in json.loads(encode_value(ctx, {}, LIMIT))
    assert "folder" not in json.loads(encode_failure(ctx, ValueError("no")))
