from __future__ import annotations

import pytest

from astraflow.core.protocol.events import PeerRejected
from astraflow.scheduler.rejection_log import EVERY_S, MAX_KINDS, RejectionLog


def who(worker: str = "w1", code: str = "E.AUTH.INVALID_TOKEN") -> PeerRejected:
    return PeerRejected("acme", worker, code, "no good")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_peer_that_comes_back_is_told_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    log = RejectionLog()
    for second in range(60):
        log.log(f"192.0.2.1:{second}", who(), float(second))
    assert lines(caplog) == [
        "rejected worker w1 of tenant acme at 192.0.2.1:0: E.AUTH.INVALID_TOKEN: no good"
    ]
    log.log("192.0.2.1:9", who(), EVERY_S)
    assert lines(caplog)[1].endswith("(59 more since the last line)")


def test_other_peers_and_other_reasons_have_lines_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = RejectionLog()
    log.log("192.0.2.1:1", who(), 0.0)
    log.log("192.0.2.2:1", who(), 0.0)
    log.log("192.0.2.1:1", who("w2"), 0.0)
    log.log("192.0.2.1:1", who(code="E.SESSION.DENIED"), 0.0)
    assert len(lines(caplog)) == 4


def test_made_up_names_do_not_fill_the_log_or_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    log = RejectionLog()
    for minute in range(3):
        for number in range(1000):
            log.log("192.0.2.1:1", who(f"w{minute}.{number}"), minute * EVERY_S)
    assert len(lines(caplog)) == 3 * (MAX_KINDS + 1)
    assert len(log._logged) + len(log._left_out) <= 2 * MAX_KINDS + 3


def test_what_is_no_trouble_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    RejectionLog().log("192.0.2.1:1", who(code="E.SESSION.UNKNOWN"), 0.0)
    assert lines(caplog) == []
