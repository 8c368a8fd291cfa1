"""What a worker tells of packages and resources arrives, whatever happens to its sessions."""

from __future__ import annotations

from typing import Any

from astraflow.core import errors
from astraflow.core.agent.notices import Notices
from astraflow.core.protocol.business import PKG_EVENT, PkgEvent
from astraflow.core.protocol.send_window import QueueFull


class Session:
    """As much of a worker's session as notices use."""

    def __init__(self) -> None:
        self.is_open = True
        self.room = 100
        self.sent: list[tuple[str, Any]] = []
        self.refuses = False

    def send(
        self, frame_type: str, payload: Any, corr: str | None, now: float, *, frame_id: str | None
    ) -> str:
        assert frame_type == PKG_EVENT
        if self.refuses:
            raise errors.LocalProtocolError(errors.RESULT_TOO_LARGE, "too large")
        if len(self.sent) >= self.room:
            raise QueueFull(1)
        made = frame_id or f"f{len(self.sent)}"
        self.sent.append((made, payload.status))
        return made


def _event(status: Any) -> PkgEvent:
    return PkgEvent("text", "1.0", status)


def _notices(session: Session) -> Notices:
    return Notices(session)  # type: ignore[arg-type]


def test_a_notice_is_sent_at_once_and_forgotten_when_it_is_acked() -> None:
    session = Session()
    notices = _notices(session)
    notices.tell("pkg", PKG_EVENT, _event("installed"), None, 0.0)
    assert session.sent == [("f0", "installed")]
    notices.acked(["other", "f0"])
    notices.check()
    assert len(notices) == 0


def test_without_a_session_it_waits_for_one() -> None:
    session = Session()
    session.is_open = False
    notices = _notices(session)
    notices.tell("pkg", PKG_EVENT, _event("installed"), None, 0.0)
    assert session.sent == []
    session.is_open = True
    notices.send(1.0)
    assert session.sent == [("f0", "installed")]


def test_a_new_session_is_told_again_under_the_same_frame_id() -> None:
    session = Session()
    notices = _notices(session)
    notices.tell("pkg", PKG_EVENT, _event("installed"), None, 0.0)
    notices.session_lost()
    notices.send(1.0)
    notices.check()
    assert session.sent == [("f0", "installed"), ("f0", "installed")]


def test_the_ack_of_an_older_word_does_not_end_the_newer_one() -> None:
    session = Session()
    notices = _notices(session)
    notices.tell("pkg", PKG_EVENT, _event("downloading"), None, 0.0)
    notices.tell("pkg", PKG_EVENT, _event("installed"), None, 0.0)
    notices.acked(["f0"])
    notices.check()
    assert len(notices) == 1
    notices.session_lost()
    notices.send(1.0)
    assert session.sent[2:] == [("f1", "installed")]


def test_a_full_queue_is_waited_for() -> None:
    session = Session()
    session.room = 1
    notices = _notices(session)
    notices.tell("a", PKG_EVENT, _event("installed"), None, 0.0)
    notices.tell("b", PKG_EVENT, _event("removed"), None, 0.0)
    assert session.sent == [("f0", "installed")]
    session.room = 2
    notices.send(1.0)
    assert session.sent == [("f0", "installed"), ("f1", "removed")]


def test_what_no_session_can_carry_is_dropped_and_counted() -> None:
    session = Session()
    session.refuses = True
    notices = _notices(session)
    session.is_open = False
    notices.tell("a", PKG_EVENT, _event("installed"), None, 0.0)
    session.is_open = True
    assert notices.send(0.0) == 1
    assert len(notices) == 0
