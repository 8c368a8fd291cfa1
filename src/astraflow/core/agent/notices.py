"""Notices: what a worker tells of packages and resources, of which only the newest word counts.

Rule 1: a notice stays until its frame is under `ack_seq`; a new session begins with all that are left (R3, R10).
Rule 2: of several words about one thing only the newest is sent again; those in a window are on their way already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol.send_window import QueueFull

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.protocol.wire import Wire
    from astraflow.core.protocol.worker_session import WorkerSession


class _Notice:
    __slots__ = ("corr", "frame_id", "frame_type", "payload")

    def __init__(self, frame_type: str, payload: Wire, corr: str | None) -> None:
        self.frame_type = frame_type
        self.payload = payload
        self.corr = corr
        self.frame_id: str | None = None


class Notices:
    """By what they are about: the key."""

    def __init__(self, session: WorkerSession) -> None:
        self._session = session
        self._told: dict[str, _Notice] = {}
        self._by_frame: dict[str, str] = {}
        self._waiting: dict[str, None] = {}  # keys whose notice is not in the session's queue

    def __len__(self) -> int:
        return len(self._told)

    def tell(self, key: str, frame_type: str, payload: Wire, corr: str | None, now: float) -> None:
        former = self._told.get(key)
        if former is not None and former.frame_id is not None:
            self._by_frame.pop(former.frame_id, None)
        self._told[key] = _Notice(frame_type, payload, corr)
        self._waiting[key] = None
        self.send(now)

    def send(self, now: float) -> int:
        """Queue what waits, as far as there is room. Returns how many cannot be sent at all, and are dropped."""
        if not self._session.is_open:
            return 0
        unsendable = 0
        for key in list(self._waiting):
            notice = self._told[key]
            try:
                notice.frame_id = self._session.send(
                    notice.frame_type, notice.payload, notice.corr, now, frame_id=notice.frame_id
                )
            except QueueFull:
                return unsendable
            except errors.LocalProtocolError:
                # No session will ever carry it: what it is about is in the next register or the next word.
                unsendable += 1
                del self._told[key]
            else:
                self._by_frame[notice.frame_id] = key
            del self._waiting[key]
        return unsendable

    def acked(self, frame_ids: Iterable[str]) -> None:
        for frame_id in frame_ids:
            key = self._by_frame.pop(frame_id, None)
            if key is not None:
                del self._told[key]

    def session_lost(self) -> None:
        self._waiting = dict.fromkeys(self._told)

    def check(self) -> None:
        assert self._waiting.keys() <= self._told.keys(), "a notice waits that is not there"
        for frame_id, key in self._by_frame.items():
            assert self._told[key].frame_id == frame_id, "a frame stands for another notice"
