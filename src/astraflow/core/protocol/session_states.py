"""The states of a worker's session, and every way from one to another.

PROTOCOL §2: "`NEW → HANDSHAKING → REGISTERED → READY → DRAINING → CLOSED`, any error → `BACKOFF` →
`NEW`." The diagram in the documentation is drawn from `TRANSITIONS`.

Rule 1: every change of state is a row of `TRANSITIONS`; no other module assigns a state.
Rule 2: a state says what the *link* may do. Whether a session can be resumed is another question,
        which only the session's id and token answer: they outlive the link.
Rule 3: a resumed or accepted session that drains goes to READY and at once on to DRAINING.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from astraflow.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


class SessionState(enum.Enum):
    NEW = "NEW"
    """There is no connection; one may be opened now."""
    HANDSHAKING = "HANDSHAKING"
    """A handshake or a resume was sent and is not answered."""
    REGISTERED = "REGISTERED"
    """The handshake was acknowledged; the register is on its way, or wanted."""
    READY = "READY"
    """Frames flow."""
    DRAINING = "DRAINING"
    """Frames flow, but no new dispatch is taken."""
    CLOSED = "CLOSED"
    """It is over; this object opens no connection again."""
    BACKOFF = "BACKOFF"
    """There is no connection, and the time for the next one has not come."""


class SessionTrigger(enum.Enum):
    CONNECTED = "connected"
    GREETED = "handshake acknowledged"
    ACCEPTED = "session accepted"
    RESUMED = "session resumed"
    DRAIN = "drain"
    LINK_LOST = "link lost"
    RETRY_DUE = "retry due"
    FINISHED = "finished"
    SUPERSEDED = "superseded"


_ALIVE: Final = tuple(state for state in SessionState if state is not SessionState.CLOSED)

TRANSITIONS: Final[Mapping[tuple[SessionState, SessionTrigger], SessionState]] = MappingProxyType(
    {
        (SessionState.NEW, SessionTrigger.CONNECTED): SessionState.HANDSHAKING,
        (SessionState.HANDSHAKING, SessionTrigger.GREETED): SessionState.REGISTERED,
        (SessionState.HANDSHAKING, SessionTrigger.RESUMED): SessionState.READY,
        (SessionState.REGISTERED, SessionTrigger.ACCEPTED): SessionState.READY,
        (SessionState.READY, SessionTrigger.DRAIN): SessionState.DRAINING,
        (SessionState.BACKOFF, SessionTrigger.RETRY_DUE): SessionState.NEW,
        **{(state, SessionTrigger.LINK_LOST): SessionState.BACKOFF for state in _ALIVE},
        **{(state, SessionTrigger.FINISHED): SessionState.CLOSED for state in _ALIVE},
        **{(state, SessionTrigger.SUPERSEDED): SessionState.CLOSED for state in _ALIVE},
    }
)


def next_state(state: SessionState, trigger: SessionTrigger) -> SessionState:
    """Raises: Bug, when the trigger cannot happen in this state."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise errors.Bug(
            errors.INTERNAL, f"no way out of {state.value} by: {trigger.value}"
        ) from None
