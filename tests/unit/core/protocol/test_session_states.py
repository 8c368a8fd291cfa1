from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.protocol.session_states import (
    TRANSITIONS,
    SessionState,
    SessionTrigger,
    next_state,
)


def test_the_seeds_path_is_in_the_table() -> None:
    state = SessionState.NEW
    seen = [state]
    for trigger in (
        SessionTrigger.CONNECTED,
        SessionTrigger.GREETED,
        SessionTrigger.ACCEPTED,
        SessionTrigger.DRAIN,
        SessionTrigger.FINISHED,
    ):
        state = next_state(state, trigger)
        seen.append(state)
    assert [each.value for each in seen] == [
        "NEW",
        "HANDSHAKING",
        "REGISTERED",
        "READY",
        "DRAINING",
        "CLOSED",
    ]


def test_any_error_leads_to_backoff_and_from_there_to_new() -> None:
    for state in SessionState:
        if state is not SessionState.CLOSED:
            assert next_state(state, SessionTrigger.LINK_LOST) is SessionState.BACKOFF
    assert next_state(SessionState.BACKOFF, SessionTrigger.RETRY_DUE) is SessionState.NEW


def test_closed_is_the_end() -> None:
    assert all(state is not SessionState.CLOSED for state, _ in TRANSITIONS)


def test_what_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(errors.Bug, match="READY"):
        next_state(SessionState.READY, SessionTrigger.CONNECTED)


def test_every_state_can_be_reached() -> None:
    assert set(TRANSITIONS.values()) == set(SessionState)
