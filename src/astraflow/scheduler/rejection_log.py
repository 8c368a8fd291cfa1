"""Rate-limited log lines for rejected connections: one a minute for each kind, with the number of those left out.

A worker with a wrong token reconnects for ever, and anybody can connect under any name, so the lines are limited both
by time and by the number of kinds.
"""

from __future__ import annotations

import logging
from typing import Final

from astraflow.core import errors
from astraflow.core.protocol.events import PeerRejected

_log: Final = logging.getLogger(__name__)

EVERY_S: Final = 60.0
MAX_KINDS: Final = 50
"""Per minute. Rejections of further kinds are logged as one kind."""
_PASSING: Final = frozenset(
    {
        errors.SESSION_UNKNOWN.code,
        errors.SESSION_MOVED.code,
        errors.SESSION_STALE_BINDING.code,
        errors.INTERNAL.code,
    }
)
"""Codes that need no line: the worker reconnects, or the error is logged elsewhere."""

_Kind = tuple[str, str, str, str]
_OTHERS: Final[_Kind] = ("", "", "", "")


class RejectionLog:
    """Remembers the kinds that it logged in the last minute."""

    def __init__(self) -> None:
        self._logged: dict[_Kind, float] = {}
        self._left_out: dict[_Kind, int] = {}

    def log(self, peer: str, who: PeerRejected, now: float) -> None:
        if who.code in _PASSING:
            return
        host = peer.rpartition(":")[0]  # the port is different at every reconnect
        kind: _Kind = (who.tenant, who.worker, host, who.code)
        self._expire(now)
        if kind not in self._logged and len(self._logged) >= MAX_KINDS:
            kind = _OTHERS
        if kind in self._logged:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._logged[kind] = now
        again = self._left_out.pop(kind, 0)
        more = f" ({again} more since the last line)" if again else ""
        _log.warning(
            "rejected worker %s of tenant %s at %s: %s: %s%s",
            who.worker or "-",
            who.tenant,
            peer,
            who.code,
            who.reason,
            more,
            extra={"tenant": who.tenant, "worker": who.worker, "code": who.code},
        )

    def _expire(self, now: float) -> None:
        """Kinds that were logged more than a minute ago are logged again, with the number left out meanwhile."""
        while self._logged:
            kind = next(iter(self._logged))
            if now < self._logged[kind] + EVERY_S:
                return
            del self._logged[kind]
            if len(self._left_out) > MAX_KINDS:
                self._left_out.pop(next(iter(self._left_out)))
