"""Planted bugs: the test of the test (RELIABILITY §5.6).

Each takes one rule away from the product, in a simulated world only, and the simulator must notice. A bug is a
context manager: inside it, worlds are built from the broken product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from astraflow import errors
from astraflow.agent import holdings
from astraflow.agent.agent import Agent
from astraflow.engine import engine, sessions, stopping
from astraflow.engine.batch import AcceptSession, CommitFrame
from astraflow.engine.ownership import Ownership
from astraflow.protocol.gateway import Gateway
from astraflow.protocol.receive_window import ReceiveWindow
from astraflow.protocol.send_window import SendWindow
from astraflow.protocol.worker_session import WorkerSession
from astraflow.runs import decisions, transitions
from astraflow.runs.commands import Refuse
from astraflow.runs.states import Leased, Lost, Running, Stopping
from tests.sim.worker import WorkerProcess

__all__ = ["PLANTED"]


@contextmanager
def ackfirst() -> Iterator[None]:
    """Acknowledge a report before its effect is committed (against R1)."""
    take_batch = engine.Engine.take_batch

    def broken(self: engine.Engine, now: float, at: int) -> Any:
        batch = take_batch(self, now, at)
        for effect in batch.effects if batch is not None else ():
            if isinstance(effect, CommitFrame):
                self.gateway.committed(effect.session_id, effect.seq)
        return batch

    with patch.object(engine.Engine, "take_batch", broken):
        yield


@contextmanager
def noguard() -> Iterator[None]:
    """Accept a report whatever its attempt (against R7)."""

    def broken(run: Any, task: int, attempt: int, worker: str) -> bool:
        return isinstance(run.tasks[task].state, Leased | Running | Stopping | Lost)

    with patch.object(decisions, "is_current", broken):
        yield


@contextmanager
def sameattempt() -> Iterator[None]:
    """Give a task out again under the number of its last attempt (against R6)."""

    def broken(run: Any, task: int) -> int:
        return max(1, int(run.tasks[task].attempt))

    def leased(task: Any, fact: Any) -> Any:
        task.attempt = fact.attempt - 1
        return original(task, fact)

    original = transitions._leased
    table = dict(transitions.TRANSITIONS)
    table.update({name: leased for name, apply in table.items() if apply is original})
    with (
        patch.object(decisions, "next_attempt", broken),
        patch.object(transitions, "TRANSITIONS", table),
    ):
        yield


@contextmanager
def noreconcile() -> Iterator[None]:
    """A register requeues nothing, and any heartbeat renews all leases of its worker (against R4, R5)."""
    from astraflow.dispatch.leases import LeaseTable

    renew = LeaseTable.renew

    def broken(self: Any, tenant: str, worker_id: str, named: Any, now: float) -> Any:
        for lease in self.of_worker(tenant, worker_id):
            lease.until = now + lease.ttl_s
        return renew(self, tenant, worker_id, named, now)

    with (
        patch.object(sessions, "_reconcile", lambda view, worker, event: None),
        patch.object(LeaseTable, "renew", broken),
    ):
        yield


@contextmanager
def fenceresume() -> Iterator[None]:
    """A worker that fenced itself resumes its session, and any heartbeat renews all (against R8)."""
    from astraflow.dispatch.leases import LeaseTable

    renew = LeaseTable.renew

    def broken(self: Any, tenant: str, worker_id: str, named: Any, now: float) -> Any:
        for lease in self.of_worker(tenant, worker_id):
            lease.until = now + lease.ttl_s
        return renew(self, tenant, worker_id, named, now)

    with (
        patch.object(Agent, "_fence_session", lambda self, now: None),
        patch.object(LeaseTable, "renew", broken),
    ):
        yield


@contextmanager
def resumehole() -> Iterator[None]:
    """Results that finish while offline are not queued (against R10)."""
    send_report = Agent._send_report

    def broken(self: Agent, held: Any, now: float) -> None:
        if self.session.is_ready:
            send_report(self, held, now)

    with patch.object(Agent, "_send_report", broken):
        yield


@contextmanager
def hostsurvives() -> Iterator[None]:
    """Hosts outlive a frozen or killed worker: no kernel timer, no PDEATHSIG, no left-overs killed."""
    with (
        patch.object(WorkerProcess, "host_dies_with_worker", False),
        patch.object(WorkerProcess, "host_has_timer", False),
    ):
        yield


@contextmanager
def ackreissue() -> Iterator[None]:
    """At the ack deadline a new attempt is issued without proof that the old one does not run."""

    def broken(view: Any, gateway: Any, timer: Any) -> None:
        lease = view.leases.find(timer.task_id, timer.attempt)
        if lease is not None and not lease.is_taken:
            code = errors.DISPATCH_WITHDRAWN.code
            view.decide(
                view.run_of(lease), Refuse(lease.task, lease.attempt, lease.worker_id, code)
            )

    with patch.object(stopping, "_ack_due", broken):
        yield


@contextmanager
def latedispatch() -> Iterator[None]:
    """A dispatch that waited for longer than its lease is started all the same (against §5.3)."""

    def broken(
        self: holdings.Holdings, dispatch: Any, since_sent_at: float | None, now: float
    ) -> str | None:
        if dispatch.attempt <= self._highest.get(dispatch.task_id, 0):
            return errors.DISPATCH_STALE.code
        return None

    offer = holdings.Holdings.offer

    def offered(self: holdings.Holdings, dispatch: Any, sent_at: float | None, now: float) -> Any:
        return offer(self, dispatch, now, now)

    with (
        patch.object(holdings.Holdings, "_refusal", broken),
        patch.object(holdings.Holdings, "offer", offered),
    ):
        yield


@contextmanager
def nofence() -> Iterator[None]:
    """The worker never fences itself, nor do its hosts."""
    with (
        patch.object(holdings.Holdings, "past_fence", lambda self, now: []),
        patch.object(WorkerProcess, "host_has_timer", False),
    ):
        yield


@contextmanager
def heardfence() -> Iterator[None]:
    """The fence counts from anything heard, not from an answered heartbeat (against R9)."""
    feed = Agent.feed

    def broken(self: Agent, envelope: Any, now: float) -> None:
        for held in self.holdings.working():
            held.fence_at = max(held.fence_at, holdings.fence_of(now, held.ttl_s))
        feed(self, envelope, now)

    with patch.object(Agent, "feed", broken):
        yield


@contextmanager
def staleowner() -> Iterator[None]:
    """A superseded scheduler keeps answering heartbeats (against §5.10)."""
    with patch.object(Ownership, "may_speak", lambda self, now: True):
        yield


@contextmanager
def reregister() -> Iterator[None]:
    """A register in mid-session reconciles like a first one."""
    on_register = sessions.on_register

    def broken(view: Any, event: Any) -> None:
        import msgspec

        on_register(view, msgspec.structs.replace(event, first=True))

    with patch.object(engine, "on_register", broken):
        yield


@contextmanager
def lostcancel() -> Iterator[None]:
    """A cancel lives only in the window: it is not derived again after a new session (against §5.7)."""

    def broken(view: Any, worker: Any, lease: Any) -> None:
        from astraflow.runs.commands import Start

        lease.until = max(lease.until, view.now + lease.ttl_s)
        lease.session_id = worker.session_id
        lease.is_taken = True
        view.decide(view.run_of(lease), Start(lease.task, lease.attempt, lease.worker_id))

    with (
        patch.object(sessions, "_rebind", broken),
        patch.object(stopping, "_stop_due", lambda view, timer: None),
    ):
        yield


@contextmanager
def poison() -> Iterator[None]:
    """A result that the receiver must refuse is sent, and sent again for ever (against §1)."""
    from astraflow.protocol import codec

    with patch.object(codec, "check_outgoing", lambda *args, **kwargs: None):
        yield


PLANTED: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        ackfirst,
        noguard,
        sameattempt,
        noreconcile,
        fenceresume,
        resumehole,
        hostsurvives,
        ackreissue,
        latedispatch,
        nofence,
        heardfence,
        staleowner,
        reregister,
        lostcancel,
        poison,
    )
}

_ = (AcceptSession, Gateway, ReceiveWindow, SendWindow, WorkerSession)
