"""One agent across a perfect wire from a real gateway whose engine is the test.

The desk accepts sessions, commits what is delivered and answers heartbeats, each unless a test says otherwise.
Hosts do nothing by themselves. `check()` is called on both sides after every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.core.agent.actions import Action, Exit, StartAttempt
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import (
    Delivered,
    GatewayEvent,
    HeartbeatArrived,
    RegisterArrived,
    SendFrame,
)
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import AttemptRef, Envelope
from astraflow.core.protocol.worker_events import (
    Connect,
    Credential,
    Disconnect,
    DrainAsked,
    SessionReady,
    SessionRefused,
    WorkerIdentity,
)
from astraflow.core.protocol.worker_session import WorkerSession
from tests.unit.core.protocol.pair import GOOD_TOKEN, TENANT, WORKER, CountedIds, Doors, PlainTokens

TTL_MS = 30_000


def dispatch_of(
    number: int = 1, attempt: int = 1, since: str = "", **fields: Any
) -> business.Dispatch:
    """A dispatch of one node; the lease is 30 s, so its fence is 18 s after `since`."""
    timeout_ms = fields.pop("timeout_ms", None)
    return business.Dispatch(
        RunId("run1"),
        TaskId(f"run1.{number}"),
        attempt,
        0,
        "n",
        "t.node",
        business.PackageId("pkg", "1.0"),
        msgspec.Raw(b"{}"),
        business.LeaseGrant(fields.pop("ttl_ms", TTL_MS), since or "unknown"),
        business.Constraints(timeout_ms),
        **fields,
    )


def result_of(
    number: int = 1, attempt: int = 1, status: str = "SUCCEEDED", **fields: Any
) -> business.Result:
    return business.Result("run1", f"run1.{number}", attempt, status, **fields)  # type: ignore[arg-type]


class Desk:
    """The scheduler's side, played by hand, and one agent with an open session."""

    def __init__(
        self,
        max_parallel: int = 4,
        *,
        opens: bool = True,
        lane: int = 0,
        slots: int | None = None,
    ) -> None:
        self.now = 100.0
        self.wall = 1_800_000_000.0
        self.gateway = Gateway(
            scheduler_id="sched-1",
            ids=CountedIds("1"),
            rng=Random(1),
            authenticate=Doors(),
            tokens=PlainTokens(),
        )
        self.gateway.serve_lane(TENANT, lane)
        self.accepts = True
        self.commits = True
        self.answers = True
        self.is_online = True
        self.is_heard = True  # whether what the worker sends arrives
        self.unread: set[str] = set()  # types of frames that do not
        self.stop: tuple[AttemptRef, ...] = ()
        self.conn: int | None = None
        self.connections = 0
        self.connect_at: float | None = None
        self.since = ""
        self.actions: list[Action] = []
        self.warnings: list[SessionRefused] = []
        self.words: list[SessionReady | DrainAsked] = []
        self.events: list[GatewayEvent] = []
        self.exit: Exit | None = None
        session = WorkerSession(
            WorkerIdentity(TENANT, WORKER, 1, "worker one", "0.1.0", "box", lane),
            Credential("token", GOOD_TOKEN),
            ids=CountedIds("2"),
            rng=Random(2),
        )
        capabilities = control.Capabilities(
            control.Concurrency(max_parallel), features=control.FEATURES
        )
        offer = RegisterOffer(capabilities, slots=slots)
        self.agent = Agent(session, HeldAttempts(max_parallel), lambda: offer)
        self.agent.tick(self.now)
        if opens:
            self.run()
            assert session.is_ready

    # -- what a test does ---------------------------------------------------------------------

    def send(self, frame_type: str, payload: object, corr: str | None = None) -> None:
        self.gateway.send(SessionId(self.session_id), frame_type, payload, corr, self.now)
        self.run()

    def dispatch(self, number: int = 1, attempt: int = 1, **fields: Any) -> None:
        """Send a dispatch under a lease since the newest heartbeat, unless the test says since when."""
        since = fields.pop("since", self.since)
        made = dispatch_of(number, attempt, since, **fields)
        self.send(business.DISPATCH, made, made.task_id)

    def cancel(self, number: int = 1, attempt: int = 1, grace_ms: int = 2000) -> None:
        frame = business.ExecCancel(
            RunId("run1"), TaskId(f"run1.{number}"), attempt, "cancel", grace_ms
        )
        self.send(business.CANCEL, frame, frame.task_id)

    def finish(
        self, number: int = 1, attempt: int = 1, status: str = "SUCCEEDED", **fields: Any
    ) -> None:
        self.agent.finished(result_of(number, attempt, status, **fields), self.now)
        self.run()

    def gone(self, number: int = 1, attempt: int = 1) -> None:
        self.agent.gone(TaskId(f"run1.{number}"), attempt, self.now)
        self.run()

    def cut(self) -> None:
        """The connection breaks; both sides see it."""
        conn, self.conn = self.conn, None
        assert conn is not None
        self.gateway.closed(conn, self.now)
        self.agent.disconnected(self.now)
        self.run()

    def lose_session(self) -> None:
        """A scheduler that does not know the session any more."""
        self.gateway.end(SessionId(self.session_id), errors.SESSION_UNKNOWN, self.now)
        self.run()

    def run(self) -> None:
        """Carry frames until nobody has more to say at this moment."""
        for _ in range(10_000):
            busy = self._agent_step()
            busy |= self._gateway_step()
            self.agent.check()
            self.gateway.check()
            if not busy:
                return
        raise AssertionError("the peers never stop talking")

    def wait(self, seconds: float) -> None:
        """Let time pass, from one thing that is due to the next."""
        end = self.now + seconds
        while self.now < end:
            due = [self.agent.deadline(), self.gateway.deadline(), self.connect_at]
            first = min((when for when in due if when is not None), default=end)
            self.turn(min(max(first, self.now + 1e-6), end) - self.now)
            self.agent.tick(self.now)
            self.run()
            self.gateway.tick(self.now, self.wall)
            self.run()

    def turn(self, seconds: float) -> None:
        """Turn the clock and let nobody act on it yet."""
        self.now += seconds
        self.wall += seconds

    # -- what a test looks at -----------------------------------------------------------------

    @property
    def session_id(self) -> str:
        found = self.gateway.session_of(TENANT, WORKER)
        assert found is not None
        return found

    def take_actions(self) -> list[Action]:
        """What the agent asked of its hosts since this was asked last."""
        actions, self.actions = self.actions, []
        return actions

    def started(self) -> list[tuple[str, int]]:
        return [
            (one.dispatch.task_id, one.dispatch.attempt)
            for one in self.actions
            if isinstance(one, StartAttempt)
        ]

    def delivered(self, kind: type) -> list[Any]:
        """The payloads of one kind that reached the engine, in order."""
        payloads = [one.envelope.payload for one in self.events if isinstance(one, Delivered)]
        return [payload for payload in payloads if isinstance(payload, kind)]

    def registers(self) -> list[control.Register]:
        return [one.register for one in self.events if isinstance(one, RegisterArrived)]

    def heartbeats(self) -> list[control.Heartbeat]:
        return [one.heartbeat for one in self.events if isinstance(one, HeartbeatArrived)]

    def held(self) -> list[tuple[str, int]]:
        return [(one.task_id, one.attempt) for one in self.agent.attempts.working()]

    def reports(self) -> list[tuple[str, int]]:
        return [(one.task_id, one.attempt) for one in self.agent.attempts.reports()]

    # -- inside -------------------------------------------------------------------------------

    def _agent_step(self) -> bool:
        actions = self.agent.take_actions()
        for action in actions:
            if isinstance(action, SessionRefused):
                self.warnings.append(action)
            elif isinstance(action, SessionReady | DrainAsked):
                self.words.append(action)
            elif isinstance(action, Connect):
                self.connect_at = action.at
            elif isinstance(action, Disconnect):
                self._carry_up(self.agent.take_frames())
                conn, self.conn = self.conn, None
                if conn is not None:
                    self.gateway.closed(conn, self.now)
                self.agent.disconnected(self.now)
            else:
                self.exit = action if isinstance(action, Exit) else self.exit
                self.actions.append(action)
        is_due = self.connect_at is not None and self.connect_at <= self.now
        if is_due and self.conn is None and self.exit is None:
            self.connect_at = None
            self._connect()
        frames = self.agent.take_frames()
        self._carry_up(frames)
        return bool(actions) or bool(frames)

    def _connect(self) -> None:
        if not self.is_online:
            self.agent.disconnected(self.now)
            return
        self.connections += 1
        self.conn = self.connections
        self.gateway.opened(self.conn, self.now)
        self.agent.connected(self.now)

    def _carry_up(self, frames: Iterable[Envelope]) -> None:
        for frame in frames:
            if self.conn is not None and self.is_heard and frame.type not in self.unread:
                self.gateway.feed(self.conn, frame, self.now, self.wall)

    def _gateway_step(self) -> bool:
        events = self.gateway.take_events()
        self.events += events
        for event in events:
            if isinstance(event, RegisterArrived):
                self.since = event.frame_id
                if self.accepts:
                    self.gateway.accept(event.session_id, self.now, self.wall)
            elif isinstance(event, HeartbeatArrived) and self.answers:
                self.since = event.frame_id
                self.gateway.answer_heartbeat(event.session_id, event.frame_id, self.stop, self.now)
            elif isinstance(event, Delivered) and self.commits:
                self.gateway.committed(event.session_id, (event.seq,))
        output = self.gateway.take_output()
        for item in output:
            if item.conn != self.conn:
                continue
            if isinstance(item, SendFrame):
                self.agent.feed(item.envelope, self.now)
            else:
                self.conn = None
                self.agent.disconnected(self.now)
        return bool(events) or bool(output)
