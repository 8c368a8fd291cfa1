"""When a request is sent again.

1. The connection was refused: never. The caller wants to know at once.
2. It was sent and it is unknown whether it arrived: again, if that does no harm, for a bounded time; then also when the
   connection is refused, because the server may be restarting.
3. The server says that it is busy: again, after the time that it names.
"""

from __future__ import annotations

from typing import Final, Literal

Outcome = Literal["refused", "unknown", "busy"]

RETRY_FOR_S: Final = 20.0
"""Longer than a scheduler takes to start again; a person would not wait longer for one response."""

FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0


class Retries:
    """The tries of one request."""

    def __init__(self, now: float, may_repeat: bool, retry_for_s: float = RETRY_FOR_S) -> None:
        self._until = now + retry_for_s
        self._may_repeat = may_repeat
        self._was_there = False
        self._wait_s = FIRST_WAIT_S

    def failed(self, now: float, outcome: Outcome, after_s: float = 0.0) -> float | None:
        """How long to wait before the next try; None to give up."""
        if outcome == "refused" and not self._was_there:
            return None
        if outcome == "unknown" and not self._may_repeat:
            return None
        self._was_there = True
        wait_s = min(max(self._wait_s, after_s), LONGEST_WAIT_S)
        self._wait_s = wait_s * 2
        return wait_s if now + wait_s < self._until else None
