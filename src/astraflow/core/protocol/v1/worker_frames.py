"""From protocol 1 to protocol 2: the frames of a worker.

What the adapter cannot read it passes on as it is: the codec of protocol 2 finds the same fault and the gateway answers
it, so that both protocols refuse alike. `biz.v1.*` is known to nobody: that is how an unknown type is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from astraflow.core import errors
from astraflow.core.protocol import business, control, limits
from astraflow.core.protocol.v1 import frames
from astraflow.core.protocol.v1.frames import V1Envelope, V1Problem
from astraflow.core.protocol.v1.link import instance_id_of
from astraflow.core.protocol.v1.reports import Fields, feedback_fields, result_fields, without_nulls
from astraflow.core.protocol.wire import AttemptRef, Name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astraflow.core.protocol.v1.attempts import AttemptTable, V1Attempt
    from astraflow.core.protocol.v1.frames import LeasedAttempt
    from astraflow.core.protocol.v1.link import V1Link
    from astraflow.core.protocol.v1.resending import Resending

ANY_RUNTIME: Final = "runtime.any"
NACK_CODE: Final = errors.CMD_UNKNOWN.code
_NO_PROTOCOL: Final = -1

_decode_handshake: Final = msgspec.json.Decoder(frames.V1Handshake).decode
_decode_register: Final = msgspec.json.Decoder(frames.V1Register).decode
_decode_ack: Final = msgspec.json.Decoder(frames.V1Ack).decode
_decode_error: Final = msgspec.json.Decoder(frames.V1Error).decode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_name: Final = msgspec.json.Decoder(Name).decode
_encode: Final = msgspec.json.Encoder().encode


class WorkerFrames:
    """Passes the frames of a worker on."""

    def __init__(
        self,
        link: V1Link,
        attempts: AttemptTable,
        resending: Resending,
        held: Callable[[str, str], Sequence[LeasedAttempt]],
    ) -> None:
        self._link = link
        self._attempts = attempts
        self._resending = resending
        self._held = held
        self.is_registered = False
        """Whether a register was passed on: what follows waits until the session is open."""

    def on_frame(self, frame: V1Envelope, now: float) -> None:
        kind = frame.type
        payload = without_nulls(frame.payload)
        if payload is not frame.payload:
            frame = msgspec.structs.replace(frame, payload=payload)
        if kind == frames.RESULT:
            self._on_result(frame)
        elif kind == frames.FEEDBACK:
            self._on_feedback(frame)
        elif kind == frames.ACK:
            self._on_ack(frame)
        elif kind == frames.HEARTBEAT:
            self._on_heartbeat(frame)
        elif kind == frames.COMMAND_ERROR:
            self._on_command_error(frame)
        elif kind == frames.ERROR:
            self._on_error(frame)
        elif kind == frames.NEXT_REQUEST:
            self._on_next_request(frame)
        elif kind == frames.PKG_EVENT:
            self._link.report(frame, business.PKG_EVENT, frame.payload, frame.corr)
        elif kind == frames.HANDSHAKE:
            self._on_handshake(frame)
        elif kind == frames.REGISTER:
            self._on_register(frame, now)
        else:
            unknown = f"biz.v1.{kind}"[: limits.NAME_CHARS]
            self._link.report(frame, unknown, frame.payload, None)

    # -- opening ------------------------------------------------------------------------------

    def _on_handshake(self, frame: V1Envelope) -> None:
        try:
            said = _decode_handshake(frame.payload)
        except msgspec.ValidationError:
            self._link.tell(frame, control.HANDSHAKE, frame.payload)
            return
        worker = said.worker
        instance = worker.worker_instance_id or frame.sender.id
        name = worker.worker_name or said.worker_name or said.worker_id or frame.sender.id
        handshake = control.Handshake(
            2 if said.protocol == frames.PROTOCOL else _NO_PROTOCOL,
            control.Auth(said.auth.mode, said.auth.token, said.auth.fingerprint),
            control.HandshakeWorker(
                instance_id_of(instance), worker.incarnation, name, worker.version, worker.hostname
            ),
        )
        self._link.tell(frame, control.HANDSHAKE, handshake)

    def _on_register(self, frame: V1Envelope, now: float) -> None:
        try:
            said = _decode_register(frame.payload)
        except msgspec.ValidationError:
            self._link.tell(frame, control.REGISTER, frame.payload)
            return
        inventory: list[AttemptRef] = []
        if not self.is_registered:
            held = self._held(frame.tenant, instance_id_of(frame.sender.id))
            if said.inflight is not None:
                named = {ref.task_id for ref in said.inflight}
                held = [one for one in held if one.task_id in named]
            self._attempts.rebind(held, now)
            inventory = self._attempts.named()
        self.is_registered = True
        self._link.tell(frame, control.REGISTER, _register_of(said, inventory))

    def _on_heartbeat(self, frame: V1Envelope) -> None:
        """PROTOCOL §8: "Any heartbeat renews all its leases"."""
        fields = _fields_of(frame.payload)
        payload: object = frame.payload
        if fields is not None:
            payload = {**fields, "attempts": self._attempts.named()}
        self._link.tell(frame, control.HEARTBEAT, payload)

    # -- answers to commands --------------------------------------------------------------------

    def _on_ack(self, frame: V1Envelope) -> None:
        try:
            ack = _decode_ack(frame.payload)
        except msgspec.ValidationError as error:
            # Here and not by the gateway: an ack of protocol 2 needs no `for`.
            self._link.say_error(frame.id, errors.PROTOCOL_BAD_PAYLOAD, str(error))
            return
        command = self._resending.take(ack.for_)
        if command is None:
            self._link.count("acks_of_nothing")
        elif ack.ok and ack.error is None:
            self._take(self._attempts.of_frame(ack.for_))
        else:
            why = V1Problem(ack.error) if isinstance(ack.error, str) else ack.error
            self._refuse(frame, command, why or V1Problem(NACK_CODE, "refused by the worker"))

    def _refuse(self, frame: V1Envelope, command: V1Envelope, error: V1Problem) -> None:
        """A command was not taken."""
        attempt = self._attempts.of_frame(command.id)
        if attempt is not None:
            self._take(attempt)
            self._report_refusal(frame, attempt, error.code, error.message)
        elif command.type in (frames.PKG_INSTALL, frames.PKG_UNINSTALL):
            named = _decode_fields(command.payload)
            told = {"name": named["name"], "version": named["version"], "status": "failed"}
            details = {"code": error.code, "message": error.message}
            self._link.report(frame, business.PKG_EVENT, {**told, "details": details}, None)
        else:
            self._link.count("commands_refused")

    def _take(self, attempt: V1Attempt | None) -> None:
        """The worker has an attempt: its dispatch needs no more sending, and the gateway may know."""
        if attempt is None or attempt.is_taken:
            return
        attempt.is_taken = True
        assert attempt.frame_id is not None and attempt.command_seq is not None
        self._resending.take(attempt.frame_id)
        self._link.receiving.commit(attempt.command_seq)

    def _on_error(self, frame: V1Envelope) -> None:
        try:
            said = _decode_error(frame.payload)
        except msgspec.ValidationError:
            self._link.tell(frame, control.ERROR, frame.payload)
            return
        attempt = None
        if said.for_ is not None:
            attempt = self._attempts.of_frame(said.for_)
        elif frame.corr is not None:
            attempt = self._attempts.meant(frame.corr, frame.seq)
        if attempt is not None:
            self._take(attempt)
            self._report_refusal(frame, attempt, said.code, said.message)
            return
        command = None if said.for_ is None else self._resending.take(said.for_)
        if command is not None:
            self._refuse(frame, command, V1Problem(said.code, said.message))
        else:
            about = said.for_ or self._link.id_of(frame)
            told = control.ControlError(about, said.code, said.message)
            self._link.send_own(control.ERROR, told)

    def _report_refusal(
        self, frame: V1Envelope, attempt: V1Attempt, code: str, message: str
    ) -> None:
        refusal = business.ExecError(
            attempt.run_id, attempt.task_id, attempt.attempt, code, message
        )
        self._link.report(frame, business.EXEC_ERROR, refusal, attempt.task_id, attempt)

    # -- reports --------------------------------------------------------------------------------

    def _on_result(self, frame: V1Envelope) -> None:
        fields = _fields_of(frame.payload)
        task_id = _task_of(frame, fields)
        if fields is None or task_id is None:
            self._link.report(frame, business.RESULT, frame.payload, frame.corr)
            return
        first = self._attempts.first_report(task_id, frame.seq)
        if first is not None:
            self._link.count("repeated")
            self._link.repeat(first, frame.id)
            return
        attempt = self._attempts.meant(task_id, frame.seq)
        run_id = _name_in(fields, "run_id") or (attempt.run_id if attempt is not None else "")
        is_rebound = attempt is not None and attempt.seq is None
        if not is_rebound and self._attempts.is_gap(run_id, frame.seq):
            self._refuse_gap(frame, run_id)
            return
        self._take(attempt)
        fields = result_fields(fields, frame.sender.id, instance_id_of(frame.sender.id))
        patched = _patched(fields, run_id, task_id, _number_of(attempt, frame))
        if self._link.report(frame, business.RESULT, patched, task_id, attempt):
            self._attempts.note_result(task_id, frame.seq, self._link.id_of(frame))

    def _refuse_gap(self, frame: V1Envelope, run_id: str) -> None:
        self._link.count("gaps")
        message = f"seq {frame.seq} of run {run_id}: {errors.RESULT_SEQ_GAP.says}"
        self._link.say_error(frame.id, errors.RESULT_SEQ_GAP, message)

    def _on_feedback(self, frame: V1Envelope) -> None:
        self._on_report(frame, business.FEEDBACK)

    def _on_next_request(self, frame: V1Envelope) -> None:
        self._on_report(frame, business.NEXT_REQUEST)

    def _on_report(self, frame: V1Envelope, frame_type: str) -> None:
        """A report that ends nothing."""
        fields = _fields_of(frame.payload)
        task_id = _task_of(frame, fields)
        if fields is None or task_id is None:
            self._link.report(frame, frame_type, frame.payload, frame.corr)
            return
        attempt = self._attempts.meant(task_id, frame.seq)
        self._take(attempt)
        run_id = _name_in(fields, "run_id") or (attempt.run_id if attempt is not None else "")
        if frame_type == business.FEEDBACK:
            fields = feedback_fields(fields, attempt)
        patched = _patched(fields, run_id, task_id, _number_of(attempt, frame))
        self._link.report(frame, frame_type, patched, task_id)

    def _on_command_error(self, frame: V1Envelope) -> None:
        fields = _fields_of(frame.payload)
        task_id = _task_of(frame, fields)
        if fields is None or task_id is None:
            self._link.report(frame, business.EXEC_ERROR, frame.payload, frame.corr)
            return
        attempt = self._attempts.meant(task_id, frame.seq)
        self._take(attempt)
        run_id = _name_in(fields, "run_id") or (attempt.run_id if attempt is not None else "")
        patched = _patched(fields, run_id, task_id, _number_of(attempt, frame))
        self._link.report(frame, business.EXEC_ERROR, patched, task_id, attempt)


def _register_of(said: frames.V1Register, inventory: list[AttemptRef]) -> control.Register:
    given = said.capabilities
    features = given.features
    if given.runtimes is None and ANY_RUNTIME not in features:
        # A worker that names no runtime has not learnt to: it runs what its packages bring.
        features = (*features, ANY_RUNTIME)[: limits.MAX_PACKAGES]
    concurrency = control.Concurrency(
        given.concurrency.max_parallel, given.concurrency.per_node_limits
    )
    return control.Register(
        control.Capabilities(concurrency, given.runtimes or (), features),
        said.payload_types,
        tuple(
            control.RegisteredPackage(one.name, one.version, one.status, one.manifest_sha256)
            for one in said.packages
        ),
        said.labels,
        tuple(inventory[: limits.MAX_INVENTORY]),
    )


def _fields_of(payload: Raw) -> Fields | None:
    """The members of a payload, unread; None if it is no object."""
    try:
        return _decode_fields(payload)
    except msgspec.ValidationError:
        return None


def _name_in(fields: Fields, key: str) -> str | None:
    try:
        return _decode_name(fields[key])
    except (KeyError, msgspec.ValidationError):
        return None


def _task_of(frame: V1Envelope, fields: Fields | None) -> str | None:
    """PROTOCOL §4: "`corr` of everything about a task is its `task_id`"."""
    return frame.corr if fields is None or "task_id" not in fields else _name_in(fields, "task_id")


def _number_of(attempt: V1Attempt | None, frame: V1Envelope) -> int:
    """The number of an attempt. Of one that this connection does not know, what stands for it."""
    return attempt.attempt if attempt is not None else max(1, frame.seq or 1)


def _patched(fields: Fields, run_id: str, task_id: str, attempt: int) -> Fields:
    return {"run_id": run_id, **fields, "task_id": task_id, "attempt": attempt}
