"""One host process as its worker sees it: pipes, life line, fence and exit.

When the guard has exited, every process below it is dead (see the SDK's host). All pipes are then read to their end
before the exit is reported, so a result that was written counts.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import struct
from collections import deque
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from astraflow.clock import Clock
from astraflow.worker.hosts import procfs
from astraflow.worker.hosts.frames import BrokenStream, Splitter
from astraflow.worker.hosts.orphans import HOST_ENV, HostRecord, forget_host, record_host
from astraflow.worker.hosts.output import Output
from astraflow.worker.hosts.rate_limit import RateLimit
from astraflow.worker.hosts.settings import HostSpec, PoolSettings
from astraflow.worker.hosts.spawn import spawn

EXIT_FENCED: Final = 75
"""How a guard ends when its fence has passed."""
READ_BYTES: Final = 64 * 1024
"""What a pipe holds. A larger buffer would be mapped and unmapped for every read."""
CHANNEL_BYTES_PER_S: Final = 64 * 1024 * 1024
"""What a host may say. One that says more is read more slowly, so that it does not take the worker from the others."""
PAUSE_S: Final = 0.02
MUTE_S: Final = 1.0
"""A host that has closed its channel ends by then, or is killed: nobody would hear of its attempts any more."""
MAX_BUFFERS: Final = 256
"""Frames that are written at once; the kernel takes 1,024."""

OUTBOX_BYTES: Final = 64 * 1024 * 1024
"""What may wait for a host that does not read: more than the parameters of all slots should be."""

_DEADLINE: Final = struct.Struct("=d")


class HostListener(Protocol):
    """The events of a host process."""

    def on_frames(self, frames: list[bytes]) -> None:
        """The host said this."""

    def on_output(self, channel: str, lines: list[str], dropped: int) -> None:
        """Lines that were written past Python, and how many were dropped."""

    def on_broken(self, why: str) -> None:
        """The channel cannot be used any more: kill it."""

    def on_ended(self, exit_code: int) -> None:
        """Everything is dead, read and reaped. Negative: the number of the signal."""


class HostProcess:
    """Started by its constructor; ends with `on_ended`, always."""

    def __init__(
        self,
        spec: HostSpec,
        settings: PoolSettings,
        folder: Path,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        listener: HostListener,
    ) -> None:
        """Raises OSError when it cannot be started."""
        self._settings = settings
        self._folder = folder
        self._loop = loop
        self._listener = listener
        self._splitter = Splitter()
        self._outbox: deque[bytes | memoryview] = deque()
        self._outbox_bytes = 0
        self._is_due = False
        self._is_blocked = False
        self._is_broken = False
        self._is_over = False
        self._clock = clock
        self._allowance = RateLimit(CHANNEL_BYTES_PER_S, clock.now())
        self._pause: asyncio.TimerHandle | None = None
        self._mute: asyncio.TimerHandle | None = None
        self._late_kill: asyncio.TimerHandle | None = None
        self._hard_kill: asyncio.TimerHandle | None = None
        self.armed = math.inf
        self.host_pid: int | None = None
        self._oom_kills = procfs.oom_kills()
        spawned = spawn(spec, settings, folder)
        self._popen = spawned.popen
        self.guard_pid = spawned.popen.pid
        self._guard_start = spawned.started
        self._mark = spawned.mark
        self.work_dir = spawned.work_dir
        self._write_fd = spawned.write_fd
        self._read_fd = spawned.read_fd
        self._pid_fd = spawned.pid_fd
        self._life_fd: int | None = spawned.life_fd  # None: it has been let go
        rate = settings.output_bytes_per_s
        self._outputs = {
            channel: Output(fd, loop, clock, rate, partial(listener.on_output, channel))
            for channel, fd in (("stdout", spawned.out_fd), ("stderr", spawned.err_fd))
        }
        loop.add_reader(self._read_fd, self._read)
        loop.add_reader(self._pid_fd, self._on_exit)

    # -- while it lives ---------------------------------------------------------------------

    def greeted(self, host_pid: int) -> None:
        """The host proper has said who it is: written down before it gets work."""
        if host_pid not in procfs.children_of(self.guard_pid):
            self._broken(f"it calls itself a process that it is not: {host_pid}")
            return
        self.host_pid = host_pid
        started = procfs.start_time(host_pid) or 0
        record = HostRecord(self.guard_pid, self._guard_start, host_pid, started, self._mark)
        try:
            record_host(self._folder, record)
        except OSError as problem:
            self._broken(f"it cannot be written down: {problem}")

    def send(self, raw: bytes) -> None:
        """Queue a frame; all of a turn of the loop go out in one write."""
        if self._is_over:
            return
        self._outbox.append(raw)
        self._outbox_bytes += len(raw)
        if not self._is_due and not self._is_blocked:
            self._is_due = True
            self._loop.call_soon(self._write)
        if self._outbox_bytes > OUTBOX_BYTES:
            self._broken("it does not read what is sent to it")

    def arm(self, deadline: float) -> None:
        """Move the fence: at this time the host dies, whatever becomes of this process. Infinity disarms."""
        if deadline == self.armed or self._life_fd is None:
            return
        try:
            os.write(self._life_fd, _DEADLINE.pack(deadline))
        except (BlockingIOError, BrokenPipeError):
            self._broken("its guard does not answer")
            return
        self.armed = deadline

    def kill(self) -> None:
        """SIGKILL for everything of the host; `on_ended` follows."""
        if self._life_fd is None:
            return
        os.close(self._life_fd)
        self._life_fd = None
        self._hard_kill = self._loop.call_later(self._settings.kill_timeout_s, self._kill_hard)

    def kill_later(self, delay_s: float) -> None:
        """Kill it, unless it has ended by then."""
        self._late_kill = self._loop.call_later(delay_s, self.kill)

    def look(self) -> None:
        """See whether it can still be spoken to: a closed end of a pipe is noticed at the next write only, if any."""
        poll = select.poll()
        poll.register(self._write_fd, 0)
        if poll.poll(0):
            self._on_mute()

    def held(self) -> procfs.ProcessUsage:
        """What the host and all that it started take."""
        return procfs.held_below(self.guard_pid)

    def tail(self) -> str:
        """The end of what it wrote to stderr."""
        return self._outputs["stderr"].tail.decode("utf-8", "replace").replace("\0", "\\0").strip()

    def was_short_of_memory(self) -> bool:
        """Whether the kernel has killed for want of memory since the host started."""
        return procfs.oom_kills() > self._oom_kills

    def _broken(self, why: str) -> None:
        if not self._is_broken:
            self._is_broken = True
            self._loop.call_soon(self._listener.on_broken, why)

    def _kill_hard(self) -> None:
        """The guard was hindered. What can be found below it is killed from here, and it too."""
        procfs.kill_all(procfs.tree_of(self.guard_pid)[::-1])

    def _write(self) -> None:
        self._is_due = False
        if self._is_over:
            return
        try:
            self._write_outbox()
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._outbox.clear()
            self._outbox_bytes = 0
            self._on_mute()
            return  # what it has said is still to be read
        is_blocked = self._outbox_bytes > 0
        if is_blocked and not self._is_blocked:
            self._loop.add_writer(self._write_fd, self._write)
        elif self._is_blocked and not is_blocked:
            self._loop.remove_writer(self._write_fd)
        self._is_blocked = is_blocked

    def _write_outbox(self) -> None:
        """As much as the pipe takes. A large frame is not copied: of what is left of it only a view is kept.

        Raises: BlockingIOError, BrokenPipeError.
        """
        outbox = self._outbox
        while outbox:
            written = os.writev(self._write_fd, list(islice(outbox, MAX_BUFFERS)))
            self._outbox_bytes -= written
            while written:
                length = len(outbox[0])
                if length > written:
                    outbox[0] = memoryview(outbox[0])[written:]
                    break
                written -= length
                outbox.popleft()

    def _read(self) -> None:
        try:
            read = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not read:
            self._loop.remove_reader(self._read_fd)
            self._on_mute()
            return
        if not self._allowance.take(len(read), self._clock.now()):
            self._loop.remove_reader(self._read_fd)
            self._pause = self._loop.call_later(
                PAUSE_S, self._loop.add_reader, self._read_fd, self._read
            )
        self._feed(read)

    def _on_mute(self) -> None:
        """A pipe is closed at the other end. It is dying, or its code has closed what it does not own."""
        if self._mute is None:
            self._mute = self._loop.call_later(
                MUTE_S, self._broken, "it has closed its channel and does not end"
            )

    def _feed(self, read: bytes) -> None:
        if self._is_broken:
            return
        try:
            frames = self._splitter.feed(read)
        except BrokenStream as problem:
            self._broken(str(problem))
            return
        if frames:
            self._listener.on_frames(frames)

    # -- its end ----------------------------------------------------------------------------

    def _on_exit(self) -> None:
        self._is_over = True
        for fd in (self._pid_fd, self._read_fd):
            self._loop.remove_reader(fd)
        if self._is_blocked:
            self._loop.remove_writer(self._write_fd)
        exit_code = self._popen.wait()
        for timer in (self._late_kill, self._hard_kill, self._pause, self._mute):
            if timer is not None:
                timer.cancel()
        if exit_code < 0 and self.host_pid is not None:
            # The guard may have been killed by another than us: then nobody has looked after the group and strays.
            procfs.kill_all(procfs.session_of(self.host_pid, self._guard_start))
            procfs.kill_all(procfs.bearers_of(f"{HOST_ENV}={self._mark}"))
        self._read_to_the_end()
        for output in self._outputs.values():
            output.close()
        for fd in (self._pid_fd, self._read_fd, self._write_fd):
            os.close(fd)
        if self._life_fd is not None:
            os.close(self._life_fd)
            self._life_fd = None
        forget_host(self._folder, self.guard_pid)
        self._listener.on_ended(exit_code)

    def _read_to_the_end(self) -> None:
        while True:
            try:
                read = os.read(self._read_fd, READ_BYTES)
            except BlockingIOError:
                return  # a stray still holds the other end; it is no host of ours any more
            if not read:
                return
            self._feed(read)
