"""Planted bugs: the test of the test (docs/rules.md).

Each takes one rule away from the product, in a simulated world only, and the simulator must notice. A bug is a
context manager: inside it, worlds are built from the broken product. Each names the faults that its world needs;
the rest is drawn from the seed as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core import errors
from astraflow.core.agent import held_attempts
from astraflow.core.agent.agent import Agent
from astraflow.core.dispatch.leases import LeaseTable
from astraflow.core.engine import engine, sessions, timeouts
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol import control
from astraflow.core.protocol.admission import Identity
from astraflow.core.protocol.events import Principal
from astraflow.core.protocol.receive_window import ReceiveWindow
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.send_window import SendWindow
from astraflow.core.protocol.session_opening import SessionOpener
from astraflow.core.protocol.worker_events import SessionSettings
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.core.runs import calls, decisions, transitions
from astraflow.core.runs.commands import Refuse, Start
from astraflow.core.runs.states import Leased, Lost, Running, Stopping
from tests.sim import planted_calls as calling
from tests.sim import planted_conditions as conditional
from tests.sim import planted_fleet as held
from tests.sim import planted_pools as pooled
from tests.sim import planted_requests as asked
from tests.sim import planted_scopes as enclosing
from tests.sim import planted_undoing as undo
from tests.sim import planted_waits as waiting
from tests.sim import scheduler as sim_scheduler
from tests.sim import worker as sim_worker
from tests.sim.config import Config, draw
from tests.sim.worker import WorkerProcess

__all__ = ["PLANTED", "Planted"]


@dataclass(frozen=True)
class Planted:
    """A bug, the world it shows in, and the invariants that may notice it.

    `only`: the world has these faults and no others. For bugs that other faults would mend.
    """

    plant: Callable[[], AbstractContextManager[None]]
    faults: tuple[str, ...]
    caught_by: tuple[str, ...]
    overrides: dict[str, Any] = field(default_factory=dict)
    only: bool = False

    def config(self, seed: int) -> Config:
        """The world of a seed, with the faults that the bug needs switched on."""
        drawn = draw(seed)
        faults = self.faults if self.only else (*drawn.faults, *self.faults)
        plain = {
            "gone": False,
            "conditions": False,
            "waits": False,
            "scopes": False,
            "stored": False,
            "undoing": False,
            "requests": False,
        }
        return drawn.shrink(faults=faults, **{**plain, **self.overrides})


@contextmanager
def _replaced(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def ackfirst() -> AbstractContextManager[None]:
    """Acknowledge a report before its effect is committed (against R1)."""
    take_batch = engine.Engine.take_batch

    def broken(self: engine.Engine, now: float, at: int) -> Any:
        batch = take_batch(self, now, at)
        for session_id, seqs in batch.delivered.items() if batch is not None else ():
            self.gateway.committed(session_id, seqs)
        return batch

    return _replaced(patch.object(engine.Engine, "take_batch", broken))


def noguard() -> AbstractContextManager[None]:
    """Accept a report whatever its attempt (against R7)."""

    def broken(run: Any, task: int, attempt: int, worker: str) -> bool:
        return isinstance(run.tasks[task].state, Leased | Running | Stopping | Lost)

    return _replaced(patch.object(decisions, "is_current", broken))


def nodedupe() -> AbstractContextManager[None]:
    """The receive window delivers a frame again when it comes again."""
    feed = ReceiveWindow.feed

    def broken(self: Any, seq: int, frame: Any) -> Any:
        if seq <= self.delivered:
            return [frame]
        return feed(self, seq, frame)

    return _replaced(patch.object(ReceiveWindow, "feed", broken))


def bitmap() -> AbstractContextManager[None]:
    """The bitmap is off by one: it says that the frame after the one that arrived did."""
    right = ReceiveWindow._bitmap

    def broken(self: Any) -> str:
        return f"{int(right(self), 16) << 1:x}"

    return _replaced(patch.object(ReceiveWindow, "_bitmap", broken))


def sackfree() -> AbstractContextManager[None]:
    """A bit of the bitmap lets the sender forget the frame (against R2)."""

    def broken(self: Any, acked: int, arrived: int, now: float) -> None:
        for slot in list(self._slots):
            if arrived >> (slot.seq - acked - 1) & 1:
                slot.arrived = True
                slot.due = inf
                freed.append(slot.frame)

    freed: list[Any] = []
    on_ack = SendWindow.on_ack

    def acked(self: Any, *args: Any) -> Any:
        freed.clear()
        return [*on_ack(self, *args), *freed]

    return _replaced(
        patch.object(SendWindow, "_stop_resending", broken),
        patch.object(SendWindow, "on_ack", acked),
    )


def resume() -> AbstractContextManager[None]:
    """The scheduler resumes a session that it does not know (against R3)."""
    on_resume = SessionOpener._on_resume

    def broken(self: Any, connection: Any, envelope: Any, asked: Any, *times: float) -> None:
        if asked.session_id not in self._table.sessions:
            name = envelope.sender.id
            identity = Identity(envelope.tenant, name)
            who = control.HandshakeWorker(name, 1, name, "0", "sim")
            session = SchedulerSession(
                asked.session_id,
                connection.conn,
                Principal(name, envelope.tenant, "worker"),
                control.Handshake(2, control.Auth("token", "good"), who),
                self._outbox.maker_for(identity.tenant),
                self._table.seen_of(identity),
                self._rng,
                self._settings,
                times[0],
            )
            session.is_accepted = True
            self._table.sessions[asked.session_id] = session
            self._table.by_identity[identity] = session
        on_resume(self, connection, envelope, asked, *times)

    return _replaced(patch.object(SessionOpener, "_on_resume", broken))


def _renew_all() -> Any:
    renew = LeaseTable.renew

    def broken(self: Any, tenant: str, worker_id: str, named: Any, now: float) -> Any:
        for lease in self.of_worker(tenant, worker_id):
            lease.until = now + lease.ttl_s
        return renew(self, tenant, worker_id, named, now)

    return patch.object(LeaseTable, "renew", broken)


def noreconcile() -> AbstractContextManager[None]:
    """A register requeues nothing, and any heartbeat renews all of its worker (against R4, R5)."""

    def broken(view: Any, worker: Any, event: Any) -> None:
        return None

    return _replaced(patch.object(sessions, "_reconcile", broken), _renew_all())


def sameattempt() -> AbstractContextManager[None]:
    """Give a task out again under the number of its last attempt (against R6)."""

    def number(run: Any, task: int) -> int:
        return max(1, int(run.tasks[task].attempt))

    right = transitions._leased

    def leased(task: Any, fact: Any) -> Any:
        task.attempt = fact.attempt - 1
        return right(task, fact)

    table = {
        name: leased if apply is right else apply for name, apply in transitions.TRANSITIONS.items()
    }
    return _replaced(
        patch.object(decisions, "next_attempt", number),
        patch.object(transitions, "TRANSITIONS", table),
    )


def resumehole() -> AbstractContextManager[None]:
    """Results that finish while offline are not queued (against R10)."""
    send_report = Agent._send_report

    def broken(self: Agent, held: Any, now: float) -> None:
        if self.session.is_ready:
            send_report(self, held, now)

    return _replaced(patch.object(Agent, "_send_report", broken))


def fenceresume() -> AbstractContextManager[None]:
    """A worker that fenced itself resumes, and any heartbeat renews all (against R8, R5)."""

    def broken(self: WorkerSession, now: float) -> None:
        return None

    return _replaced(patch.object(WorkerSession, "fenced", broken), _renew_all())


def ackreissue() -> AbstractContextManager[None]:
    """At the ack deadline a new attempt is issued without proof that the old one does not run."""

    def broken(view: Any, gateway: Any, lease: Any) -> None:
        code = errors.DISPATCH_WITHDRAWN.code
        refuse = Refuse(lease.task, lease.attempt, lease.worker_id, code)
        view.decide(lease.run, refuse)

    return _replaced(patch.object(timeouts, "_withdraw", broken))


def latedispatch() -> AbstractContextManager[None]:
    """A dispatch that waited for longer than its lease is started all the same (against §5.3)."""
    offer = held_attempts.HeldAttempts.offer

    def broken(self: Any, dispatch: Any, since_sent_at: float | None, now: float) -> Any:
        return offer(self, dispatch, now, now)

    return _replaced(patch.object(held_attempts.HeldAttempts, "offer", broken))


def hostsurvives() -> AbstractContextManager[None]:
    """Hosts outlive a frozen or killed worker: no kernel timer, no PDEATHSIG, no left-overs killed."""
    return _replaced(
        patch.object(WorkerProcess, "host_dies_with_worker", False),
        patch.object(WorkerProcess, "host_has_timer", False),
    )


def nofence() -> AbstractContextManager[None]:
    """The worker never fences itself, nor do its hosts (against §5.3)."""

    def none(self: Any, now: float) -> list[Any]:
        return []

    def never(self: Any) -> None:
        return None

    return _replaced(
        patch.object(held_attempts.HeldAttempts, "past_fence", none),
        patch.object(held_attempts.HeldAttempts, "deadline", never),
        patch.object(WorkerProcess, "host_has_timer", False),
    )


def staleowner() -> AbstractContextManager[None]:
    """A superseded scheduler keeps answering heartbeats (against §5.10)."""

    def always(self: Any, now: float) -> bool:
        return True

    def never(self: Any) -> None:
        return None

    return _replaced(
        patch.object(Ownership, "may_speak", always), patch.object(Ownership, "deadline", never)
    )


def reregister() -> AbstractContextManager[None]:
    """A register in mid-session reconciles like a first one (against §2)."""
    on_register = sessions.on_register

    def broken(view: Any, event: Any) -> None:
        on_register(view, msgspec.structs.replace(event, first=True))

    return _replaced(patch.object(engine, "on_register", broken))


def lostcancel() -> AbstractContextManager[None]:
    """A cancel lives only in the window: it is not derived again after a new session (against §5.7)."""

    def rebind(view: Any, worker: Any, lease: Any) -> None:
        lease.until = max(lease.until, view.now + lease.ttl_s)
        lease.session_id = worker.session_id
        lease.is_taken = True
        view.decide(lease.run, Start(lease.task, lease.attempt, lease.worker_id))

    def overdue(view: Any, timer: Any) -> None:
        return None

    return _replaced(
        patch.object(sessions, "_rebind", rebind), patch.object(timeouts, "_stop_due", overdue)
    )


def lostnext() -> AbstractContextManager[None]:
    """The answer of a call lives only in the window: it is not given again (against §10)."""
    open_call = calls.open_call

    def once(decision: Any, command: Any) -> None:
        known = (command.task, command.attempt, command.request_id) in decision.run.calls
        if not known:
            open_call(decision, command)

    def nothing(view: Any, run: Any, parent: int, attempt: int) -> None:
        return None

    return _replaced(
        patch.object(decisions, "open_call", once),
        patch.object(sessions, "answer_ended_calls", nothing),
    )


def poison() -> AbstractContextManager[None]:
    """A result that the receiver must refuse is sent, and sent again for ever (against §1)."""

    def unchecked(**fields: Any) -> SessionSettings:
        return SessionSettings(**{**fields, "checks_outgoing": False})

    def keep(self: Agent, frame_id: str) -> None:
        return None

    return _replaced(
        patch.object(sim_worker, "SessionSettings", unchecked),
        patch.object(Agent, "_replace_poisoned", keep),
    )


def tightfence() -> AbstractContextManager[None]:
    """A lease of three heartbeats with the fence at 0.6 of it (against R14)."""

    def unchecked(**fields: Any) -> EngineSettings:
        settings = EngineSettings(**{**fields, "lease_ttl_s": 12.0})
        msgspec.structs.force_setattr(settings, "lease_ttl_s", fields["lease_ttl_s"])
        return settings

    return _replaced(patch.object(sim_scheduler, "EngineSettings", unchecked))


_LONG = {"handlers": ("long", "ok"), "workers": 3, "tenants": 1, "slots": 2, "tasks": 3}

_TIMED = {**_LONG, "deadlines": True, "runs": 6, "tasks": 7, "crash_every_s": 5.0}
_KEEPING = {
    "resources": True,
    "packages": False,
    "rollouts": False,
    "runs": 5,
    "tasks": 6,
    "tenants": 1,
}
_COPYING = {**_KEEPING, "copies": True, "workers": 3, "runs": 6, "fault_phase_s": 90.0}
_ROLLING = {"rollouts": True, "removals": False, "tenants": 1, "workers": 3, "crash_every_s": 5.0}
_INSTALLING = {"packages": True, "rollouts": False, "runs": 4, "tenants": 1, "loss": 0.3}

_CONDITIONAL: dict[str, object] = {
    "conditions": True,
    "runs": 5,
    "tasks": 6,
    "handlers": ("ok", "flaky", "fail"),
    "resources": False,
}
"""Worlds with conditions: tasks that fail, and tasks that succeed at their second attempt."""

_WAITING: dict[str, object] = {
    "waits": True,
    "runs": 5,
    "tasks": 7,
    "handlers": ("ok", "slow"),
    "resources": False,
}
"""Worlds whose runs wait for times, people and messages."""

_ENCLOSING: dict[str, object] = {
    "scopes": True,
    "runs": 6,
    "tasks": 6,
    "workers": 3,
    "slots": 3,
    "tenants": 1,
    "handlers": ("ok", "slow", "flaky", "fail"),
    "resources": False,
}
"""Worlds whose runs have maps and containers."""

_STORING: dict[str, object] = {
    **_ENCLOSING,
    "stored": True,
    "pools": False,
    "handlers": ("ok", "flaky"),
}
"""Worlds whose maps store what they collect, and go over it."""

_UNDOING: dict[str, object] = {
    "undoing": True,
    "runs": 6,
    "tasks": 6,
    "workers": 3,
    "tenants": 1,
    "handlers": ("ok", "slow", "fail"),
    "resources": False,
}
"""Worlds whose runs undo what they have done."""
_REQUESTING: dict[str, object] = {
    "requests": True,
    "runs": 5,
    "tasks": 7,
    "slots": 4,
    "handlers": ("ok", "slow"),
    "resources": False,
    "crash_every_s": 5.0,
}
"""Worlds whose nodes ask for a part of a machine."""

_POOLED: dict[str, object] = {
    "pools": True,
    "runs": 6,
    "tasks": 6,
    "handlers": ("ok", "slow", "flaky"),
    "loss": 0.3,
    "duplication": 0.3,
    "delay_s": 0.5,
    "crash_every_s": 5.0,
    "resources": False,
    "packages": False,
    "rollouts": False,
}
"""Worlds of HTTP pools with a bad network."""

PLANTED: dict[str, Planted] = {
    "ackfirst": Planted(ackfirst, ("scheduler_crash", "commit"), ("I12",)),
    "noguard": Planted(noguard, ("partition",), ("I11", "I8", "crash")),
    "nodedupe": Planted(nodedupe, ("duplication",), ("I1",), {"duplication": 0.3}),
    "bitmap": Planted(
        bitmap,
        ("loss", "delay"),
        # The window's own check: what is not resent because of it is resent after 30 s, so that runs end all the same.
        ("crash",),
        {
            "loss": 0.3,
            "delay_s": 0.05,
            "ordered": False,
            "window": 64,
            "handlers": ("chatty",),
            "tasks": 40,
            "runs": 3,
            "workers": 2,
            "tenants": 1,
            "fault_phase_s": 20.0,
        },
        only=True,
    ),
    "sackfree": Planted(
        sackfree, ("scheduler_crash", "loss"), ("I12",), {"loss": 0.3, "ordered": False}
    ),
    "resume": Planted(resume, ("scheduler_crash",), ("I24", "I1", "I10", "crash")),
    "noreconcile": Planted(noreconcile, ("worker_crash",), ("I24",)),
    "sameattempt": Planted(sameattempt, ("worker_crash",), ("I10", "I12")),
    "resumehole": Planted(resumehole, ("cut",), ("I24",)),
    "fenceresume": Planted(fenceresume, ("partition",), ("I24",), _LONG),
    "ackreissue": Planted(ackreissue, ("delay", "partition"), ("I17",), {**_LONG, "delay_s": 0.5}),
    "latedispatch": Planted(
        latedispatch, ("worker_pause",), ("I17",), {**_LONG, "heartbeat_s": 1.0, "lease_s": 6.0}
    ),
    "hostsurvives": Planted(hostsurvives, ("worker_crash", "worker_pause"), ("I17",), _LONG),
    "nofence": Planted(nofence, ("partition",), ("I17",), _LONG),
    "staleowner": Planted(
        staleowner,
        ("store_split", "cut"),
        ("I17",),
        {**_LONG, "heartbeat_s": 1.0, "lease_s": 6.0, "runs": 5, "tasks": 4},
    ),
    "reregister": Planted(reregister, ("reregister", "delay"), ("I17",), {**_LONG, "delay_s": 0.5}),
    "lostcancel": Planted(
        lostcancel,
        ("scheduler_crash", "cancel"),
        ("I24",),
        {"handlers": ("endless", "ok"), "crash_every_s": 5.0, "mute_crash": 0.02},
    ),
    "lostnext": Planted(
        lostnext, ("mute_crash",), ("I24",), {"chains": True, "mute_crash": 0.05, "runs": 5}
    ),
    "calltwice": Planted(
        calling.calltwice,
        ("mute_crash",),
        ("I37",),
        {"chains": True, "mute_crash": 0.05, "runs": 5},
    ),
    "otheranswer": Planted(calling.otheranswer, (), ("I37",), {"chains": True, "runs": 5}),
    "poison": Planted(poison, ("poison",), ("I24", "crash"), {"with_codec": True}),
    "tightfence": Planted(
        tightfence,
        ("delay",),
        ("needless kills",),
        {**_LONG, "lease_s": 6.0, "delay_s": 0.5},
        only=True,
    ),
    "noticelost": Planted(held.noticelost, ("scheduler_crash", "evict"), ("I18", "I20"), _KEEPING),
    "cleanuplost": Planted(held.cleanuplost, ("scheduler_crash",), ("I18",), _KEEPING),
    "wishonce": Planted(held.wishonce, ("scheduler_crash",), ("I19", "I24"), _INSTALLING),
    "removalonce": Planted(
        held.removalonce, ("scheduler_crash",), ("I19",), {**_ROLLING, "removals": True}
    ),
    "rolloutforgotten": Planted(held.rolloutforgotten, ("scheduler_crash",), ("I27",), _ROLLING),
    "deadlineforgotten": Planted(
        held.deadlineforgotten, ("scheduler_crash",), ("I31",), _TIMED, only=True
    ),
    "deadlineanew": Planted(held.deadlineanew, ("scheduler_crash",), ("I31",), _TIMED, only=True),
    "activeforgotten": Planted(held.activeforgotten, ("scheduler_crash",), ("I20",), _ROLLING),
    "copyforgotten": Planted(held.copyforgotten, (), ("I20", "I16"), _COPYING),
    "copyuntold": Planted(held.copyuntold, ("worker_pause", "worker_crash"), ("I16",), _COPYING),
    "rolloutsplit": Planted(held.rolloutsplit, (), ("I28",), _ROLLING),
    "earlywave": Planted(held.earlywave, (), ("I28",), {**_ROLLING, "commit_delay_s": 0.0}),
    "pinloose": Planted(held.pinloose, (), ("I16",), {**_KEEPING, "workers": 3}),
    "rebuildbare": Planted(
        held.rebuildbare,
        ("evict", "worker_crash"),
        ("I25",),
        {
            **_KEEPING,
            "runs": 8,
            "tasks": 7,
            "crash_every_s": 5.0,
            "handlers": ("ok", "slow"),
            "chains": False,
        },
    ),
    "rebuildcalls": Planted(
        held.rebuildcalls,
        (),
        ("I24", "I26"),
        {**_KEEPING, "chains": True, "features": ("calls", "rebuilds"), "handlers": ("slow",)},
        only=True,
    ),
    "stickystale": Planted(
        held.stickystale,
        (),
        ("I24",),
        {
            **_LONG,
            "features": ("sticky", "losses"),
            "gone": True,
            "resources": False,
            "packages": False,
            "rollouts": False,
            "pinned": False,
            "missing_package": False,
        },
        only=True,
    ),
    "rowsforgotten": Planted(
        held.rowsforgotten, ("scheduler_crash",), ("I18", "I20", "I16"), _KEEPING
    ),
    "bootforgets": Planted(held.bootforgets, ("scheduler_crash",), ("I20",), _KEEPING),
    "listedstays": Planted(held.listedstays, ("worker_crash", "cancel"), ("I18",), _KEEPING),
    "twostarts": Planted(pooled.twostarts, ("duplication",), ("I10", "I17"), _POOLED),
    "anyattempt": Planted(pooled.anyattempt, ("loss", "delay"), ("I12", "I17", "crash"), _POOLED),
    "pushfence": Planted(pooled.pushfence, ("loss",), ("I17",), _POOLED),
    "answerfirst": Planted(
        pooled.answerfirst,
        ("scheduler_crash",),
        ("I12", "I10"),
        {**_POOLED, "commit_delay_s": 0.05},
    ),
    "silentpool": Planted(pooled.silentpool, ("worker_crash",), ("I24",), _POOLED),
    "requestuncounted": Planted(asked.requestuncounted, (), ("I38",), _REQUESTING),
    "requestforgotten": Planted(
        asked.requestforgotten, ("scheduler_crash",), ("I38", "crash"), _REQUESTING
    ),
    "signaltwice": Planted(waiting.signaltwice, (), ("I32",), _WAITING),
    "resentsignal": Planted(waiting.resentsignal, (), ("I32",), _WAITING),
    "mapunbounded": Planted(enclosing.mapunbounded, (), ("I40",), _ENCLOSING),
    "mapdisorder": Planted(enclosing.mapdisorder, (), ("I40",), _ENCLOSING),
    "itemshift": Planted(enclosing.itemshift, (), ("I40",), _ENCLOSING),
    "leakyscope": Planted(enclosing.leakyscope, (), ("I40",), _ENCLOSING),
    "lostlist": Planted(enclosing.lostlist, ("scheduler_crash",), ("I24", "I26"), _STORING),
    "samevalue": Planted(enclosing.samevalue, (), ("I40", "I24"), _STORING),
    "undoforward": Planted(undo.undoforward, ("cancel",), ("I41",), _UNDOING),
    "undosooner": Planted(undo.undosooner, ("cancel",), ("I41",), _UNDOING),
    "undohalf": Planted(undo.undohalf, ("cancel",), ("I24", "I26", "I41", "crash"), _UNDOING),
    "earlysignal": Planted(waiting.earlysignal, (), ("I32", "I24"), _WAITING),
    "silentwait": Planted(waiting.silentwait, (), ("I26",), {**_WAITING, "keyed": True}),
    "waitforgotten": Planted(waiting.waitforgotten, (), ("I24",), _WAITING),
    "deadedges": Planted(conditional.deadedges, (), ("I29",), _CONDITIONAL),
    "nowhen": Planted(conditional.nowhen, (), ("I29",), _CONDITIONAL),
    "lostdecision": Planted(conditional.lostdecision, (), ("I9", "I29"), _CONDITIONAL),
    "handledall": Planted(conditional.handledall, (), ("I30",), _CONDITIONAL),
    "handlednone": Planted(conditional.handlednone, (), ("I30",), _CONDITIONAL),
}
