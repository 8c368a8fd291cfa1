"""A session as its worker holds it, from the accept until it is dropped: id, token and windows.

It outlives connections. What is queued in it is sent when there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import business, codec
from astraflow.core.protocol.duplex import Duplex
from astraflow.core.protocol.frame_table import ONLY_FOR_SCHEDULER
from astraflow.core.protocol.wire import AckInfo, Envelope, Unreadable
from astraflow.core.protocol.worker_events import (
    CommandDelivered,
    CommandRefused,
    FramesAcked,
    Poisoned,
)

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.protocol.control import SessionAccept
    from astraflow.core.protocol.duplex import SeenFrames
    from astraflow.core.protocol.frames import FrameMaker
    from astraflow.core.protocol.worker_connection import WorkerOutbox
    from astraflow.core.protocol.worker_events import SessionSettings


class LiveSession:
    """What a worker keeps of one session."""

    __slots__ = (
        "_maker",
        "_outbox",
        "_settings",
        "duplex",
        "features",
        "is_woken",
        "session_id",
        "token",
    )

    def __init__(
        self,
        accept: SessionAccept,
        maker: FrameMaker,
        seen: SeenFrames,
        rng: Random,
        settings: SessionSettings,
        outbox: WorkerOutbox,
    ) -> None:
        self.session_id = accept.session_id
        self.token = accept.session_token
        self.features = accept.features
        window = min(accept.window, settings.window)
        self.duplex = Duplex(maker, window, seen, rng, queue_limit=settings.queue_limit)
        self._maker = maker
        self._settings = settings
        self._outbox = outbox
        self.is_woken = False
        """Whether the windows may have something to send: then call `flush`."""

    def send(
        self,
        frame_type: str,
        payload: object,
        corr: str | None,
        feedback: bool,
        frame_id: str | None,
    ) -> Envelope:
        """Queue a frame. Raises: QueueFull, Unsendable."""
        if self._settings.checks_outgoing:
            codec.check_outgoing(frame_type, payload, max_bytes=self._settings.max_frame_bytes)
        frame = self._maker.make(frame_type, payload, corr, None, frame_id)
        sending = self.duplex.sending
        if frame_type == business.RESULT and corr is not None and sending.has_feedback:
            sending.promote(lambda queued: queued.corr == corr)
        sending.push(frame, feedback=feedback)
        self.is_woken = True
        return frame

    def replace(self, frame_id: str, frame_type: str, payload: object, corr: str | None) -> bool:
        """Put a failure in the place of a poisoned frame; it keeps the frame's id and seq."""
        frame = self._maker.make(frame_type, payload, corr, None, frame_id)
        return self.duplex.sending.replace(frame_id, frame)

    def taken(self, seq: int) -> bool:
        """A delivered command was taken. False if no such command was delivered."""
        if seq > self.duplex.receiving.delivered:
            return False
        self.duplex.commit(seq)
        self.is_woken = True
        return True

    def flush(self, now: float) -> None:
        """Let the windows send, once for all that came since they last did."""
        self.is_woken = False
        self.duplex.pump(now, self._outbox.frames)

    def resume(self, accept: SessionAccept, now: float) -> None:
        self._tell_acked(self.duplex.resume(now, accept.last_seen_seq, accept.window))

    def on_ack(self, seq: int | None, bitmap: str, window: int | None, now: float) -> None:
        self._tell_acked(self.duplex.on_ack(seq, bitmap, window, now))

    def on_riding_ack(self, ack: AckInfo | None, now: float) -> None:
        if ack is not None and ack.is_window_ack:
            self.on_ack(ack.seq, ack.bitmap, ack.window, now)

    def deliver(self, envelope: Envelope) -> None:
        """Hand up a command, or refuse it."""
        seq, payload = envelope.seq, envelope.payload
        assert seq is not None
        if isinstance(payload, Unreadable):
            self._refuse(envelope, seq, payload)
        elif envelope.type in ONLY_FOR_SCHEDULER:
            unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "not a frame for a worker")
            self._refuse(envelope, seq, unknown)
        elif envelope.type.startswith("ext."):
            self._outbox.count("ext_dropped")
            self.duplex.commit(seq)
        else:
            self._outbox.events.append(CommandDelivered(seq, envelope))

    def strike(self) -> None:
        """PROTOCOL §1: "if the same first unacked frame closes the link twice it is replaced"."""
        self.features = ()  # one by one from here on: of a bundle the first frame need not be the bad one
        poisoned = self.duplex.strike()
        if poisoned is not None:
            self._outbox.events.append(Poisoned(poisoned))

    def _refuse(self, envelope: Envelope, seq: int, unreadable: Unreadable) -> None:
        """PROTOCOL §1: "their seq is consumed and acked … the session lives on"."""
        self._outbox.count("refused")
        self.duplex.commit(seq)
        self._outbox.frames.append(self._maker.error(envelope.id, unreadable))
        self._outbox.events.append(CommandRefused(envelope, unreadable))

    def _tell_acked(self, frame_ids: tuple[str, ...]) -> None:
        if frame_ids:
            self._outbox.events.append(FramesAcked(frame_ids))
