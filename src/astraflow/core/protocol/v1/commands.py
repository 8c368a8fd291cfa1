"""From protocol 2 to protocol 1: the frames of the scheduler.

Rule 1: a dispatch is taken when the worker acknowledges it, or reports about it. All other commands are taken at once,
        and sent again until they are acknowledged: what is wanted of packages, and drains, are derived again after
        each register.
Rule 2: protocol 1 has no cancel. A dispatch that the worker has not acknowledged is taken back by it; one that it has
        runs on, and its result is the scheduler's to judge.
Rule 3: protocol 1 has no frames about resources: they are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from astraflow.core import errors
from astraflow.core.protocol import business, control
from astraflow.core.protocol.v1 import frames
from astraflow.core.protocol.v1.attempts import V1Attempt
from astraflow.core.protocol.v1.link import CommandFrame
from astraflow.core.protocol.v1.reports import with_worker

if TYPE_CHECKING:
    from astraflow.core.protocol.v1.attempts import AttemptTable
    from astraflow.core.protocol.v1.link import V1Link
    from astraflow.core.protocol.v1.resending import Resending
    from astraflow.core.protocol.wire import AttemptRef

_decode_command: Final = msgspec.json.Decoder(CommandFrame).decode
_decode_dispatch: Final = msgspec.json.Decoder(business.Dispatch).decode
_decode_cancel: Final = msgspec.json.Decoder(business.ExecCancel).decode
_decode_ack: Final = msgspec.json.Decoder(control.ControlAck).decode
_decode_reset: Final = msgspec.json.Decoder(control.Reset).decode
_decode_error: Final = msgspec.json.Decoder(control.ControlError).decode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode

_NAMES: Final = {
    control.DRAIN: frames.DRAIN,
    business.NEXT_RESPONSE: frames.NEXT_RESPONSE,
    business.PKG_INSTALL: frames.PKG_INSTALL,
    business.PKG_UNINSTALL: frames.PKG_UNINSTALL,
}
_OF_PROTOCOL_2: Final = frozenset({"attempt", "failures", "lease"})
"""Fields that `seq` and the heartbeats of protocol 1 stand for."""


class SchedulerFrames:
    """Passes the frames of the gateway on to the worker."""

    def __init__(self, link: V1Link, attempts: AttemptTable, resending: Resending) -> None:
        self._link = link
        self._attempts = attempts
        self._resending = resending
        self.is_open = False
        """Whether the session is open."""

    def on_frame(self, raw: bytes, now: float) -> None:
        frame = _decode_command(raw)
        self._link.ts = frame.ts
        self._link.met(frame)
        if frame.seq is None:
            self._on_control(frame)
            return
        for command in self._link.receiving.feed(frame.seq, frame):
            self._on_command(command, now)

    # -- control --------------------------------------------------------------------------------

    def _on_control(self, frame: CommandFrame) -> None:
        if frame.type == control.ACK:
            self._on_ack(_decode_ack(frame.payload))
        elif frame.type == control.SESSION_ACCEPT:
            self.is_open = True
        elif frame.type == control.RESET:
            self._on_reset(_decode_reset(frame.payload))
        else:
            assert frame.type == control.ERROR, frame.type
            self._on_error(_decode_error(frame.payload))

    def _on_ack(self, ack: control.ControlAck) -> None:
        if ack.ack_seq is not None:
            self._link.acked_through(ack.ack_seq)
        for ref in ack.stop:
            self._forget(ref)
        report = None if ack.for_ is None else self._link.take_report(ack.for_)
        if report is None:
            return
        if report.attempt is not None:
            self._attempts.remove(report.attempt)
        for frame_id in report.frame_ids:
            self._link.say_ack(frame_id)

    def _forget(self, ref: AttemptRef) -> None:
        """The attempt is no longer the worker's. It cannot be told so."""
        attempt = self._attempts.find(ref.task_id, ref.attempt)
        if attempt is not None:
            self._link.count("stops_not_told")
            self._attempts.remove(attempt)

    def _on_reset(self, reset: control.Reset) -> None:
        said: dict[str, Any] = {"code": reset.code, "message": reset.reason}
        if reset.retry_after_ms is not None:
            said["retry_after_ms"] = reset.retry_after_ms
        if reset.location is not None:
            said["location"] = reset.location
        self._link.say(frames.ERROR, said)

    def _on_error(self, error: control.ControlError) -> None:
        report = self._link.refused(error.for_)
        said: dict[str, Any] = {"code": error.code, "message": error.message}
        if report is not None and report.frame_ids:
            said["for"] = report.frame_ids[0]
        if error.code == errors.CMD_UNKNOWN.code and report is not None:
            said["message"] = f"unknown frame type: {report.frame_type}"
        elif error.pointer is not None:
            said["pointer"] = error.pointer
        self._link.say(frames.ERROR, said)

    # -- commands -------------------------------------------------------------------------------

    def _on_command(self, frame: CommandFrame, now: float) -> None:
        assert frame.seq is not None
        if frame.type == business.DISPATCH:
            self._on_dispatch(frame, now)
            return
        if frame.type == business.CANCEL:
            self._on_cancel(_decode_cancel(frame.payload))
        elif frame.type in _NAMES:
            fields = _decode_fields(frame.payload)
            payload = {name: fields[name] for name in fields if name not in _OF_PROTOCOL_2}
            self._command(frame, _NAMES[frame.type], payload, None, now)
        else:
            self._link.count("commands_unknown")
            refusal = control.ControlError(frame.id, errors.CMD_UNKNOWN.code, "not in protocol 1")
            self._link.send_own(control.ERROR, refusal)
        self._link.receiving.commit(frame.seq)

    def _on_dispatch(self, frame: CommandFrame, now: float) -> None:
        dispatch = _decode_dispatch(frame.payload)
        attempt = V1Attempt(dispatch.run_id, dispatch.task_id, dispatch.attempt)
        attempt.seq = self._attempts.next_seq(dispatch.run_id)
        attempt.frame_id = frame.id
        attempt.command_seq = frame.seq
        attempt.is_taken = False
        payload: dict[str, Any] = _decode_fields(frame.payload)
        payload = {name: payload[name] for name in payload if name not in _OF_PROTOCOL_2}
        if dispatch.resource_refs:
            payload = with_worker(payload, "resource_refs", *self._link.names_of_worker)
        if dispatch.constraints.timeout_ms is None:
            attempt.due = now + frames.DEFAULT_TIMEOUT_S + frames.TIMEOUT_SLACK_S
            payload["constraints"] = {"timeout_ms": int(frames.DEFAULT_TIMEOUT_S * 1000)}
        self._attempts.add(attempt)
        self._command(frame, frames.DISPATCH, payload, attempt.seq, now)

    def _command(
        self, frame: CommandFrame, frame_type: str, payload: object, seq: int | None, now: float
    ) -> None:
        command = self._link.make(
            frame_type, payload, frame_id=frame.id, corr=frame.corr, seq=seq, asks=True
        )
        self._resending.sent(command, now)
        self._link.put(command)

    def _on_cancel(self, cancel: business.ExecCancel) -> None:
        attempt = self._attempts.find(cancel.task_id, cancel.attempt)
        if attempt is None:
            return
        if attempt.is_taken:
            self._link.count("cancels_not_told")
            return
        self._link.count("dispatches_withdrawn")
        self.withdraw(attempt)

    def withdraw(self, attempt: V1Attempt) -> None:
        """Take back a dispatch that the worker has not acknowledged: no heartbeat names it."""
        assert attempt.frame_id is not None and attempt.command_seq is not None
        self._resending.take(attempt.frame_id)
        self._attempts.remove(attempt)
        self._link.receiving.commit(attempt.command_seq)
