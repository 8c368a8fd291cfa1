"""What a user types: a command run to its end, one that stays, one at a terminal, and `astra up`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.processes.process import ASTRA, Process, clean_environment
from tests.processes.waiting import WAIT_S

__all__ = ["Done", "Terminal", "Up", "astra", "start", "up"]


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


def start(*arguments: str, cwd: Path, **environment: str) -> Process:
    """Start a command that stays."""
    return Process("-".join(arguments[:2]), list(arguments), cwd, environment).start()


class Up:
    """`astra up` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        given = ["up", "--port", "0", *arguments]
        self.process = Process("up", given, folder, environment).start()
        try:
            line = self.process.line(lambda one: one.startswith("listening on "))
        except AssertionError:
            self.process.close()
            raise
        self.url = line.split()[-1]

    def astra(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        """A command in the same folder, which finds the server by itself."""
        try:
            return astra(*arguments, cwd=self.folder, stdin=stdin, **environment)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}; so far: {late.stderr!r}\n{self.said()}") from None

    def typed(self, command: str) -> str:
        """What a command prints that a page names, as `astra …` or `printf … | astra …`; it succeeds."""
        stdin = ""
        before, pipe, after = command.partition(" | ")
        if pipe:
            word, stdin = shlex.split(before)
            assert word == "printf"
            command = after
        done = self.astra(*shlex.split(command)[1:], stdin=stdin)
        assert done.code == 0, (command, done.out, done.err)
        return done.out + done.err

    def start(self, *arguments: str) -> Process:
        return start(*arguments, cwd=self.folder)

    def submit(self, definition: dict[str, Any]) -> str:
        done = self.astra("run", "-", "--no-watch", stdin=json.dumps(definition))
        assert done.code == 0, done
        return done.out.strip()

    def said(self) -> str:
        return self.process.said()

    @property
    def token(self) -> str:
        return (self.folder / "var" / "token").read_text().strip()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Nothing of it is left then; its exit code."""
        return self.process.end(number)


@contextmanager
def up(folder: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    running = Up(folder, *arguments, **environment)
    try:
        yield running
    finally:
        running.end()


class Terminal:
    """A command at a terminal of its own, of 24 lines."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str) -> None:
        self._master, slave = pty.openpty()
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
