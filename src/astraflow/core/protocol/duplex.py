"""Both directions of one session: two windows, and what ties them together.

A window ack rides along with any frame that goes the other way, so that a busy session sends no acks
of its own. `ack.request` on a sequenced frame is answered by `control.ack {for}` once its effect is
committed, because an acknowledgement means nothing less (R1).

Above the windows a bounded memory of committed frames, by `(id, corr)`, drops what a peer sends
again in a *new* session. Only committed frames are in it: one that was delivered and not committed
when its session ended must be delivered again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.window import ReceiveWindow, SendWindow
from astraflow.core.protocol.wire import AckInfo, Envelope, WindowInfo

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.protocol.frames import FrameMaker
    from astraflow.core.protocol.wire import AttemptRef


class NoSession(errors.Unavailable):
    """There is no session to queue in: keep it, and send it after the next `Ready`."""

    def __init__(self) -> None:
        super().__init__(errors.SESSION_UNKNOWN, "there is no session now")


class SeenFrames:
    """The newest committed frames of one peer, across its sessions.

    A frame is sent again in a new session only if its ack did not arrive, so it is among the last
    window of committed ones. Handlers are idempotent anyway; this saves them the work.
    """

    __slots__ = ("_order", "_seen", "_size")

    def __init__(self, size: int = limits.DEDUPE_CACHE_SIZE) -> None:
        self._size = size
        self._seen: set[tuple[str, str | None]] = set()
        self._order: deque[tuple[str, str | None]] = deque()

    def __contains__(self, frame: Envelope) -> bool:
        return (frame.id, frame.corr) in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, frame: Envelope) -> None:
        key = (frame.id, frame.corr)
        if key in self._seen:
            return
        if len(self._order) >= self._size:
            self._seen.discard(self._order.popleft())
        self._seen.add(key)
        self._order.append(key)


class Duplex:
    """The windows of one session, on one side of it."""

    __slots__ = (
        "_answers",
        "_asked",
        "_maker",
        "_open",
        "_seen",
        "_strikes",
        "counters",
        "receiving",
        "sending",
    )

    def __init__(
        self,
        maker: FrameMaker,
        window: int,
        seen: SeenFrames,
        rng: Random,
        *,
        queue_limit: int = limits.SEND_QUEUE,
    ) -> None:
        self.sending: SendWindow[Envelope] = SendWindow(
            window, rng, queue_limit=queue_limit, seal=self._seal
        )
        self.receiving: ReceiveWindow[Envelope] = ReceiveWindow(window)
        self.counters = {"resent_in_new_session": 0}
        self._maker = maker
        self._seen = seen
        self._strikes: tuple[str, int] = ("", 0)
        self._open: dict[int, Envelope] = {}
        self._asked: dict[int, str] = {}
        self._answers: list[str] = []

    def pump(self, now: float, out: list[Envelope]) -> None:
        """Append what must go onto the wire now. After calling this: look at `sending.broken`."""
        for _, frame in self.sending.take(now):
            out.append(frame)
        if self._answers:
            answers, self._answers = self._answers, []
            for frame_id in answers:
                out.append(self.answer(frame_id))
        if self.receiving.ack_due(now):
            out.append(self.answer(None))

    def answer(self, frame_id: str | None, stop: tuple[AttemptRef, ...] = ()) -> Envelope:
        """A `control.ack` with the state of the receiving window, and `for` if asked."""
        ack = self.receiving.ack()
        payload = control.WindowAck(frame_id, ack.ack_seq, ack.bitmap, ack.recv_window, stop)
        return self._maker.make(control.ACK, payload)

    def riding_ack(self, *, request: bool = False, always: bool = False) -> AckInfo | None:
        """The window ack as it rides along with a frame, if one is owed (or `always`)."""
        if self.receiving.is_ack_owed() or always:
            ack = self.receiving.ack()
            return WindowInfo(request, ack.ack_seq, ack.bitmap, ack.recv_window)
        return AckInfo(request) if request else None

    def on_ack(
        self, ack_seq: int | None, bitmap: str, recv_window: int | None, now: float
    ) -> tuple[str, ...]:
        """Take a window ack; returns the ids of the frames that may be forgotten."""
        forgotten = self.sending.on_ack(ack_seq, bitmap, recv_window, now)
        return tuple([frame.id for frame in forgotten])

    def receive(self, frame: Envelope) -> list[Envelope]:
        """Take a sequenced frame; returns those to handle now, in order.

        After calling this: call `commit` with the seq of each when its effect is committed.
        """
        assert frame.seq is not None
        if frame.ack is not None and frame.ack.request:
            self._ask(frame.seq, frame.id)
        fresh = []
        seen = self._seen
        for ready in self.receiving.feed(frame.seq, frame):
            assert ready.seq is not None
            if ready in seen:
                self.counters["resent_in_new_session"] += 1
                self.commit(ready.seq)
            else:
                self._open[ready.seq] = ready
                fresh.append(ready)
        return fresh

    def commit(self, seq: int) -> None:
        """The effect of this frame is committed: it may be acknowledged."""
        frame = self._open.pop(seq, None)
        if frame is not None:
            self._seen.add(frame)
        self.receiving.commit(seq)
        if self._asked:
            frame_id = self._asked.pop(seq, None)
            if frame_id is not None:
                self._answers.append(frame_id)

    def resume(self, now: float, last_seen_seq: int | None, window: int) -> tuple[str, ...]:
        """A new connection carries the session on: "both sides resend what the other has not
        acked". Returns the ids of the frames that the peer turned out to have."""
        acked = self.on_ack(last_seen_seq, "0", window, now)
        self.sending.resend_all(now)
        self.receiving.ask()
        return acked

    def strike(self) -> str | None:
        """The peer minded a frame and closed; returns the id of one that did it too often.

        PROTOCOL §1: "if the same first unacked frame closes the link twice it is replaced".
        """
        first = self.sending.first_unacked
        if first is None:
            return None
        frame_id, strikes = self._strikes
        strikes = strikes + 1 if frame_id == first.id else 1
        self._strikes = (first.id, strikes)
        return first.id if strikes >= limits.POISON_STRIKES else None

    def deadline(self) -> float | None:
        """When `pump` must be called again at the latest."""
        first, second = self.sending.deadline(), self.receiving.deadline()
        if first is None or second is None:
            return second if first is None else first
        return min(first, second)

    def check(self) -> None:
        self.sending.check()
        self.receiving.check()
        receiving = self.receiving
        assert all(receiving.committed < seq <= receiving.delivered for seq in self._open)

    def _seal(self, frame: Envelope, seq: int) -> Envelope:
        """The frame as it goes onto the wire, now and whenever it is sent again.

        The ack that rides along will be an old one then, which does no harm: "an ack that is late …
        changes nothing".
        """
        return Envelope(
            frame.type,
            frame.id,
            "",
            frame.tenant,
            frame.sender,
            frame.payload,
            frame.corr,
            seq,
            self.riding_ack(),
        )

    def _ask(self, seq: int, frame_id: str) -> None:
        self.receiving.ask()
        if seq <= self.receiving.committed:
            self._answers.append(frame_id)
        elif self.receiving.has_room_for(seq):
            self._asked[seq] = frame_id
