"""One host process as its worker holds it: pipes, life line, fence, death.

The guard's end is the end of everything below it (see the SDK's host). When it has ended, all pipes are read to their
end before the death is told, so a result that was written counts.
"""

from __future__ import annotations

import asyncio
import math
import os
import struct
import subprocess
from pathlib import Path
from typing import Final, Protocol

import msgspec

from astraflow.clock import Clock
from astraflow.worker.hosts import proc
from astraflow.worker.hosts.builtin import host_program
from astraflow.worker.hosts.frames import BrokenStream, Splitter
from astraflow.worker.hosts.left_overs import HostRecord, forget_host, record_host
from astraflow.worker.hosts.output import Output
from astraflow.worker.hosts.settings import HostSettings, HostSpec

__all__ = ["EXIT_FENCED", "HostListener", "HostProcess"]

EXIT_FENCED: Final = 75
"""How a guard ends when its fence has passed."""
READ_BYTES: Final = 256 * 1024
OUTBOX_BYTES: Final = 64 * 1024 * 1024
"""What may wait for a host that does not read: more than the parameters of all slots should be."""
PRIVATE_ENV: Final = "ASTRA_"
"""Settings of ours in the environment, tokens among them: no business of package code."""

_DEADLINE: Final = struct.Struct("=d")


