"""Both ends of an adapter's connection: frames that wait to be taken, and what connects the numbers of both protocols.

Rule 1: towards the gateway the adapter is a worker of protocol 2, with windows. A frame of the worker is acknowledged
        to it when its effect is committed, which the gateway tells by its id.
Rule 2: what finds no room in the window is dropped without an ack: its worker sends it again.
Rule 3: an id of protocol 1 may be any text. In protocol 2 it is kept if it is a ULID or UUID, else one that follows
        from it stands for it, so that a frame that is sent again is known again on another connection, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from astraflow.core.ids import uuid5
from astraflow.core.protocol import codec, control, limits
from astraflow.core.protocol.v1 import frames
from astraflow.core.protocol.v1.frames import V1AckRequest, V1Envelope, V1Sender
from astraflow.core.protocol.window import ReceiveWindow
from astraflow.core.protocol.wire import AckInfo, Envelope, Sender

if TYPE_CHECKING:
    from astraflow.core.errors import Code
    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.v1.attempts import V1Attempt

REPORTS_KEPT: Final = 2 * limits.WINDOW
"""Frames that are not answered yet; a window of reports, and as many heartbeats."""
REPEATS_KEPT: Final = 16
"""Ids of one repeated report that are acknowledged with it."""

_is_instance_id: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}").fullmatch
_is_id: Final = re.compile(
    r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
).fullmatch
_encode: Final = msgspec.json.Encoder().encode
_ASKING: Final = AckInfo(True)


def instance_id_of(sender_id: str) -> str:
    """The instance id of a worker that calls itself so."""
    return sender_id if _is_instance_id(sender_id) else f"v1:{uuid5('worker', sender_id)}"


class CommandFrame(msgspec.Struct, frozen=True):
    """A frame of the gateway, as far as the adapter reads it."""

    type: str
    id: str
    ts: str
    tenant: str
    sender: V1Sender
    payload: Raw
    corr: str | None = None
    seq: int | None = None
    ack: AckInfo | None = None


class V1Report:
    """A frame that was passed on and whose effect is not committed yet."""

    __slots__ = ("attempt", "frame_ids", "frame_type", "is_sequenced")

    def __init__(self, frame: V1Envelope, attempt: V1Attempt | None, is_sequenced: bool) -> None:
        self.frame_type = frame.type  # as the worker wrote it
        self.frame_ids = [frame.id] if frame.type != frames.FEEDBACK or frame.asks else []
        self.attempt = attempt  # the one that is over with it
        self.is_sequenced = is_sequenced


class V1Link:
    """One connection, as both protocols see it."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self.for_worker: list[bytes] = []
        self.for_scheduler: list[bytes] = []
        self.counters: dict[str, int] = {}
        self.receiving: ReceiveWindow[CommandFrame] = ReceiveWindow(limits.WINDOW)
        self.ts = ""
        """The time of the present input, as it is written."""
        self.tenant = "-"
        self._worker_id = ""
        self._worker_name = ""
        self._scheduler = V1Sender("scheduler", "scheduler")
        self._next_seq = 0
        self._acked = -1
        self._reports: dict[str, V1Report] = {}

    @property
    def names_of_worker(self) -> tuple[str, str]:
        """What it is known by, and what it calls itself."""
        return self._worker_id, self._worker_name

    def count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    # -- to the worker ------------------------------------------------------------------------

    def met(self, frame: CommandFrame) -> None:
        """A frame of the gateway says who the scheduler is, and may carry an ack."""
        self._scheduler = frame.sender
        if frame.ack is not None and frame.ack.seq is not None:
            self.acked_through(frame.ack.seq)

    def say(self, frame_type: str, payload: object) -> None:
        """A frame for the worker that is not acknowledged."""
        self.put(self.make(frame_type, payload))

    def make(
        self,
        frame_type: str,
        payload: object,
        *,
        frame_id: str | None = None,
        corr: str | None = None,
        seq: int | None = None,
        asks: bool = False,
    ) -> V1Envelope:
        return V1Envelope(
            frame_type,
            frame_id or self._ids.new(),
            self.ts,
            self.tenant,
            self._scheduler,
            Raw(_encode(payload)),
            corr,
            seq,
            V1AckRequest(True) if asks else None,
        )

    def put(self, frame: V1Envelope) -> None:
        """Send a frame, now or again: `ts` is the time of sending."""
        if frame.ts != self.ts:
            frame = msgspec.structs.replace(frame, ts=self.ts)
        self.for_worker.append(frames.encode_v1(frame))

    def say_ack(self, frame_id: str) -> None:
        self.say(frames.ACK, {"for": frame_id, "ok": True})

    def say_error(self, frame_id: str, code: Code, message: str) -> None:
        """A frame was refused by the adapter itself."""
        self.say(frames.ERROR, {"for": frame_id, "code": code.code, "message": message})

    # -- to the scheduler ---------------------------------------------------------------------

    def bind(self, frame: V1Envelope) -> None:
        """The worker as it names itself in its first frame; the gateway ends a connection that changes its name."""
        if not self._worker_id:
            self.tenant = frame.tenant
            self._worker_name = frame.sender.id
            self._worker_id = instance_id_of(frame.sender.id)

    def tell(self, frame: V1Envelope, frame_type: str, payload: object) -> None:
        """Pass on an unsequenced frame. It is acknowledged to the worker when the gateway does so."""
        frame_id = self.id_of(frame)
        self._expect(frame_id, V1Report(frame, None, is_sequenced=False))
        self._put_for_scheduler(frame, frame_id, frame_type, payload, None, None)

    def report(
        self,
        frame: V1Envelope,
        frame_type: str,
        payload: object,
        corr: str | None,
        ends: V1Attempt | None = None,
    ) -> bool:
        """Pass on a sequenced frame; `ends`: the attempt that is over with it. False if it is dropped."""
        frame_id = self.id_of(frame)
        if frame_id in self._reports:
            self.count("repeated")  # its ack is on the way
            return False
        if self._next_seq - self._acked > limits.WINDOW:
            self.count("beyond_window")
            return False
        self._expect(frame_id, V1Report(frame, ends, is_sequenced=True))
        self._put_for_scheduler(frame, frame_id, frame_type, payload, corr, self._next_seq)
        self._next_seq += 1
        return True

    def report_own(self, frame_type: str, payload: object, corr: str, ends: V1Attempt) -> bool:
        """A report that the adapter makes in the place of the worker, which hears nothing of it."""
        role = V1Sender("worker", self._worker_id)
        frame = V1Envelope(frames.FEEDBACK, self._ids.new(), self.ts, self.tenant, role, Raw(b"{}"))
        return self.report(frame, frame_type, payload, corr, ends)

    def send_ack(self) -> None:
        """Tell the gateway what was taken, if it does not know it."""
        if self.receiving.is_ack_owed():
            ack = self.receiving.ack()
            window = control.WindowAck(None, ack.ack_seq, ack.bitmap, ack.recv_window)
            self.send_own(control.ACK, window)

    def send_own(self, frame_type: str, payload: object) -> None:
        """A frame that nobody answers."""
        sender = Sender("worker", self._worker_id)
        own = Envelope(frame_type, self._ids.new(), "", self.tenant, sender, payload)
        self.for_scheduler.append(codec.encode(own, self.ts))

    def id_of(self, frame: V1Envelope) -> str:
        """The id of a frame in protocol 2."""
        if _is_id(frame.id):
            return frame.id
        return uuid5("frame", frame.tenant, frame.sender.id, frame.id)

    def _put_for_scheduler(
        self,
        frame: V1Envelope,
        frame_id: str,
        frame_type: str,
        payload: object,
        corr: str | None,
        seq: int | None,
    ) -> None:
        sender = Sender(frame.sender.role, instance_id_of(frame.sender.id))
        told = Envelope(frame_type, frame_id, "", frame.tenant, sender, payload, corr, seq, _ASKING)
        self.for_scheduler.append(codec.encode(told, self.ts))

    def _expect(self, frame_id: str, report: V1Report) -> None:
        self._reports[frame_id] = report
        if len(self._reports) > REPORTS_KEPT:
            # Heartbeats that the gateway does not answer, because it may not speak.
            del self._reports[next(iter(self._reports))]

    # -- what the gateway answers ---------------------------------------------------------------

    def acked_through(self, seq: int) -> None:
        self._acked = max(self._acked, seq)

    def repeat(self, report_id: str, frame_id: str) -> None:
        """The same report again under another id: it is acknowledged with the first."""
        report = self._reports.get(report_id)
        if report is None:
            self.say_ack(frame_id)
        elif frame_id not in report.frame_ids and len(report.frame_ids) < REPEATS_KEPT:
            report.frame_ids.append(frame_id)

    def refused(self, report_id: str) -> V1Report | None:
        """The report that the gateway could not use. If it was sequenced, its ack still comes."""
        report = self._reports.get(report_id)
        if report is not None and not report.is_sequenced:
            del self._reports[report_id]
        return report

    def take_report(self, report_id: str) -> V1Report | None:
        """The report whose effect is committed."""
        return self._reports.pop(report_id, None)
