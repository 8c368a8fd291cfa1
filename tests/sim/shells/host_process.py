"""The process of a package host, imitated: the narrowest seam of a worker whose pool, hosts and registry are real.

It speaks the frames of a host (`worker.hosts.frames`), keeps objects, writes files to be registered, obeys its fence,
and dies when it is told to, or by itself.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core.protocol.business import AttemptError, FeedbackChunk, ResultArtifact
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.process import EXIT_FENCED
from astraflow.worker.hosts.procfs import ProcessUsage
from astraflow.worker.hosts.scratch import Scratch
from tests.sim.edges import edge

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

    from astraflow.worker.hosts.process import HostListener
    from astraflow.worker.hosts.settings import HostSpec, PoolSettings
    from tests.sim.shells.keeping import Boot

__all__ = ["HostProgram"]

_KILLED = -9
_CRASHED = -11
_START_S = 0.1
_PIPE_S = 0.001
_NEVER_ENDING = ("hang", "endless", "stubborn")
_to_host = msgspec.json.Decoder(frames.ToHost)
_encode = msgspec.json.encode


class _Running:
    """An attempt, as the program of its host knows it."""

    def __init__(self, start: frames.HostStart) -> None:
        self.start = start
        self.handler = start.node_type.partition(".")[2]
        self.is_stopping = False
        self.made: frames.HostRegister | None = None
        self.timers: list[asyncio.TimerHandle] = []


class HostProgram:
    """`worker.hosts.process.HostProcess`, for one boot of a simulated worker."""

    def __init__(
        self,
        boots: Callable[[Path], Boot],
        spec: HostSpec,
        settings: PoolSettings,
        folder: Path,
        clock: object,
        loop: asyncio.AbstractEventLoop,
        listener: HostListener,
    ) -> None:
        self.boot = boots(folder)
        self.world = self.boot.world
        self.spec = spec
        self.armed = math.inf
        self.objects: dict[str, None] = {}
        self.is_alive = True
        mark = self.world.new_id()
        self.work_dir = Scratch(folder).make_host_folder(mark)
        self._settings = settings
        self._loop = loop
        self._listener = listener
        self._running: dict[tuple[str, int], _Running] = {}
        self._timers: list[asyncio.TimerHandle] = []
        self._fence: asyncio.TimerHandle | None = None
        self._inbox: deque[frames.ToHost] = deque()
        self._is_broken = self.boot.draws_broken_package(spec.folder)
        self.boot.programs[self] = None
        self._later(self.world.delay(_START_S), self._load)

    # -- what the worker does with its process -----------------------------------------------

    def greeted(self, host_pid: int) -> None: ...
    def look(self) -> None: ...

    def held(self) -> ProcessUsage:
        return ProcessUsage(1, 0)

    def tail(self) -> str:
        return ""

    def was_short_of_memory(self) -> bool:
        return False

    def send(self, raw: bytes) -> None:
        if self.is_alive:
            self._inbox.append(_to_host.decode(raw[4:]))
            self._later(_PIPE_S, self._take)

    def arm(self, deadline: float) -> None:
        """The timer of the kernel: it ends the host even if the worker does not."""
        if deadline == self.armed or not self.is_alive:
            return
        self.armed = deadline
        if self._fence is not None:
            self._fence.cancel()
            self._fence = None
        if deadline != math.inf:
            delay = max(0.0, deadline - self.world.now) + 0.01
            self._fence = self._loop.call_later(delay, self._die, EXIT_FENCED)

    def kill(self) -> None:
        if self.is_alive:
            self._later(self.world.rng.random() * 0.02, self._die, _KILLED)

    def kill_later(self, delay_s: float) -> None:
        self._later(delay_s, self._die, _KILLED)

    # -- what the operating system does --------------------------------------------------------

    def crash(self) -> None:
        """It dies by itself."""
        self._die(_CRASHED)

    def die_with_worker(self) -> None:
        """The worker is dead, and its hosts with it. Who still cleans up behind the dead one is told that they are."""
        self._end_all()
        self._loop.call_soon(self._listener.on_ended, _KILLED)

    def _die(self, exit_code: int) -> None:
        if self.is_alive:
            self._end_all()
            self._listener.on_ended(exit_code)

    def _end_all(self) -> None:
        if not self.is_alive:
            return
        self.is_alive = False
        for timer in (*self._timers, *([] if self._fence is None else [self._fence])):
            timer.cancel()
        for running in list(self._running.values()):
            self._end(running)
        self.objects.clear()
        del self.boot.programs[self]

    def _later(self, delay_s: float, act: Callable[..., None], *args: object) -> None:
        self._timers = [one for one in self._timers if not one.cancelled() and self._is_due(one)]
        self._timers.append(self._loop.call_later(delay_s, act, *args))

    def _is_due(self, timer: asyncio.TimerHandle) -> bool:
        return timer.when() >= self.world.now

    def _say(self, frame: frames.FromHost) -> None:
        if self.is_alive:
            self._listener.on_frames([_encode(frame)])

    # -- the program -----------------------------------------------------------------------------

    def _load(self) -> None:
        if self._is_broken:
            error = AttemptError("E.RUNNER.FAILURE", "USER_CODE", "its code does not run")
            self._say(frames.HostBroken(error))
            self._later(_PIPE_S, self._die, 1)
        else:
            self._say(frames.HostHello(1, ()))

    def _take(self) -> None:
        frame = self._inbox.popleft()
        if isinstance(frame, frames.HostStart):
            self._start(frame)
        elif isinstance(frame, frames.HostCancel):
            self._cancel(frame)
        elif isinstance(frame, frames.HostAnswer):
            running = self._running.get((frame.task_id, frame.attempt))
            if running is not None:
                self.world.sometimes("call answered")
                self._after(running, 0.05, self._finish, "SUCCEEDED")
        elif isinstance(frame, frames.HostClose):
            self._later(self.world.delay(0.05), self._close, frame.token)
        elif isinstance(frame, frames.HostStop):
            self._later(_PIPE_S, self._die, 0)

    def _close(self, token: str) -> None:
        self.objects.pop(token, None)
        self._say(frames.HostClosed(token))

    def _start(self, start: frames.HostStart) -> None:
        running = _Running(start)
        self._running[start.task_id, start.attempt] = running
        self.boot.attempt_started(start)
        rng, handler = self.world.rng, running.handler
        if handler in _NEVER_ENDING:
            return
        seconds = rng.expovariate(1 / 0.3)
        if handler == "slow":
            seconds = 1.0 + rng.random() * 4
        elif handler == "long":
            seconds = 8.0 + rng.random() * 10
        if handler == "wrap":
            self._after(running, seconds, self._call_next)
            return
        if handler == "chatty":
            for index in range(rng.randint(1, 6)):
                self._after(running, seconds * index / 6, self._chat, index)
        if handler == "crash" and rng.random() < 0.5:
            self._after(running, seconds, lambda _: self.crash())
            return
        if handler == "make":
            self._after(running, seconds * rng.random(), self._make)
        elif start.leased and rng.random() < 0.2:
            self._after(running, seconds * rng.random(), self._treat, start.leased[0].resource_id)
        fails = handler == "fail" or (handler == "flaky" and rng.random() < 0.5)
        self._after(running, seconds, self._finish, "FAILED" if fails else "SUCCEEDED")

    def _after(
        self, running: _Running, seconds: float, act: Callable[..., None], *args: object
    ) -> None:
        running.timers.append(self._loop.call_later(seconds, act, running, *args))

    def _cancel(self, cancel: frames.HostCancel) -> None:
        running = self._running.get((cancel.task_id, cancel.attempt))
        if running is None or running.is_stopping or running.handler == "stubborn":
            return
        running.is_stopping = True
        self._after(running, self.world.rng.random(), self._finish, "CANCELLED")

    def _chat(self, running: _Running, index: int) -> None:
        start = running.start
        chunk = FeedbackChunk("log", index, f"line {index} \x01\U0010ffff")
        self._say(
            frames.HostFeedback(start.task_id, start.attempt, progress=index / 6, chunks=(chunk,))
        )

    def _call_next(self, running: _Running) -> None:
        start = running.start
        assert start.chain_index is not None
        request_id = self.world.new_id()
        self._say(frames.HostNext(start.task_id, start.attempt, request_id, start.chain_index))

    # -- resources -------------------------------------------------------------------------------

    def _make(self, running: _Running) -> None:
        """Make an object or a file, and have it registered, whatever becomes of the attempt."""
        rng, start = self.world.rng, running.start
        scope = f"session:{rng.randrange(3)}" if rng.random() < 0.2 else None
        token = f"{rng.getrandbits(128):032x}"
        resource_id = self.world.new_id()
        about: dict[str, Any] = {"task_id": start.task_id, "attempt": start.attempt, "token": token}
        about |= {"resource_id": resource_id, "resource_type": "thing", "scope": scope}
        if self.world.chance(0.15):
            about["ttl_s"] = 2.0 + rng.random() * 10
        if rng.random() < (0.2 if self.boot.config.copies else 0.5):
            self.objects[token] = None
            registered = frames.HostRegister(**about, kind="memory", size_bytes=1)
        else:
            registered = frames.HostRegister(**about, **self._write(token))
        running.made = registered
        self._say(registered)

    def _treat(self, running: _Running, resource_id: str) -> None:
        """Do with a leased resource what handlers may do: ask for it again, prolong it, or let it go."""
        start, action = running.start, self.world.rng.choice(("lease", "touch", "evict"))
        about = (start.task_id, start.attempt)
        if action == "lease":
            self._say(frames.HostLease(*about, self.world.new_id(), resource_id))
        elif action == "touch":
            self._say(frames.HostUse(*about, "touch", resource_id))
        else:
            self.world.sometimes("resource let go by its user")
            self._say(frames.HostUse(*about, "evict", resource_id))

    def _write(self, token: str) -> dict[str, Any]:
        assert self._settings.resources_dir is not None
        content = token.encode() * self.world.rng.randint(1, 20)
        path = self._settings.resources_dir / token[:2] / token / "file"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        is_durable = self.boot.config.copies
        return {
            "kind": "file",
            "name": "file",
            "size_bytes": len(content),
            "mtime_ns": path.stat().st_mtime_ns,
            "sha256": hashlib.sha256(content).hexdigest(),
            "metadata": msgspec.Raw(_encode({"durable": True} if is_durable else {})),
        }

    def _value(self, running: _Running) -> dict[str, object]:
        """The result: who made it, and a reference to what it made, or handed on."""
        start = running.start
        about = (start.task_id, start.attempt)
        value: dict[str, object] = {"v": [*about], "edge": edge(*about)}
        handed: str | None = None
        if running.made is not None:
            handed = running.made.resource_id
        elif running.handler == "change" and start.leased:
            handed = start.leased[0].resource_id
            marks = self.boot.worker.marks.setdefault(start.leased[0].token, {})
            marks[start.node_id] = None
        if handed is not None:
            ref = {"resourceId": handed, "type": "thing"}
            if running.made is None or not self.world.chance(0.2):
                ref["workerId"] = self._settings.worker_id
            value["r"] = {"resourceRef": ref}
        return value

    def _artifacts(self, running: _Running) -> tuple[ResultArtifact, ...]:
        """Some files are listed by the result of the attempt that made them."""
        made = running.made
        if made is None or made.kind == "memory":
            return ()
        if not self.world.chance(0.9 if self.boot.config.copies else 0.3):
            return ()
        return (ResultArtifact(made.resource_id, self._settings.worker_id, "thing"),)

    # -- ends --------------------------------------------------------------------------------------

    def _finish(self, running: _Running, status: str) -> None:
        start = running.start
        about = (start.task_id, start.attempt)
        self._end(running)
        if status == "SUCCEEDED":
            value = msgspec.Raw(_encode(self._value(running)))
            artifacts = self._artifacts(running)
            self._say(frames.HostResult(*about, "SUCCEEDED", value, artifacts))
        elif status == "CANCELLED":
            self._say(frames.HostResult(*about, "CANCELLED"))
        else:
            error = AttemptError("E.RUNNER.FAILURE", "USER_CODE", "it failed")
            self._say(frames.HostResult(*about, "FAILED", error=error))

    def _end(self, running: _Running) -> None:
        for timer in running.timers:
            timer.cancel()
        start = running.start
        if self._running.pop((start.task_id, start.attempt), None) is not None:
            self.boot.attempt_ended(start)
