"""The engine: the pure half of a scheduler, with its sessions.

A shell drives it so, and does nothing else with it::

    engine.opened(conn, …) / engine.receive(conn, envelope, …) / engine.closed(conn, …)
    engine.submit(…) / engine.cancel(…) / engine.tick(…)
    batch = engine.take_batch(…)      # decided, not yet true
    … commit batch.facts in one transaction, with the epoch …
    engine.committed(batch, …)        # true: acknowledge, dispatch, accept
    for out in engine.take_output(): …

Rule 1: commit, then speak. Nothing that depends on a fact leaves before `committed`.
Rule 2: heartbeats are answered without a transaction: the lease they renew is not stored.
Rule 3: one batch at a time, in order: the next is taken after `committed`. A batch without facts may still say what
        follows from the one before it (the ack of a report that came twice), so it must not overtake that one.
Rule 4: an engine whose batch could not be committed is thrown away, with all its sessions, and made anew from
        the store. A commit whose outcome is unknown is first read back (R16).
Rule 5: an engine that fails in the middle of an input is thrown away, too, because what it holds may be half done
        (`InputFailed` says whose input). One exception: when the session layer fails, before anything of a run is
        touched, only that session is half done, and only it is thrown away (`SessionFailed`, `abandon`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch.resources import Holding
from astraflow.core.dispatch.wishes import Wish
from astraflow.core.engine.batch import (
    AcceptSession,
    Answer,
    AskWorker,
    Batch,
    CommitFrame,
    DrainWish,
    Effect,
    SendAnswer,
    SendDispatch,
    SendDrain,
    SendStop,
)
from astraflow.core.engine.intake import CancelRun, SubmitRun, cancel_run, submit_run
from astraflow.core.engine.operations import (
    drain_worker,
    rebind_run,
    rebind_worker,
    undrain_worker,
)
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.placing import place, say_what_is_waited_for
from astraflow.core.engine.recovery import restore_run
from astraflow.core.engine.reports import on_delivered, on_refused
from astraflow.core.engine.sessions import (
    on_acked,
    on_heartbeat,
    on_missed,
    on_register,
    on_session_ended,
)
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.engine.stopping import (
    ack_deadline,
    expire_affinities,
    expire_leases,
    lose_link,
    notice_links,
    on_timer,
    take_back_unsent,
    withdraw_unacked,
)
from astraflow.core.engine.view import View
from astraflow.core.protocol import business
from astraflow.core.protocol.events import (
    Acked,
    Audited,
    CloseConnection,
    Delivered,
    GatewayEvent,
    HeartbeatArrived,
    IdentityBound,
    Missed,
    Refused,
    RegisterArrived,
    SendFrame,
    SessionEnded,
)
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import Envelope
from astraflow.core.runs.commands import Fail, Refuse
from astraflow.core.runs.facts import Fact
from astraflow.core.workflow.plan import Plan

if TYPE_CHECKING:
    from random import Random

__all__ = ["Engine", "InputFailed", "SessionFailed", "earliest"]

_T = TypeVar("_T")


class SessionFailed(Exception):
    """The session layer failed at a frame of this connection; call `abandon`, and the engine is whole."""


class InputFailed(Exception):
    """The engine failed at something of this worker; it is of no use any more."""

    def __init__(self, tenant: str, worker: str, frame_id: str | None) -> None:
        super().__init__(f"input of worker {worker} of tenant {tenant}")
        self.tenant = tenant
        self.worker = worker
        self.frame_id = frame_id


def earliest(*times: float | None) -> float | None:
    """The first of some points in time, of which any may be missing."""
    first: float | None = None
    for when in times:
        if when is not None and (first is None or when < first):
            first = when
    return first


class Engine:
    """One owner of one shard."""

    def __init__(
        self,
        settings: EngineSettings,
        gateway: Gateway,
        ownership: Ownership,
        rng: Random,
        now: float,
    ) -> None:
        self.view = View(settings, rng)
        self.view.now = self.view.began = now
        self.gateway = gateway
        self.ownership = ownership
        self._answers: list[Answer] = []
        self._owed: dict[str, list[SendAnswer | AskWorker]] = {}
        self._wakes_at = now
        self._listen_until = now
        self._say_waiting_at = now
        self._is_silent = False

    # -- starting ---------------------------------------------------------------------------

    def restore(self, plan: Plan, facts: Iterable[Fact], now: float, at: int) -> None:
        """Take up an active run from the store; call for each before anything else."""
        self._enter(now, at)
        restore_run(self.view, plan, facts)
        self._settle()

    def remember_submission(
        self, tenant: str, key: str, fingerprint: str | None, run_id: str, age_s: float = 0.0
    ) -> None:
        """An idempotency key that is still good, of an active or a finished run."""
        now = self.view.now
        self.view.submissions.remember(tenant, key, fingerprint, run_id, now, age_s)

    # -- inputs -----------------------------------------------------------------------------

    def submit(self, request: SubmitRun, now: float, at: int) -> None:
        self._enter(now, at)
        submit_run(self.view, request)
        self._settle()

    def cancel(self, request: CancelRun, now: float, at: int) -> None:
        self._enter(now, at)
        cancel_run(self.view, request)
        self._settle()

    def opened(self, conn: str, now: float, certificate: object = None) -> None:
        self.gateway.opened(conn, now, certificate)

    def receive(self, conn: str, envelope: Envelope, now: float, at: int) -> None:
        """A frame that the codec accepted.

        Raises:
            SessionFailed, InputFailed: Rule 5.
        """
        self._enter(now, at)
        try:
            self.gateway.feed(conn, envelope, now, at / 1000)
        except Exception as error:
            raise SessionFailed from error
        self._take_events()
        if self.view.unlinked:
            notice_links(self.view, self.gateway)

    def abandon(self, conn: str, now: float, at: int) -> None:
        """Throw away a connection at whose frame the session layer failed, and its session.

        Raises: AssertionError, when there is more that is not whole; InputFailed.
        """
        self._enter(now, at)
        self.gateway.abandon(conn, now)
        self.gateway.check()
        self._take_events()

    def bad_frame(self, conn: str, error: errors.AstraflowError, now: float, at: int) -> None:
        """A frame that the codec refused."""
        self._enter(now, at)
        self.gateway.bad_frame(conn, error, now)
        self._take_events()

    def closed(self, conn: str, now: float, at: int) -> None:
        self._enter(now, at)
        whose = self.gateway.closed(conn, now)
        self._take_events()
        if whose is not None:
            lose_link(self.view, self.gateway, *whose)
            self._take_events()
            self._settle()

    def tick(self, now: float, at: int) -> None:
        """Let time pass. Call it when `deadline` is due, after everything readable was read."""
        self._enter(now, at)
        self._notice_stall(now)
        self._fall_silent(now)
        self.gateway.tick(now, at / 1000)
        self._take_events()
        if now >= self._listen_until:
            expire_leases(self.view)
        self.view.queue.advance(now)
        for timer in self.view.timers.due(now):
            on_timer(self.view, timer)
        withdraw_unacked(self.view, self.gateway)
        expire_affinities(self.view)
        if now >= self._say_waiting_at:
            self._say_waiting_at = now + self.view.settings.say_waiting_after_s
            say_what_is_waited_for(self.view)
        self._settle()

    def deadline(self) -> float | None:
        """When `tick` is due."""
        view = self.view
        lease_end = view.leases.deadline()
        if lease_end is not None and lease_end < self._listen_until:
            lease_end = self._listen_until
        due = earliest(
            view.now if view.has_more_to_place else None,
            self.gateway.deadline(),
            lease_end,
            view.timers.deadline(),
            ack_deadline(view),
            view.queue.deadline(),
            view.affinity.deadline(),
            None if self._is_silent else self.ownership.deadline(),
            self._say_waiting_at if view.queue.has_sleepers else None,
        )
        self._wakes_at = inf if due is None else due
        return due

    # -- what operators ask -----------------------------------------------------------------

    def restore_worker(
        self,
        tenant: str,
        worker_id: str,
        wish: DrainWish | None = None,
        incarnation: int = 0,
    ) -> None:
        """A worker that is stored, the last boot of it that registered, and what is wished of it; call it before
        anything is received."""
        self.view.workers.expect(tenant, worker_id).incarnation = incarnation
        if wish is not None:
            self.view.drains[tenant, worker_id] = wish

    def restore_holding(self, holding: Holding) -> None:
        """A resource that is stored; the worker that holds it may come back."""
        self.view.resources.add(holding)

    def restore_wish(self, wish: Wish) -> None:
        """A wish that is stored, fulfilled or not; a worker that registers is compared with it."""
        self.view.wishes.put(wish)

    def restore_affinity(
        self, tenant: str, key: str, worker_id: str, age_s: float, left_s: float
    ) -> None:
        """A key that is stored. Its worker has the grace to come back, as after a loss."""
        now = self.view.now
        left_s = min(max(left_s, 0.0), self.view.settings.affinity_grace_s)
        self.view.affinity.restore(tenant, key, worker_id, now - age_s, now + left_s)
        self.view.workers.expect(tenant, worker_id)

    def operate(self, change: Callable[[View], _T], now: float, at: int) -> _T:
        """Let somebody ask for something about packages or resources. What `change` raises is the caller's."""
        self._enter(now, at)
        try:
            return change(self.view)
        finally:
            self._settle()

    def audit(
        self,
        tenant: str,
        who: str,
        action: str,
        corr: str | None,
        worker: str = "",
        *,
        code: errors.Code | None = None,
    ) -> None:
        """Keep who asked for what, with the facts of the same batch (PROTOCOL §6); `code`: why it was refused."""
        refused = None if code is None else code.code
        self.view.batch.notices.append(Audited("", tenant, worker, action, refused, who, corr))

    def drain_worker(
        self, tenant: str, worker_id: str, wish: DrainWish, now: float, at: int
    ) -> None:
        """Raises: NotFound."""
        self._enter(now, at)
        drain_worker(self.view, tenant, worker_id, wish)

    def undrain_worker(self, tenant: str, worker_id: str, now: float, at: int) -> None:
        """Raises: NotFound."""
        self._enter(now, at)
        undrain_worker(self.view, tenant, worker_id)

    def rebind_worker(self, tenant: str, worker_id: str, now: float, at: int) -> None:
        """Raises: NotFound."""
        self._enter(now, at)
        rebind_worker(self.view, tenant, worker_id)

    def rebind_run(
        self, tenant: str, run_id: str, now: float, at: int, *, restart: bool = False
    ) -> None:
        """Raises: NotFound."""
        self._enter(now, at)
        rebind_run(self.view, tenant, run_id, restart=restart)
        self._settle()

    # -- commit, then speak -----------------------------------------------------------------

    def take_batch(self, now: float, at: int) -> Batch | None:
        """Place what can be placed, and return what is to be committed; None if there is nothing."""
        self._enter(now, at)
        if self.ownership.may_speak(now):
            place(self.view)
            self._settle()
        else:
            self.view.has_more_to_place = False
        batch = self.view.batch
        if batch.is_empty:
            return None
        self.view.batch = Batch()
        return batch

    def committed(self, batch: Batch, now: float, at: int) -> None:
        """The batch is durable: say what it allows to be said."""
        self._enter(now, at)
        for effect in batch.effects:
            self._perform(effect, now, at)
        self._take_events()

    def take_output(self) -> list[SendFrame | CloseConnection]:
        """Frames to put on sockets and connections to close, in order."""
        return self.gateway.take_output()

    def take_answers(self) -> list[Answer]:
        """Answers to callers of the API."""
        answers, self._answers = self._answers, []
        return answers

    def check(self) -> None:
        """Assert what must always hold between two inputs (I2, I8, I15, I23)."""
        view = self.view
        self.gateway.check()
        view.leases.check()
        view.workers.check()
        view.queue.check()
        view.affinity.check()
        view.resources.check()
        held: dict[tuple[str, str], int] = {}
        for lease in view.leases:
            run = view.run_of(lease)
            task = run.tasks[lease.task]
            assert task.is_held, f"a lease outlives its attempt: {lease.task_id}"
            assert task.attempt == lease.attempt
            assert lease.is_lent == (task.open_calls > 0), f"{lease.task_id} lends wrongly"
            if lease.is_lent:
                continue
            holder = (lease.tenant, lease.worker_id)
            held[holder] = held.get(holder, 0) + 1
        for worker in view.workers:
            holds = held.get((worker.tenant, worker.worker_id), 0)
            assert worker.used == holds, f"{worker.worker_id} miscounts"
        for run in view.runs.values():
            assert not run.is_terminal, "an ended run is still in memory"

    # -- inside -----------------------------------------------------------------------------

    def _enter(self, now: float, at: int) -> None:
        assert now >= self.view.now, "monotonic time does not go back"
        self.view.now = now
        self.view.at = at

    def _notice_stall(self, now: float) -> None:
        """A tick that comes long after it was due: this process stood still, and did not listen."""
        stall_s = self.view.settings.stall_s
        if now - self._wakes_at > stall_s:
            self._listen_until = now + stall_s
            self.view.count("own stall noticed")

    def _fall_silent(self, now: float) -> None:
        """PROTOCOL §5.10: past its right to speak a scheduler "closes its sockets"."""
        if self.ownership.may_speak(now):
            self._is_silent = False
        elif not self._is_silent:
            self._is_silent = True
            self.gateway.close_all()

    def _settle(self) -> None:
        """Fail what a decision found to have no possible place."""
        while self.view.unplaceable:
            run, task, problem = self.view.unplaceable.pop()
            self.view.decide(run, Fail(task, problem))

    def _take_events(self) -> None:
        for event in self.gateway.take_events():
            try:
                self._on_event(event)
            except Exception as error:
                frame_id = event.envelope.id if isinstance(event, Delivered) else None
                raise InputFailed(event.tenant, event.worker, frame_id) from error
        self._settle()

    def _on_event(self, event: GatewayEvent) -> None:
        view = self.view
        if isinstance(event, Delivered):
            on_delivered(view, event)
        elif isinstance(event, Acked):
            on_acked(view, event)
            for owed in self._owed.pop(event.session_id, ()):
                view.batch.effects.append(owed)
        elif isinstance(event, HeartbeatArrived):
            stop = on_heartbeat(view, event)
            self.gateway.answer_heartbeat(event.session_id, event.frame_id, stop, view.now)
        elif isinstance(event, RegisterArrived):
            on_register(view, event)
        elif isinstance(event, SessionEnded):
            on_session_ended(view, event)
            self._owed.pop(event.session_id, None)
        elif isinstance(event, Missed):
            on_missed(view, event)
        elif isinstance(event, Refused):
            on_refused(view, event)
        elif isinstance(event, IdentityBound | Audited):
            view.batch.notices.append(event)
        else:
            view.count(f"event: {type(event).__name__}")

    def _perform(self, effect: Effect, now: float, at: int) -> None:
        if isinstance(effect, SendDispatch):
            self._send_dispatch(effect, now)
        elif isinstance(effect, SendStop):
            self._send_stop(effect, now)
        elif isinstance(effect, SendAnswer):
            self._send_answer(effect, now)
        elif isinstance(effect, SendDrain):
            self._send_drain(effect, now)
        elif isinstance(effect, AskWorker):
            self._ask_worker(effect, now)
        elif isinstance(effect, CommitFrame):
            self.gateway.committed(effect.session_id, effect.seq)
        elif isinstance(effect, AcceptSession):
            self.gateway.accept(effect.session_id, now, at / 1000)
        else:
            assert isinstance(effect, Answer), f"unknown effect: {effect!r}"
            self._answers.append(effect)

    def _send_dispatch(self, effect: SendDispatch, now: float) -> None:
        dispatch = effect.dispatch
        lease = self.view.leases.find(dispatch.task_id, dispatch.attempt)
        if lease is None:
            return  # it was given up while the commit was under way
        try:
            frame_id = self.gateway.send(
                effect.session_id, business.DISPATCH, dispatch, dispatch.task_id, now
            )
        except errors.AstraflowError as error:
            # No such session any more, or its queue is full: the frame never reached the socket. Or
            # the worker would have to refuse the frame: then no other try will do better.
            is_ours = isinstance(error, errors.LocalProtocolError)
            code = errors.DISPATCH_INVALID if is_ours else error.code
            run = self.view.run_of(lease)
            refuse = Refuse(lease.task, lease.attempt, lease.worker_id, code.code, error.message)
            self.view.decide(run, refuse)
            return
        lease.frame_id = frame_id
        lease.session_id = effect.session_id
        self.view.frames[frame_id] = (dispatch.task_id, dispatch.attempt)
        if not self.gateway.is_connected(effect.session_id):
            take_back_unsent(self.view, self.gateway, lease)

    def _send_answer(self, effect: SendAnswer, now: float) -> None:
        response = effect.response
        try:
            self.gateway.send(
                effect.session_id, business.NEXT_RESPONSE, response, response.task_id, now
            )
        except errors.LocalProtocolError as error:
            # The worker would have to refuse the frame: the caller learns that, not the result.
            self.view.count("answer does not fit a frame")
            problem = business.TaskError(errors.NEXT_FAILED.code, "USER_CODE", error.message)
            smaller = msgspec.structs.replace(response, result=msgspec.Raw(b"null"), error=problem)
            self._send_answer(SendAnswer(smaller, effect.session_id), now)
        except errors.Unavailable:
            # Without a session it is derived again at the next register, with a full queue at the next ack.
            self.view.count("answer not sent")
            self._owed.setdefault(effect.session_id, []).append(effect)

    def _ask_worker(self, effect: AskWorker, now: float) -> None:
        try:
            self.gateway.send(effect.session_id, effect.frame_type, effect.payload, None, now)
        except errors.Unavailable:
            # Without a session it is derived again at the next register, with a full queue at the next ack.
            self.view.count("frame not sent")
            self._owed.setdefault(effect.session_id, []).append(effect)
        except errors.LocalProtocolError:
            self.view.count("frame that no worker could read")

    def _send_drain(self, effect: SendDrain, now: float) -> None:
        wish = effect.wish
        try:
            self.gateway.drain(effect.session_id, wish.reason, now, wish.deadline_s)
        except errors.AstraflowError:
            self.view.count("drain not sent")  # owed again at the next register

    def _send_stop(self, effect: SendStop, now: float) -> None:
        cancel = effect.cancel
        try:
            frame_id = self.gateway.send(
                effect.session_id, business.CANCEL, cancel, cancel.task_id, now
            )
        except errors.AstraflowError:
            self.view.count("stop not sent")  # owed again at the next register
            return
        lease = self.view.leases.find(cancel.task_id, cancel.attempt)
        if lease is not None:
            lease.cancel_frame = frame_id
            lease.session_id = effect.session_id
            self.view.frames[frame_id] = (cancel.task_id, cancel.attempt)
