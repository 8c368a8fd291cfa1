from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from astraflow.observe.logs import (
    FIELDS,
    JsonFormatter,
    Redaction,
    TextFormatter,
    set_up_logging,
)
from tests.tables import each_row

log = logging.getLogger("astraflow.test")


def record(message: str, *args: object, **extra: Any) -> logging.LogRecord:
    return log.makeRecord(log.name, logging.WARNING, "f", 1, message, args, None, extra=extra)


def line_of(*args: Any, redaction: Redaction | None = None, **extra: Any) -> dict[str, Any]:
    text = JsonFormatter(redaction or Redaction()).format(record(*args, **extra))
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_has_the_documented_fields() -> None:
    given: dict[str, Any] = {name: name.upper() for name in FIELDS}
    line = line_of("it %s", "happened", **given)
    assert line["message"] == "it happened"
    assert line["level"] == "warning"
    assert line["logger"] == "astraflow.test"
    assert line["ts"].endswith("Z")
    assert {name: line[name] for name in FIELDS} == given
    for name in ("tenant", "sender", "type", "id", "corr", "code", "seq", "run", "task", "attempt"):
        assert name in FIELDS


def test_fields_that_were_not_given_are_not_there() -> None:
    line = line_of("x", attempt=0, run=None)
    assert line["attempt"] == 0
    assert "run" not in line
    assert "task" not in line


def test_a_failure_brings_its_stack() -> None:
    try:
        raise ValueError("the reason")
    except ValueError as error:
        failed = record("it failed")
        failed.exc_info = (ValueError, error, error.__traceback__)
    line = json.loads(JsonFormatter(Redaction()).format(failed))
    assert "ValueError: the reason" in line["stack"]
    assert "ValueError: the reason" in TextFormatter(Redaction()).format(failed)


@each_row(
    "secret",
    [
        "Authorization: Bearer abc.def-ghi",
        "astra_0123456789abcdefghijkl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "postgresql://me:hunter2@there/x",
        "GET /events?token=abcdef&x=1",
    ],
)
def test_what_looks_like_a_credential_is_cut(secret: str) -> None:
    line = line_of("given: %s", secret)
    assert "***" in line["message"]
    for piece in ("abc.def", "0123456789", "c2lnbmF0dXJl", "hunter2", "abcdef&"):
        assert piece not in line["message"]


def test_what_was_hidden_is_cut_wherever_it_stands() -> None:
    redaction = Redaction()
    redaction.hide("dev-token", "dev-token-2", "abc")
    line = line_of("dev-token-2 and dev-token", redaction=redaction, sender="dev-token", code="abc")
    assert line["message"] == "*** and ***"
    assert line["sender"] == "***"
    assert line["code"] == "abc"  # too short to be cut without cutting words


def test_text_that_json_cannot_hold_is_written_all_the_same() -> None:
    assert line_of("a \ud800 b", run="\udfff", seq=2**70)["seq"] == str(2**70)
    assert line_of("x", run=object())["run"].startswith("<object")


def test_a_long_message_is_cut() -> None:
    assert len(line_of("x" * 100_000)["message"]) == 8_192


def test_the_text_form_shows_the_same() -> None:
    text = TextFormatter(Redaction()).format(
        record("it %s", "happened", run="r1", code="E.TIMEOUT")
    )
    assert text.endswith("warning it happened code=E.TIMEOUT run=r1")


@pytest.fixture
def _root_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    access = logging.getLogger("uvicorn.access")
    disabled = access.disabled
    yield
    root.handlers[:], access.disabled = handlers, disabled
    root.setLevel(level)


@pytest.mark.usefixtures("_root_restored")
def test_a_process_logs_at_its_level_to_one_stream() -> None:
    stream = io.StringIO()
    redaction = Redaction()
    set_up_logging("warning", redaction=redaction, stream=stream)
    redaction.hide("a secret of ours")
    log.info("not this")
    log.warning("this: a secret of ours", extra={"run": "r1"})
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["message"] == "this: ***"
    set_up_logging("info", redaction=redaction, stream=stream, as_text=True)
    log.info("for people")
    assert stream.getvalue().splitlines()[-1].endswith("info    for people")
