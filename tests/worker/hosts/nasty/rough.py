"""Handlers that do to their host what no handler should."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from astraflow_sdk import Context, node

SETTINGS = json.loads(sys.argv[1])
KEPT: list[Any] = []


def write_raw(raw: bytes) -> None:
    os.write(SETTINGS["write_fd"], raw)


def frame(**fields: Any) -> bytes:
    raw = json.dumps(fields).encode()
    return struct.pack(">I", len(raw)) + raw


@node("nasty.not_a_frame")
async def not_a_frame() -> None:
    write_raw(b"\0\0\0\5hello")
    await asyncio.Event().wait()


@node("nasty.huge_frame")
async def huge_frame() -> None:
    write_raw(struct.pack(">I", 1024**3))
    await asyncio.Event().wait()


@node("nasty.twice")
async def twice(ctx: Context) -> dict[str, str]:
    first = {"said": "first"}
    write_raw(
        frame(type="result", task_id=ctx.task_id, attempt=1, status="SUCCEEDED", result=first)
    )
    return {"said": "second"}


@node("nasty.for_another")
async def for_another(other: str) -> dict[str, str]:
    write_raw(frame(type="result", task_id=other, attempt=1, status="SUCCEEDED", result={}))
    return {"said": "mine"}


@node("nasty.bad_result")
async def bad_result(ctx: Context) -> None:
    write_raw(frame(type="result", task_id=ctx.task_id, attempt=1, status="PERHAPS"))
    await asyncio.Event().wait()


@node("nasty.strange_frames")
async def strange_frames() -> None:
    write_raw(frame(type="weather", sky="blue") * 1100)
    await asyncio.Event().wait()


@node("nasty.written_then_dead")
async def written_then_dead(ctx: Context) -> None:
    write_raw(frame(type="result", task_id=ctx.task_id, attempt=1, status="SUCCEEDED", result={}))
    os.kill(os.getpid(), signal.SIGKILL)


@node("nasty.exits")
def exits(code: int) -> NoReturn:
    os._exit(code)


@node("nasty.says_exit")
def says_exit() -> NoReturn:
    sys.exit("enough")


@node("nasty.signal")
def by_signal(number: int) -> None:
    os.kill(os.getpid(), number)


@node("nasty.segfault")
def segfault() -> None:
    ctypes.string_at(0)


@node("nasty.thread_writes")
async def thread_writes() -> None:
    threading.Thread(target=write_raw, args=(b"\xff" * 64,)).start()
    await asyncio.Event().wait()


@node("nasty.blocks_the_loop")
async def blocks_the_loop(ctx: Context, started: str) -> None:
    os.close(os.open(started, os.O_CREAT))
    threading.Event().wait()


@node("nasty.swallows_cancel")
async def swallows_cancel(ctx: Context) -> None:
    ctx.log("info", "up")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ctx.log("info", "no")


@node("nasty.waits_in_a_thread")
def waits_in_a_thread(ctx: Context) -> None:
    ctx.log("info", "up")
    while not ctx.cancelled:
        time.sleep(0.01)
    ctx.raise_if_cancelled()


@node("nasty.waits")
async def waits(ctx: Context) -> None:
    ctx.log("info", "up")
    await asyncio.Event().wait()


@node("nasty.daemonizes")
def daemonizes(ctx: Context, pid_file: str, stays: bool = True) -> dict[str, int]:
    """Leaves a grandchild in a session of its own, which ignores whatever can be ignored."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "path = sys.argv[1]\n"
        "open(path + '.part', 'w').write(str(os.getpid())); os.rename(path + '.part', path)\n"
        "signal.pause()\n"
    )
    subprocess.run([sys.executable, "-c", program, pid_file], check=True)
    while not Path(pid_file).exists():
        time.sleep(0.01)
    ctx.log("info", "up")
    while stays:
        time.sleep(0.01)
    return {"pid": int(Path(pid_file).read_text())}


@node("nasty.opens_files")
def opens_files() -> None:
    files = []
    while True:
        files.append(open(os.devnull))  # noqa: SIM115


@node("nasty.allocates")
def allocates(piece: int) -> None:
    while True:
        KEPT.append(bytearray(os.urandom(4096) * (piece // 4096)))


@node("nasty.prints")
def prints(lines: int, text: str) -> None:
    for _ in range(lines):
        print(text)


@node("nasty.writes_past_python")
def writes_past_python(lines: int, text: str) -> dict[str, int]:
    for _ in range(lines):
        os.write(1, text.encode() + b"\n")
    return {"lines": lines}


@node("nasty.says_a_lot")
def says_a_lot(ctx: Context, mib: int) -> None:
    for _ in range(mib):
        for _ in range(64):
            ctx.emit("x" * 16 * 1024)
        time.sleep(0.001)


@node("nasty.environment")
def environment() -> dict[str, Any]:
    return {"names": sorted(os.environ), "path": sys.path}


@node("nasty.returns")
def returns(what: str) -> Any:
    return {
        "object": object(),
        "nan": {"value": float("nan")},
        "infinity": [float("inf")],
        "half": {"text": "\ud800"},
        "large": {"text": "x" * (5 * 1024 * 1024)},
        "circle": KEPT,
        "nothing": None,
        "list": [1, 2],
        "seed": {"status": "succeeded", "outputs": {"n": 1}, "artifacts": []},
    }[what]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@node("nasty.raises")
def raises(what: str) -> NoReturn:
    if what == "mute":
        raise Mute
    if what == "deep":
        raise RecursionError("x" * 1_000_000)
    raise MemoryError


@node("nasty.alarm")
def alarm(ctx: Context) -> None:
    """Sets an alarm of its own, as some libraries do, and holds the interpreter lock for long."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    ctx.log("info", "up")
    while True:
        time.sleep(0.01)


@node("nasty.middleware")
async def middleware(ctx: Context) -> dict[str, Any]:
    first = await ctx.next({"n": 1})
    second = await ctx.next(timeout_s=2)
    return {"answers": [first, second]}


@node("nasty.thread_middleware")
def thread_middleware(ctx: Context) -> dict[str, Any]:
    return {"answer": ctx.next({"n": 1})}


KEPT.append(KEPT)


@node("nasty.close_pipe")
def close_pipe(which: str) -> None:
    os.close(SETTINGS[which])
    time.sleep(3600)


@node("nasty.close_everything")
def close_everything() -> None:
    os.closerange(0, 1000)
    time.sleep(3600)


@node("nasty.variables")
def variables() -> dict[str, str]:
    return dict(os.environ)


@node("nasty.crowd")
def crowd(count: int) -> None:
    for _ in range(count):
        KEPT.append(subprocess.Popen(["sleep", "3600"]))
    time.sleep(3600)


@node("nasty.leave_behind")
async def leave_behind(ctx: Context, how: str, end: str) -> dict[str, int]:
    """Starts a process that starts another, and ends in one of the ways in which handlers end."""
    command = ["sh", "-c", "sleep 3600 & echo $!; wait"]
    if how == "popen":
        process = subprocess.Popen(  # noqa: ASYNC220
            command, stdout=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        below = int(process.stdout.readline())
        pid = process.pid
    elif how == "asyncio":
        other = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert other.stdout is not None
        below = int(await other.stdout.readline())
        pid = other.pid
        KEPT.append(other)
    else:
        pid = below = os.fork()
        if not pid:
            time.sleep(3600)  # noqa: ASYNC251
    ctx.log("info", f"{pid} {below}")
    if end == "fail":
        raise ValueError("on purpose")
    if end == "hang":
        await asyncio.Event().wait()
    return {"pid": pid, "below": below}
