"""One connection of a worker of protocol 1.

After every input: give `take_for_scheduler` to the gateway and `take_for_worker` to the socket, and call `tick` no
later than at `deadline`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.protocol import business, limits
from astraflow.core.protocol.v1 import frames
from astraflow.core.protocol.v1.attempts import AttemptTable, V1Attempt
from astraflow.core.protocol.v1.commands import SchedulerFrames
from astraflow.core.protocol.v1.link import V1Link
from astraflow.core.protocol.v1.resending import Resending
from astraflow.core.protocol.v1.worker_frames import WorkerFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.v1.frames import LeasedAttempt, V1Envelope

EARLY_FRAMES: Final = 64
EARLY_BYTES: Final = limits.MAX_FIRST_BYTES
"""What may come between the register and the open session; the rest is dropped, and its worker sends it again."""
FULL_WAIT_S: Final = 1.0
"""Until another try to report what found no room in the window."""


class V1Adapter:
    """Speaks protocol 1 with a worker, and protocol 2 with the gateway in its place."""

    def __init__(
        self,
        ids: IdSource,
        rng: Random,
        held: Callable[[str, str], Sequence[LeasedAttempt]],
    ) -> None:
        self._link = V1Link(ids)
        self._attempts = AttemptTable()
        self._resending = Resending(rng)
        self._worker = WorkerFrames(self._link, self._attempts, self._resending, held)
        self._scheduler = SchedulerFrames(self._link, self._attempts, self._resending)
        self._early: list[V1Envelope] = []
        self._early_bytes = 0

    @property
    def counters(self) -> dict[str, int]:
        return self._link.counters

    def from_worker(self, raw: bytes, now: float, ts: str) -> None:
        """Take a message off the socket. Raises: BadFrame."""
        frame = frames.decode_v1(raw)
        self._link.ts = ts
        self._link.bind(frame)
        if not self._worker.is_registered or self._scheduler.is_open:
            self._worker.on_frame(frame, now)
            self._link.send_ack()
            return
        self._early_bytes += len(raw)
        if len(self._early) < EARLY_FRAMES and self._early_bytes <= EARLY_BYTES:
            self._early.append(frame)
        else:
            self._link.count("too_early")

    def from_scheduler(self, raw: bytes, now: float) -> None:
        """Take a frame that the gateway sends."""
        self._scheduler.on_frame(raw, now)
        if self._early and self._scheduler.is_open:
            early, self._early = self._early, []
            for frame in early:
                self._worker.on_frame(frame, now)
        self._link.send_ack()

    def tick(self, now: float, ts: str) -> None:
        """Send again what is due, and end what has lasted too long."""
        self._link.ts = ts
        again, given_up = self._resending.due(now)
        for frame in again:
            self._link.count("sent_again")
            self._link.put(frame)
        for frame in given_up:
            self._link.count("given_up")
            attempt = self._attempts.of_frame(frame.id)
            if attempt is not None:
                self._give_up(attempt)
        for attempt in self._attempts.take_overdue(now):
            self._end(attempt, now)
        self._link.send_ack()

    def deadline(self) -> float | None:
        at = min(self._resending.deadline(), self._attempts.deadline())
        return None if at == inf else at

    def take_for_worker(self) -> list[bytes]:
        taken, self._link.for_worker = self._link.for_worker, []
        return taken

    def take_for_scheduler(self) -> list[bytes]:
        taken, self._link.for_scheduler = self._link.for_scheduler, []
        return taken

    def check(self) -> None:
        self._attempts.check()
        self._link.receiving.check()

    def _give_up(self, attempt: V1Attempt) -> None:
        """The worker has not acknowledged a dispatch however often it was sent."""
        self._scheduler.withdraw(attempt)
        code = errors.DISPATCH_WITHDRAWN
        refusal = business.ExecError(
            attempt.run_id, attempt.task_id, attempt.attempt, code.code, code.says
        )
        self._link.report_own(business.EXEC_ERROR, refusal, attempt.task_id, attempt)

    def _end(self, attempt: V1Attempt, now: float) -> None:
        """PROTOCOL §8: "a node timeout is mandatory (default 1 h)"."""
        self._link.count("timeouts")
        code = errors.RUNNER_TIMEOUT
        failure = business.AttemptError(code.code, "TIMEOUT", code.says)
        result = business.Result(
            attempt.run_id,
            attempt.task_id,
            attempt.attempt,
            "FAILED",
            duration_ms=int(frames.DEFAULT_TIMEOUT_S * 1000),
            error=failure,
        )
        if not self._link.report_own(business.RESULT, result, attempt.task_id, attempt):
            attempt.due = now + FULL_WAIT_S
