"""Peers that were turned away, in the log: one line a minute for each kind, and how many there were since.

A worker with a wrong token comes back for ever, and anybody can come under any name: what they are worth in lines is
bounded by kinds and by time.
"""

from __future__ import annotations

import logging
from typing import Final

from astraflow.core import errors
from astraflow.core.protocol.events import TurnedAway

__all__ = ["TurnedAwayLog"]

_log: Final = logging.getLogger(__name__)

EVERY_S: Final = 60.0
MAX_KINDS: Final = 50
"""Of one minute; those beyond are not told apart."""
_PASSING: Final = frozenset(
    {
        errors.SESSION_UNKNOWN.code,
        errors.SESSION_MOVED.code,
        errors.SESSION_STALE_BINDING.code,
        errors.INTERNAL.code,
    }
)
"""What is no trouble, or is told elsewhere."""

_Kind = tuple[str, str, str, str]
_OTHERS: Final[_Kind] = ("", "", "", "")


class TurnedAwayLog:
    """Remembers whom it has told of in the last minute."""

    def __init__(self) -> None:
        self._told: dict[_Kind, float] = {}
        self._silent: dict[_Kind, int] = {}

    def tell(self, peer: str, who: TurnedAway, now: float) -> None:
        if who.code in _PASSING:
            return
        host = peer.rpartition(":")[0]  # the port is another one at every try
        kind: _Kind = (who.tenant, who.worker, host, who.code)
        self._forget(now)
        if kind not in self._told and len(self._told) >= MAX_KINDS:
            kind = _OTHERS
        if kind in self._told:
            self._silent[kind] = self._silent.get(kind, 0) + 1
            return
        self._told[kind] = now
        again = self._silent.pop(kind, 0)
        more = f" ({again} more since the last line)" if again else ""
        _log.warning(
            "turned away worker %s of tenant %s at %s: %s: %s%s",
            who.worker or "-",
            who.tenant,
            peer,
            who.code,
            who.reason,
            more,
            extra={"tenant": who.tenant, "worker": who.worker, "code": who.code},
        )

    def _forget(self, now: float) -> None:
        """Those of more than a minute ago are told of again, with how many there were meanwhile."""
        while self._told:
            kind = next(iter(self._told))
            if now < self._told[kind] + EVERY_S:
                return
            del self._told[kind]
            if len(self._silent) > MAX_KINDS:
                self._silent.pop(next(iter(self._silent)))
