"""One session on the scheduler's side: its windows, its liveness and its token.

A session outlives its connections. It ends when three heartbeats are missed, when another session
takes its identity over, or when it is told to. "One missed heartbeat → WARN, two → DEGRADED, three →
lost" (PROTOCOL §5.4), counted from the last heartbeat, on the monotonic clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from astraflow.core.ids import SessionId
from astraflow.core.protocol import limits
from astraflow.core.protocol.duplex import Duplex

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.protocol.control import Handshake
    from astraflow.core.protocol.duplex import SeenFrames
    from astraflow.core.protocol.events import Conn, GatewaySettings, Principal
    from astraflow.core.protocol.frames import FrameMaker


class IssuedTokens:
    """Which tokens of one session still open it. They are numbered in the order in which they were made.

    PROTOCOL §2: "a replaced one stays good for 30 s after its successor was used, then it is refused": the worker may
    not have got the successor, and only its use says that it has.
    """

    __slots__ = ("_first_good", "_made", "_session_id", "_uses")

    def __init__(self, session_id: SessionId) -> None:
        self._session_id = session_id
        self._made = 0
        self._first_good = 0
        self._uses: deque[tuple[int, float]] = deque()  # both grow

    def new_id(self) -> str:
        self._made += 1
        return f"{self._session_id}.{self._made}"

    def use(self, token_id: str, now: float) -> bool:
        """Whether this token opens the session now; those before it are replaced from here on."""
        number = int(token_id.rpartition(".")[2])
        uses = self._uses
        while uses and (
            uses[0][1] + limits.TOKEN_REPLACED_S <= now or len(uses) >= limits.TOKEN_USES_KEPT
        ):
            self._first_good = uses.popleft()[0]
        if number < self._first_good:
            return False
        if number > (uses[-1][0] if uses else self._first_good):
            uses.append((number, now))
        return True


class SchedulerSession:
    """What a gateway knows of one session."""

    def __init__(
        self,
        session_id: SessionId,
        conn: Conn,
        principal: Principal,
        handshake: Handshake,
        maker: FrameMaker,
        seen: SeenFrames,
        rng: Random,
        settings: GatewaySettings,
        now: float,
    ) -> None:
        self.session_id = session_id
        self.tenant = maker.tenant
        self.worker = handshake.worker.worker_instance_id
        self.who = (session_id, self.tenant, self.worker)
        """How the events about this session begin."""
        self.incarnation = handshake.worker.incarnation
        self.conn: Conn | None = conn
        self.principal = principal
        self.handshake = handshake
        self.maker = maker
        self.duplex = Duplex(maker, settings.window, seen, rng, queue_limit=settings.queue_limit)
        self.is_accepted = False
        self.features: tuple[str, ...] = ()  # of those that its worker offers, the ones it has
        self.register_id: str | None = None
        self.missed = 0
        self.renew_at: float | None = None
        self.tokens = IssuedTokens(session_id)
        # For when the gateway has set its timers; kept here to spare it a search.
        self.far_at: float | None = None
        self.near_at: float | None = None
        self._interval_s = settings.heartbeat_interval_s
        self._last_heartbeat = now

    def heard(self, now: float) -> None:
        """A heartbeat came, or the session was accepted or resumed."""
        self._last_heartbeat = now
        self.missed = 0

    def count_missed(self, now: float) -> bool:
        """Whether one more heartbeat was missed; `missed` says how many in a row."""
        if now < self._missed_at():
            return False
        self.missed += 1
        return True

    @property
    def is_lost(self) -> bool:
        return self.missed >= limits.HEARTBEATS_MISSED_LOST

    def token_minted(self, now: float, life_s: float) -> None:
        """Renew the token while a good part of its life is left."""
        early = min(limits.TOKEN_RENEW_BEFORE_S, life_s / 2)
        self.renew_at = now + max(0.0, life_s - early)

    def far_deadline(self) -> float:
        """When a heartbeat will have been missed, or the token must be renewed."""
        at = self._missed_at()
        if self.renew_at is not None and self.conn is not None:
            at = min(at, self.renew_at)
        return at

    def near_deadline(self) -> float | None:
        """When the windows have something to send."""
        return self.duplex.deadline() if self.conn is not None else None

    def timer_rang(self, at: float) -> bool:
        """Whether a timer of the gateway is one that still counts."""
        if self.far_at == at:
            self.far_at = None
        elif self.near_at == at:
            self.near_at = None
        else:
            return False
        return True

    def check(self) -> None:
        assert 0 <= self.missed < limits.HEARTBEATS_MISSED_LOST
        self.duplex.check()

    def _missed_at(self) -> float:
        return self._last_heartbeat + self._interval_s * (self.missed + 1)
