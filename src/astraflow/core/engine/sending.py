"""Sending: the effects of a committed batch, put on sessions.

Rule 1: what cannot be sent now is not lost. A dispatch is taken back; the others are derived again from what is stored
        when the worker registers (PROTOCOL §5.7), or sent at the next ack if only the queue was full.
"""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.engine.effects import (
    AcceptSession,
    AskWorker,
    Effect,
    SendDispatch,
    SendDrain,
    SendExport,
    SendInstall,
    SendNextResponse,
    SendStop,
    ShellEffect,
)
from astraflow.core.engine.timeouts import take_back_unsent
from astraflow.core.engine.view import View
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.ids import SessionId
from astraflow.core.protocol import business
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.runs.commands import Refuse

_Unsent = SendNextResponse | AskWorker | SendInstall | SendExport


class Sending:
    """Performs the effects that are frames. What is not, it keeps for the shell."""

    def __init__(self, view: View, gateway: Gateway) -> None:
        self._view = view
        self._gateway = gateway
        self._unsent: dict[str, list[_Unsent]] = {}
        self._for_shell: list[ShellEffect] = []

    def take_shell_effects(self) -> list[ShellEffect]:
        effects, self._for_shell = self._for_shell, []
        return effects

    def take_unsent(self, session_id: SessionId) -> list[_Unsent]:
        """What could not be sent on a session whose queue was full."""
        return self._unsent.pop(session_id, [])

    def perform(self, effect: Effect, now: float, at: int) -> None:
        if isinstance(effect, SendDispatch):
            self._send_dispatch(effect, now)
        elif isinstance(effect, SendStop):
            self._send_stop(effect, now)
        elif isinstance(effect, SendNextResponse):
            self._send_response(effect, now)
        elif isinstance(effect, SendDrain):
            self._send_drain(effect, now)
        elif isinstance(effect, AskWorker):
            self._send(effect, effect.frame_type, effect.payload, now)
        elif isinstance(effect, SendInstall):
            package = effect.package
            install = business.PkgInstall(
                package.name, package.version, effect.url, package.sha256, package.signature
            )
            self._send(effect, business.PKG_INSTALL, install, now)
        elif isinstance(effect, SendExport):
            export = business.ResourceExport(effect.resource[2], effect.url)
            self._send(effect, business.RESOURCE_EXPORT, export, now)
        elif isinstance(effect, AcceptSession):
            self._gateway.accept(effect.session_id, now, at / 1000)
        else:
            self._for_shell.append(effect)

    def _send_dispatch(self, effect: SendDispatch, now: float) -> None:
        dispatch, channel = effect.dispatch, effect.channel
        lease = self._view.leases.find(dispatch.task_id, dispatch.attempt)
        if lease is None:
            return  # it was given up while the commit was under way
        if effect.refusal is not None:
            refuse = Refuse(lease.task, lease.attempt, lease.worker_id, *effect.refusal)
            self._view.decide(lease.run, refuse)
            return
        if isinstance(channel, PoolRecord):
            self._for_shell.append(effect)
            return
        try:
            frame_id = self._gateway.send(
                channel, business.DISPATCH, dispatch, dispatch.task_id, now
            )
        except errors.AstraflowError as error:
            # No such session any more, or its queue is full: the frame never reached the socket. Or
            # the worker would have to refuse the frame: then no other try will do better.
            is_ours = isinstance(error, errors.LocalProtocolError)
            code = errors.DISPATCH_INVALID if is_ours else error.code
            refuse = Refuse(lease.task, lease.attempt, lease.worker_id, code.code, error.message)
            self._view.decide(lease.run, refuse)
            return
        lease.frame_id = frame_id
        lease.session_id = channel
        self._view.sent.note(frame_id, lease)
        if not self._gateway.is_connected(channel):
            take_back_unsent(self._view, self._gateway, lease)

    def _send_response(self, effect: SendNextResponse, now: float) -> None:
        response = effect.response
        try:
            self._gateway.send(
                effect.session_id, business.NEXT_RESPONSE, response, response.task_id, now
            )
        except errors.LocalProtocolError as error:
            # The worker would have to refuse the frame: the caller learns that, not the result.
            self._view.count("answer does not fit a frame")
            problem = business.AttemptError(errors.NEXT_FAILED.code, "USER_CODE", error.message)
            smaller = msgspec.structs.replace(response, result=msgspec.Raw(b"null"), error=problem)
            self._send_response(SendNextResponse(smaller, effect.session_id), now)
        except errors.Unavailable:
            self._view.count("answer not sent")
            self._unsent.setdefault(effect.session_id, []).append(effect)

    def _send(
        self,
        effect: AskWorker | SendInstall | SendExport,
        frame_type: str,
        payload: object,
        now: float,
    ) -> None:
        try:
            self._gateway.send(effect.session_id, frame_type, payload, None, now)
        except errors.Unavailable:
            self._view.count("frame not sent")
            self._unsent.setdefault(effect.session_id, []).append(effect)
        except errors.LocalProtocolError:
            self._view.count("frame that no worker could read")

    def _send_drain(self, effect: SendDrain, now: float) -> None:
        intent = effect.intent
        try:
            self._gateway.drain(effect.session_id, intent.reason, now, intent.deadline_s)
        except errors.AstraflowError:
            self._view.count("drain not sent")

    def _send_stop(self, effect: SendStop, now: float) -> None:
        cancel = effect.cancel
        try:
            frame_id = self._gateway.send(
                effect.session_id, business.CANCEL, cancel, cancel.task_id, now
            )
        except errors.AstraflowError:
            self._view.count("stop not sent")
            return
        lease = self._view.leases.find(cancel.task_id, cancel.attempt)
        if lease is not None:
            if lease.cancel_frame is not None:
                self._view.sent.take(lease.cancel_frame)  # the ack of the later one says as much
            lease.cancel_frame = frame_id
            lease.session_id = effect.session_id
            self._view.sent.note(frame_id, lease)
