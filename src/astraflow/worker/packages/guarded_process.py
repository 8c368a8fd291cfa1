"""Programs of the installer (uv, hooks) under a guard that kills them with all their child processes.

The guard is the same as for package hosts (ADR 18): it kills at a deadline, when this process closes the life line or
exits, and when the program has ended but its child processes have not.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from astraflow.clock import Clock
from astraflow.worker.hosts.builtin import host_program
from astraflow.worker.hosts.process import EXIT_FENCED

TAIL_BYTES: Final = 16 * 1024
"""Of what a program prints: the end, where the error is."""
_PROGRAM: Final = Path(__file__).with_name("guard_program.py")
_DEADLINE: Final = struct.Struct("=d")


class Ended(NamedTuple):
    """How a program ended. Negative: the number of the signal."""

    code: int
    tail: str
    is_late: bool


async def run_guarded(
    program: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    clock: Clock,
) -> Ended:
    """Run a program to its end, or to its deadline; then nothing of it is left.

    Raises:
        OSError: no process can be started.
    """
    deadline = clock.now() + timeout_s
    popen, life_fd = _start(program, cwd, env, deadline)
    try:
        tail = await asyncio.to_thread(_read_and_reap, popen)
    finally:
        os.close(life_fd)  # if we are cancelled here, this is what ends the program
    is_late = popen.returncode == EXIT_FENCED and clock.now() >= deadline
    return Ended(popen.returncode, tail, is_late)


def _start(
    program: Sequence[str], cwd: Path, env: Mapping[str, str], deadline: float
) -> tuple[subprocess.Popen[bytes], int]:
    """The guard, and our end of its life line."""
    theirs, life_fd = os.pipe()
    try:
        os.write(life_fd, _DEADLINE.pack(deadline))
        sdk = host_program().parents[2]
        popen = subprocess.Popen(  # noqa: S603  (our own guard; what it runs is the caller's choice)
            [sys.executable, "-I", str(_PROGRAM), str(sdk), str(theirs), *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs,),
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
    except OSError:
        os.close(life_fd)
        raise
    finally:
        os.close(theirs)
    return popen, life_fd


def _read_and_reap(popen: subprocess.Popen[bytes]) -> str:
    assert popen.stdout is not None
    tail = b""
    with popen.stdout as output:
        while read := os.read(output.fileno(), TAIL_BYTES):
            tail = (tail + read)[-TAIL_BYTES:]
    popen.wait()
    return tail.decode("utf-8", "replace").replace("\0", "\\0").strip()
