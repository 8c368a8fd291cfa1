"""The line of a frame: the fields of the older documents, and nothing of its payload."""

from __future__ import annotations

import logging

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.wire import Envelope, Sender, Unreadable
from astraflow.observe.frame_log import fields_of, log_frame, logs_frames
from tests.tables import each_row
from tests.unit.observe.records import KeptRecords

_ATTEMPT = (RunId("r1"), TaskId("r1.0"), 1)
_FAILED = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "no")


def frame(payload: object) -> Envelope:
    return Envelope(
        "biz.exec.result", "01J", "", "acme", Sender("worker", "w1"), payload, "r1.0", 7
    )


@each_row(
    ("payload", "code"),
    [
        (business.Result(*_ATTEMPT, "SUCCEEDED"), None),
        (business.Result(*_ATTEMPT, "FAILED", error=_FAILED), "E.RUNNER.FAILURE"),
        (business.ExecError(*_ATTEMPT, "E.DISPATCH.STALE"), "E.DISPATCH.STALE"),
        (control.Reset("E.SESSION.UNKNOWN", "restarted"), "E.SESSION.UNKNOWN"),
        (
            Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload", "no"),
            "E.PROTOCOL.BAD_PAYLOAD",
        ),
        (b"{}", None),
    ],
)
def test_a_line_names_the_code_that_a_frame_carries(payload: object, code: str | None) -> None:
    assert fields_of(frame(payload)) == {
        "tenant": "acme",
        "sender": "w1",
        "type": "biz.exec.result",
        "id": "01J",
        "corr": "r1.0",
        "code": code,
        "seq": 7,
    }


def test_a_payload_is_never_written() -> None:
    log = logging.getLogger("astraflow.test.frames")
    log.setLevel(logging.DEBUG)
    kept: list[logging.LogRecord] = []
    handler = KeptRecords(kept)
    log.addHandler(handler)
    log_frame(log, "sent", frame({"token": "hunter2"}))
    log.removeHandler(handler)
    (record,) = kept
    assert record.getMessage() == "frame sent: biz.exec.result"
    assert "hunter2" not in str(record.__dict__)


def test_frames_are_logged_at_debug_only() -> None:
    log = logging.getLogger("astraflow.test.levels")
    log.setLevel(logging.INFO)
    assert not logs_frames(log)
    log.setLevel(logging.DEBUG)
    assert logs_frames(log)
