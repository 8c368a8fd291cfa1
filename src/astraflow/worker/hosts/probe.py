"""The probe of an installation: starts a host, checks that the handlers load, and stops it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol.business import AttemptError
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.process import HostProcess
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.hosts.settings import HostSpec, PoolSettings

STOP_GRACE_S: Final = 2.0
"""For what a package does at the end of its process."""
MESSAGE_CHARS: Final = 4_000


async def probe(spec: HostSpec, settings: PoolSettings, folder: Path, clock: Clock) -> None:
    """Load a package once, as a pool would. When this returns, nothing of the host is left.

    Raises:
        Refused: the package's code and its manifest do not fit together, or the code does not run.
        Unavailable: the host died or did not answer in time.
        OSError: no host can be started.
    """
    listener = _ProbeListener()
    loop = asyncio.get_running_loop()
    process = HostProcess(spec, settings, folder, clock, loop, listener)
    process.arm(clock.now() + settings.start_timeout_s + STOP_GRACE_S)
    is_late = False
    try:
        async with asyncio.timeout(settings.start_timeout_s):
            await listener.answered.wait()
        process.send(frames.encode(frames.HostStop()))
        process.kill_later(STOP_GRACE_S)
        await listener.ended.wait()
    except TimeoutError:
        is_late = True
    finally:
        if not listener.ended.is_set():
            process.kill()
            await listener.ended.wait()
        scratch = Scratch(folder)
        scratch.discard(process.work_dir)
        await scratch.wait_deleted()
    if listener.error is not None:
        stack = (listener.error.stack or "")[-MESSAGE_CHARS:]
        message = f"the package cannot be loaded: {listener.error.message[:MESSAGE_CHARS]}\n{stack}"
        raise errors.Refused(errors.PKG_INVALID, message.strip())
    if not listener.is_ready:
        why = f"it took longer than {settings.start_timeout_s:g} s" if is_late else listener.why
        message = f"the package's host did not start, {why}: {process.tail()[-MESSAGE_CHARS:]}"
        raise errors.Unavailable(errors.PKG_INSTALL_FAILED, message)


class _ProbeListener:
    def __init__(self) -> None:
        self.answered = asyncio.Event()
        self.ended = asyncio.Event()
        self.is_ready = False
        self.error: AttemptError | None = None
        self.why = ""

    def on_frames(self, frames_read: list[bytes]) -> None:
        for raw in frames_read:
            try:
                frame = frames.decode(raw)
            except (frames.BrokenStream, msgspec.ValidationError) as problem:
                self.on_broken(str(problem))
                return
            if isinstance(frame, frames.HostHello):
                self.is_ready = True
                self.answered.set()
            elif isinstance(frame, frames.HostBroken):
                self.error = frame.error  # it ends now by itself

    def on_output(self, channel: str, lines: list[str], dropped: int) -> None:
        """The end of it is kept by the process."""

    def on_broken(self, why: str) -> None:
        self.why = f"it wrote no frames: {why[:MESSAGE_CHARS]}"
        self.answered.set()

    def on_ended(self, exit_code: int) -> None:
        self.why = self.why or f"it ended with {exit_code}"
        self.answered.set()
        self.ended.set()
