"""The asyncio shell around the agent: opens sockets, starts and stops attempts, and sets the timer.

Everything that arrives (a frame, the end of an attempt, a timer) is fed to the agent at once. What the agent wants done
is done once per turn of the loop, so that the frames of a turn leave in one write.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol, assert_never

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.agent.actions import (
    Action,
    Exit,
    ForwardAnswer,
    HandUp,
    InterruptAttempt,
    KillAttempt,
    LaneWord,
    StartAttempt,
)
from astraflow.core.agent.agent import Agent
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.bundles import decode_message, encode_first
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.limits import CLOSE_NORMAL
from astraflow.core.protocol.wire import Envelope, Wire
from astraflow.core.protocol.worker_events import (
    Connect,
    Credential,
    Disconnect,
    DrainAsked,
    HungerTold,
    LanesTold,
    SessionReady,
    SessionRefused,
    SlotsAnswered,
)
from astraflow.core.timestamps import iso
from astraflow.observe.frame_log import fields_of, log_frame, logs_frames
from astraflow.timer import WakeupTimer
from astraflow.worker.addresses import Schedulers
from astraflow.worker.socket import OpenSocket, Socket

_log: Final = logging.getLogger(__name__)

TRY_NEXT_S: Final = 2.0
"""How long one of several schedulers may take to answer. One that is frozen must not keep a worker from the one that
took over; four round trips over half the world must fit."""


_PASSING: Final = frozenset({errors.SESSION_UNKNOWN.code, errors.SESSION_MOVED.code})
"""What is no trouble: a scheduler that has started again, or has given the tenant to another."""


def _warn(code: str, reason: str, wait_s: float) -> None:
    known = errors.CATALOGUE.get(code)
    todo = f"; to do: {known.do}" if known is not None else ""
    _log.log(
        logging.INFO if code in _PASSING else logging.WARNING,
        "the scheduler ended the session: %s: %s%s; reconnecting in %.1f s",
        code,
        reason,
        todo,
        max(wait_s, 0.0),
        extra={"code": code},
    )


def _log_result(result: business.Result) -> None:
    error = result.error
    level = logging.DEBUG if error is None else logging.INFO
    extra = {
        "type": business.RESULT,
        "corr": result.task_id,
        "code": None if error is None else error.code,
        "run": result.run_id,
        "task": result.task_id,
        "attempt": result.attempt,
    }
    _log.log(level, "attempt ended: %s", result.status, extra=extra)


class Hosts(Protocol):
    """Where attempts run. The runner is told how they end."""

    def start(self, dispatch: business.Dispatch, fence_at: float) -> None: ...
    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None: ...
    def kill(self, task_id: TaskId, attempt: int) -> None: ...
    def answer(self, response: business.NextResponse) -> None: ...
    def refence(self, fences: Mapping[tuple[str, int], float]) -> None: ...


class LaneWatcher(Protocol):
    """Who divides a worker among its lanes."""

    def told(self, word: LaneWord) -> None:
        """The session says something that may concern other lanes."""

    def flushed(self) -> None:
        """What this session wanted in this turn of the loop is done."""


class AgentRunner:
    """A worker's session with one lane of its tenant, over any number of connections."""

    def __init__(
        self,
        agent: Agent,
        schedulers: Schedulers,
        connect: OpenSocket,
        clock: Clock,
    ) -> None:
        self.agent = agent
        self.watcher: LaneWatcher | None = None
        self._schedulers = schedulers
        self._connect = connect
        self._clock = clock
        self._receive: Callable[[Envelope], None] | None = None
        self._hosts: Hosts | None = None
        self._loop = asyncio.get_running_loop()
        self._group: asyncio.TaskGroup | None = None
        self._over: asyncio.Future[Exit] = self._loop.create_future()
        self._socket: Socket | None = None
        self._unsent: deque[Envelope] = deque()  # for want of room on the socket
        self._openings = 0
        self._closed_early: tuple[Socket, int | None] | None = None
        self._is_woken = False
        self._renewals = 0
        self._logs_frames = logs_frames(_log)
        self._timer = WakeupTimer(clock, self._on_timer)

    async def run(self, hosts: Hosts, receive: Callable[[Envelope], None]) -> Exit:
        """Keep the session until the agent says that it is over.

        Attempts run in `hosts`; `receive` takes the frames for packages and resources.
        """
        self._hosts, self._receive = hosts, receive
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self.agent.tick(self._clock.now())
                self._wake()
                ended = await self._over
                if self._socket is not None:
                    self._socket.close(CLOSE_NORMAL)
        finally:
            self._group = None
            self._timer.cancel()
        return ended

    def drain(self, deadline_s: float | None) -> None:
        """Take nothing new, finish what runs, then end."""
        self.agent.drain(self._clock.now(), deadline_s)
        self._wake()

    def end(self, code: int, reason: str) -> None:
        """End now, whatever is held."""
        if not self._over.done():
            self._over.set_result(Exit(code, reason))

    def give_slots(self, slots: int) -> None:
        """Tell the lane how many of the worker's slots are for it."""
        self.agent.give_slots(slots, self._clock.now())
        self._wake()

    def give_up_session(self) -> None:
        """Go on with a new session."""
        self.agent.give_up_session(self._clock.now())
        self._wake()

    def present(self, token: str) -> None:
        """Use another token from now on."""
        self.agent.rotate(Credential("token", token), self._clock.now())
        self._wake()

    # -- what packages and resources tell ---------------------------------------------------

    def tell(self, key: str, frame_type: str, payload: Wire, corr: str | None = None) -> None:
        """The newest word per key reaches the scheduler, whatever happens to sessions meanwhile."""
        self.agent.tell(key, frame_type, payload, corr, self._clock.now())
        self._wake()

    def offer_changed(self) -> None:
        """What the worker offers is other than it registered: packages came or went."""
        self.agent.reoffer(self._clock.now())
        self._wake()

    # -- what the socket tells --------------------------------------------------------------

    def received(self, socket: Socket, raw: bytes) -> None:
        if socket is not self._socket:
            return  # of a connection that was given up
        try:
            frames = decode_message(raw)
        except BadFrame as error:
            self.agent.bad_frame(error, self._clock.now())
        else:
            now = self._clock.now()
            for envelope in frames:
                if self._logs_frames:
                    log_frame(_log, "received", envelope)
                self.agent.feed(envelope, now)
        self._wake()

    def closed(self, socket: Socket, code: int | None) -> None:
        if socket is self._socket:
            self._socket = None
            self._schedulers.lost_connection()
            self.agent.disconnected(self._clock.now(), code)
            self._wake()
        else:
            self._closed_early = (socket, code)  # it may be the one that is just being opened

    def drained(self, socket: Socket) -> None:
        if socket is self._socket:
            self._wake()

    # -- what the hosts tell ----------------------------------------------------------------

    def finished(self, result: business.Result) -> None:
        if self._logs_frames or result.error is not None:
            _log_result(result)
        self.agent.finished(result, self._clock.now())
        self._wake()

    def gone(self, task_id: TaskId, attempt: int) -> None:
        self.agent.gone(task_id, attempt, self._clock.now())
        self._wake()

    def feedback(self, feedback: business.Feedback) -> None:
        self.agent.feedback(feedback, self._clock.now())
        self._wake()

    def call(self, request: business.NextRequest) -> None:
        self.agent.call(request, self._clock.now())
        self._wake()

    # -- inside -----------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._flush)

    def _on_timer(self) -> None:
        now, deadline = self._clock.now(), self.agent.deadline()
        if deadline is None or deadline > now:
            self._timer.set(deadline)  # it was set for something that has been done meanwhile
        else:
            self.agent.tick(now)
            self._wake()

    def _flush(self) -> None:
        """Do what the agent wants done, send its frames, and set the timer to its deadline."""
        self._is_woken = False
        if self._hosts is None or self._over.done():
            return  # a drain may come before `run`, which does then what is wanted
        agent = self.agent
        while actions := agent.take_actions():
            for action in actions:
                self._act(action)
        self._send()
        if agent.attempts.renewals != self._renewals:
            self._refence()
        self._timer.set(agent.deadline())
        if self.watcher is not None:
            self.watcher.flushed()

    def _send(self) -> None:
        """As much as the socket has room for; what a connection left over is in the window of its session."""
        frames = self.agent.take_frames()
        socket = self._socket
        if socket is None:
            return
        self._unsent += frames
        if not self._unsent:
            return
        ts, room, texts = iso(self._clock.wall_ms()), socket.room(), list[bytes]()
        is_bundled = self.agent.session.is_bundled
        while self._unsent and room > 0:
            text, count = encode_first(self._unsent, ts, bundled=is_bundled)
            for _ in range(count):
                frame = self._unsent.popleft()
                if self._logs_frames:
                    log_frame(_log, "sent", frame)
                elif frame.type == business.EXEC_ERROR:
                    _log.info("dispatch refused", extra=fields_of(frame))
            texts.append(text)
            room -= len(text)
        socket.send(texts)

    def _act(self, action: Action) -> None:
        hosts = self._hosts
        assert hosts is not None
        match action:
            case StartAttempt(dispatch):
                held = self.agent.attempts.find(dispatch.task_id, dispatch.attempt)
                assert held is not None, "what is started is held"
                hosts.start(dispatch, held.fence_at)
            case InterruptAttempt(task_id, attempt, grace_s, reason):
                hosts.cancel(task_id, attempt, grace_s, reason)
            case KillAttempt(task_id, attempt, _):
                hosts.kill(task_id, attempt)
            case ForwardAnswer(response):
                hosts.answer(response)
            case Connect(at, location):
                assert self._group is not None
                self._say(action)
                self._openings += 1
                self._group.create_task(self._open(self._openings, at, location))
            case Disconnect(code):
                self._close(code)
            case HandUp(envelope):
                assert self._receive is not None
                self._receive(envelope)
            case SessionReady() | DrainAsked() | LanesTold() | HungerTold() | SlotsAnswered():
                self._say(action)
            case SessionRefused(code, reason, again_at):
                _warn(code, reason, again_at - self._clock.now())
            case Exit():
                _log.info("worker exits: %s", action.reason)
                if not self._over.done():
                    self._over.set_result(action)
            case _:
                assert_never(action)

    def _say(self, word: LaneWord) -> None:
        if self.watcher is not None:
            self.watcher.told(word)

    async def _open(self, number: int, at: float, location: str | None) -> None:
        """Open the connection that was asked for last; one that was asked for before it is not wanted any more."""
        delay = at - self._clock.now()
        if delay > 0:
            await asyncio.sleep(delay)
        if number != self._openings or self._over.done():
            return
        self._close(CLOSE_NORMAL)  # who asks for a connection counts on none
        urls = self._schedulers.in_turn()
        for url in urls if location is None else (location, *urls):
            self._closed_early = None
            try:
                socket = await self._reach(url)
            except OSError as error:
                _log.warning("%s", error)
                self._schedulers.lost(url)
                if number != self._openings:
                    return
                continue
            if number != self._openings:
                socket.close(CLOSE_NORMAL)
                return
            self._opened(url, socket)
            return
        self.agent.disconnected(self._clock.now())
        self._wake()

    async def _reach(self, url: str) -> Socket:
        """Raises OSError. Where there are others, one that does not answer is not waited for long."""
        if not self._schedulers.has_several:
            return await self._connect(url, self)
        try:
            async with asyncio.timeout(TRY_NEXT_S):
                return await self._connect(url, self)
        except TimeoutError as error:
            raise ConnectionError(f"cannot connect to {url}: no answer in time") from error

    def _opened(self, url: str, socket: Socket) -> None:
        _log.info("connected to %s", url)
        self._schedulers.connected(url)
        self._socket = socket
        self._unsent.clear()
        self.agent.connected(self._clock.now())
        self._notice_early_end(socket)
        self._wake()

    def _notice_early_end(self, socket: Socket) -> None:
        """It may have been closed before it was known here."""
        early, self._closed_early = self._closed_early, None
        if early is not None and early[0] is socket:
            self.closed(*early)

    def _close(self, code: int) -> None:
        """What the agent said before it asked for the end is still sent."""
        self._send()
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close(code)

    def _refence(self) -> None:
        """Give hosts more time, when the answer to a heartbeat has given the worker more."""
        attempts = self.agent.attempts
        self._renewals = attempts.renewals
        assert self._hosts is not None
        self._hosts.refence(
            {(held.task_id, held.attempt): held.fence_at for held in attempts.working()}
        )
