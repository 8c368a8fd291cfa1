"""Real `astra` processes: how tests start them, wait for them, and see that nothing of them is left."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

WAIT_S = 45.0
"""For what must happen; it is never waited out unless something is broken."""

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ASTRA = (sys.executable, "-m", "astraflow")


class Done(NamedTuple):
    """A whole exchange."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def clean_environment(**more: str) -> dict[str, str]:
    """Ours, without what would tell the command line about other servers or how to look."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("ASTRA_") and name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    }
    return {**kept, "TERM": "xterm", **more}


def astra(*arguments: str, cwd: Path, stdin: str = "", **environment: str) -> Done:
    """Run a command to its end."""
    ended = subprocess.run(
        [*ASTRA, *arguments],
        cwd=cwd,
        env=clean_environment(**environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)


def start(*arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a command, out of reach of our own ^C; its stderr goes to the file `stderr`."""
    with (cwd / "stderr").open("ab") as err:
        return subprocess.Popen(
            [*ASTRA, *arguments],
            cwd=cwd,
            env=clean_environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            bufsize=1,
            start_new_session=True,
        )


def read_until(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> str:
    """Read lines until one is wanted, and return it."""
    assert process.stdout is not None
    deadline = time.monotonic() + WAIT_S
    seen = []
    while time.monotonic() < deadline:
        # Line by line from the descriptor: a buffer would hide what select looks at.
        line = _read_line(process.stdout.fileno(), deadline)
        if line is None:
            break
        seen.append(line)
        if wanted(line):
            return line
    raise AssertionError(f"it never said so, only: {seen}")


def _read_line(descriptor: int, deadline: float) -> str | None:
    gathered = b""
    while not gathered.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(descriptor, 1) if ready else b""
        if not piece:
            return None
        gathered += piece
    return gathered.decode()


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
    """Send a signal and wait for the end; returns the exit code."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    found: set[int] = set()
    for child in _children(pid):
        found |= {child, *descendants(child)}
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def await_ends(pids: set[int]) -> set[int]:
    """Wait until all have ended; returns those that have not, which should be none."""
    watched = {}
    for pid in pids:
        try:
            watched[os.pidfd_open(pid)] = pid
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + WAIT_S
    try:
        while watched and (left := deadline - time.monotonic()) > 0:
            for descriptor in select.select(list(watched), [], [], left)[0]:
                os.close(descriptor)
                del watched[descriptor]
        return set(watched.values())
    finally:
        for descriptor in watched:
            os.close(descriptor)


class Up:
    """`astra up` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.process = start("up", "--port", "0", *arguments, cwd=folder, **environment)
        try:
            line = read_until(self.process, lambda one: one.startswith("listening on "))
        except AssertionError as error:
            end(self.process, signal.SIGKILL)
            raise AssertionError(f"{error}\n{self.said()}") from None
        self.url = line.split()[-1]

    def astra(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        """A command in the same folder, which finds the server by itself."""
        try:
            return astra(*arguments, cwd=self.folder, stdin=stdin, **environment)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}; so far: {late.stderr!r}\n{self.said()}") from None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return start(*arguments, cwd=self.folder)

    def submit(self, definition: dict[str, Any]) -> str:
        done = self.astra("run", "-", "--no-watch", stdin=json.dumps(definition))
        assert done.code == 0, done
        return done.out.strip()

    def said(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def token(self) -> str:
        return (self.folder / "var" / "token").read_text().strip()

    def end(self, number: int = signal.SIGTERM) -> int:
        below = descendants(self.process.pid)
        code = end(self.process, number)
        left = await_ends(below)
        assert not left, f"still there: {left}\n{self.said()}"
        return code


@contextmanager
def up(folder: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    running = Up(folder, *arguments, **environment)
    try:
        yield running
    finally:
        running.end()


def node(number: int, kind: str, label: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "type": f"core.{kind}",
        "label": label or f"Node {number}",
        **fields,
    }


def workflow(*nodes: dict[str, Any], edges: Any = ()) -> dict[str, Any]:
    return {
        "id": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
        "metadata": {"name": "Of a test"},
        "nodes": list(nodes),
        "edges": [{"source": {"node": a["id"]}, "target": {"node": b["id"]}} for a, b in edges],
    }


SLOW = workflow(node(1, "sleep", "Long sleep", parameters={"seconds": 120}))
FAILING = workflow(node(1, "fail", "Breaks", parameters={"message": "broken on purpose"}))


class Terminal:
    """A command at a terminal of its own, of 24 lines."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str) -> None:
        self._master, slave = pty.openpty()
        import fcntl
        import struct
        import termios

        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [*ASTRA, *arguments],
            cwd=cwd,
            env=clean_environment(**environment),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def read_until(self, text: str | None) -> str:
        """Read until a text was seen, or for None to the end."""
        deadline = time.monotonic() + WAIT_S
        while text is None or text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} never came: {self.seen}"
            ready, _, _ = select.select([self._master], [], [], left)
            try:
                piece = os.read(self._master, 65536) if ready else b""
            except OSError:  # the other end is closed
                piece = b""
            if ready and not piece:
                assert text is None, f"{text!r} never came: {self.seen}"
                break
            self.seen += piece.decode("utf-8", "replace")
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        try:
            self.read_until(None)
            return self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self._master)
