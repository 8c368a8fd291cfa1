"""Child processes of handlers: tracked by the attempt that started them, and killed with it unless it succeeds.

An attempt that is cancelled, times out or fails has ended when all its processes are dead. Its host lives on for other
attempts, so its processes are killed one by one, with all their children, before its end is reported. What a
successful attempt has started stays: it may be what a kept object needs (a browser, a model server).

The three ways in which Python starts processes are watched: `subprocess` (with it `asyncio`), `os.fork` (with it
`multiprocessing`) and `os.posix_spawn`. A process that a package starts for several attempts is started where no
attempt is current, in `contextvars.Context().run(…)`: then it belongs to the host.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.current import CURRENT

MAX_NOTED = 1_000
"""Processes of an attempt that are noted before those that have ended are dropped; far fewer may live at once."""
ROUNDS = 100
"""Of looking for what was started while we looked."""


def watch_children() -> None:
    """From now on, note who starts processes. Call it once, before any handler runs."""
    made = subprocess.Popen.__init__

    def popen(self: Any, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        _note(self.pid)

    subprocess.Popen.__init__ = popen  # type: ignore[method-assign]
    os.fork = _noting(os.fork)
    for name in ("posix_spawn", "posix_spawnp"):
        setattr(os, name, _noting(getattr(os, name)))


def _noting(start: Callable[..., int]) -> Callable[..., int]:
    def started(*given: Any, **named: Any) -> int:
        pid = start(*given, **named)
        if pid:  # not in the child of a fork
            _note(pid)
        return pid

    return started


def _note(pid: int) -> None:
    ctx = CURRENT.get()
    if ctx is None:
        return
    noted = ctx.children or []
    if len(noted) >= MAX_NOTED:  # an attempt may start processes without end, one after the other
        noted = [(one, since) for one, since in noted if since and _start_time(one) == since]
    ctx.children = [*noted, (pid, _start_time(pid))]


def end_children(ctx: Context) -> None:
    """Kill what the attempt has started and everything below that."""
    started, ctx.children = ctx.children or [], None
    for pid, since in started:
        if (
            since is not None and _start_time(pid) == since
        ):  # else its number may be another's by now
            _kill_tree(pid)


def _kill_tree(pid: int) -> None:
    """All are stopped before one is killed: what still runs could start another meanwhile."""
    stopped: list[int] = []
    for _ in range(ROUNDS):
        fresh = [one for one in _tree(pid) if one not in stopped]
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        stopped += fresh
    _signal(stopped, signal.SIGKILL)


def _signal(pids: list[int], number: int) -> None:
    for one in pids:
        try:
            os.kill(one, number)
        except OSError:
            continue


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children") as children:
                    found += map(int, children.read().split())
        except OSError:
            continue  # it ended meanwhile
    return found


def _start_time(pid: int) -> str | None:
    """With the pid it names a process for all time; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]