class HostListener(Protocol):
    """What the owner of a process is told."""

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
        settings: HostSettings,
        folder: Path,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        listener: HostListener,
    ) -> None:
        """Raises OSError when there is no such program or the machine has no room for a process."""
        self._settings = settings
        self._folder = folder
        self._loop = loop
        self._listener = listener
        self._splitter = Splitter()
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._is_due = False
        self._is_blocked = False
        self._is_broken = False
        self._is_over = False
        self._late_kill: asyncio.TimerHandle | None = None
        self._hard_kill: asyncio.TimerHandle | None = None
        self.armed = math.inf
        self.host_pid: int | None = None
        self._oom_kills = proc.oom_kills()
        self._spawn(spec, clock)

    def _spawn(self, spec: HostSpec, clock: Clock) -> None:
        mine: list[int] = []
        theirs: list[int] = []
        try:
            for index in range(5):
                read_fd, write_fd = os.pipe()
                is_to_host = index < 2
                mine.append(write_fd if is_to_host else read_fd)
                theirs.append(read_fd if is_to_host else write_fd)
            self._popen = self._start(spec, theirs)
        except OSError:
            for fd in (*mine, *theirs):
                os.close(fd)
            raise
        for fd in theirs:
            os.close(fd)
        self._write_fd, self._life_fd, self._read_fd, out_fd, err_fd = mine
        self._life: int | None = self._life_fd
        self.guard_pid = self._popen.pid
        self._guard_start = proc.start_time(self.guard_pid) or 0
        try:
            record_host(self._folder, HostRecord(self.guard_pid, self._guard_start))
        except OSError:
            for fd in mine:
                os.close(fd)  # with its life line it ends at once
            self._popen.wait()
            raise
        for fd in (self._write_fd, self._life_fd, self._read_fd):
            os.set_blocking(fd, False)
        rate = self._settings.output_bytes_per_s
        self._outputs = {
            channel: Output(fd, self._loop, clock, rate, self._lines_of(channel))
            for channel, fd in (("stdout", out_fd), ("stderr", err_fd))
        }
        self._loop.add_reader(self._read_fd, self._read)
        self._pid_fd = os.pidfd_open(self.guard_pid)
        self._loop.add_reader(self._pid_fd, self._on_exit)

    def _start(self, spec: HostSpec, fds: list[int]) -> subprocess.Popen[bytes]:
        read_fd, life_fd, write_fd, out_fd, err_fd = fds
        limits = self._settings
        data_dir = self._folder / "data"
        data_dir.mkdir(parents=True, exist_ok=True)
        told = {
            "read_fd": read_fd,
            "write_fd": write_fd,
            "life_fd": life_fd,
            "folder": str(spec.folder),
            "data_dir": str(data_dir),
            "worker_id": limits.worker_id,
            "result_bytes": limits.result_bytes,
            "max_threads": limits.max_threads,
            "open_files": limits.open_files,
            "memory_bytes": spec.memory_limit_bytes,
            "output_bytes": limits.output_bytes,
            "output_bytes_per_s": limits.output_bytes_per_s,
        }
        program = [str(spec.python), "-I", "-u", "-X", "utf8", str(host_program())]
        return subprocess.Popen(  # noqa: S603  (the package's own interpreter and our own program)
            [*program, msgspec.json.encode(told).decode()],
            stdin=subprocess.DEVNULL,
            stdout=out_fd,
            stderr=err_fd,
            pass_fds=(read_fd, write_fd, life_fd),
            cwd=data_dir,
            env={k: v for k, v in os.environ.items() if not k.startswith(PRIVATE_ENV)},
            start_new_session=True,
        )

    def _lines_of(self, channel: str) -> _Lines:
        return _Lines(self._listener, channel)

    # -- while it lives ---------------------------------------------------------------------

    def greeted(self, host_pid: int) -> None:
        """The host proper has said who it is: written down before it gets work."""
        if host_pid not in proc.children_of(self.guard_pid):
            self._broken(f"it calls itself a process that it is not: {host_pid}")
            return
        self.host_pid = host_pid
        started = proc.start_time(host_pid) or 0
        record = HostRecord(self.guard_pid, self._guard_start, host_pid, started)
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
        if deadline == self.armed or self._life is None:
            return
        try:
            os.write(self._life, _DEADLINE.pack(deadline))
        except (BlockingIOError, BrokenPipeError):
            self._broken("its guard does not answer")
            return
        self.armed = deadline

    def kill(self) -> None:
        """SIGKILL for everything of the host; `on_ended` follows."""
        if self._life is None:
            return
        os.close(self._life)
        self._life = None
        self._hard_kill = self._loop.call_later(self._settings.kill_timeout_s, self._kill_hard)

    def kill_later(self, delay_s: float) -> None:
        """Kill it, unless it has ended by then."""
        self._late_kill = self._loop.call_later(delay_s, self.kill)

    def rss_bytes(self) -> int:
        return proc.rss_below(self.guard_pid)

    def tail(self) -> str:
        """The end of what it wrote to stderr."""
        return self._outputs["stderr"].tail.decode("utf-8", "replace").replace("\0", "\\0").strip()

    def was_short_of_memory(self) -> bool:
        """Whether the kernel has killed for want of memory since the host started."""
        return proc.oom_kills() > self._oom_kills

    def _broken(self, why: str) -> None:
        if not self._is_broken:
            self._is_broken = True
            self._loop.call_soon(self._listener.on_broken, why)

    def _kill_hard(self) -> None:
        """The guard was hindered. What can be found below it is killed from here, and it too."""
        proc.kill_all(proc.tree_of(self.guard_pid)[::-1])

    def _write(self) -> None:
        self._is_due = False
        if self._is_over:
            return
        joined = b"".join(self._outbox)
        self._outbox.clear()
        try:
            written = os.write(self._write_fd, joined)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            self._outbox_bytes = 0
            return  # it is dying; what it has said is still to be read
        self._outbox_bytes = len(joined) - written
        is_blocked = self._outbox_bytes > 0
        if is_blocked:
            self._outbox.append(joined[written:])
        if is_blocked and not self._is_blocked:
            self._loop.add_writer(self._write_fd, self._write)
        elif self._is_blocked and not is_blocked:
            self._loop.remove_writer(self._write_fd)
        self._is_blocked = is_blocked

    def _read(self) -> None:
        try:
            read = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not read:
            self._loop.remove_reader(self._read_fd)
            return
        self._feed(read)

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
        for timer in (self._late_kill, self._hard_kill):
            if timer is not None:
                timer.cancel()
        if exit_code < 0 and self.host_pid is not None:
            # The guard may have been killed by another than us: then nobody has looked after the group.
            proc.kill_all(proc.session_of(self.host_pid, self._guard_start))
        self._read_to_the_end()
        for output in self._outputs.values():
            output.close()
        for fd in (self._pid_fd, self._read_fd, self._write_fd):
            os.close(fd)
        if self._life is not None:
            os.close(self._life)
            self._life = None
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


class _Lines:
    """Gives the lines of one channel to the listener."""

    __slots__ = ("_channel", "_listener")

    def __init__(self, listener: HostListener, channel: str) -> None:
        self._listener = listener
        self._channel = channel

    def __call__(self, lines: list[str], dropped: int) -> None:
        self._listener.on_output(self._channel, lines, dropped)
