"""One program as a process: started, watched, killed by its pid, and never left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.processes.waiting import WAIT_S, until

__all__ = ["ASTRA", "ROOT", "Process", "clean_environment", "free_port", "marked"]

ROOT = Path(__file__).resolve().parents[2]
ASTRA = (sys.executable, "-m", "astraflow")
MARK = "LC_TEST_MARK"
"""The variable that a process and everything that it starts inherit. Hosts get no others than those of the locale."""
STOP_S = 60.0
LEFT_S = 15.0
KEPT = ("ASTRA_CHROMIUM",)

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
FoundT = TypeVar("FoundT")


def clean_environment(**more: str) -> dict[str, str]:
    """Ours, without what would tell a program about other servers or how to look."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if name in KEPT
        or not (name.startswith("ASTRA_") or name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"))
    }
    return {**kept, "TERM": "xterm", **more}


def free_port() -> int:
    """A port that can be taken again after a restart: below those that the kernel gives to callers."""
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def _die_with_parent() -> None:
    """Between fork and exec: whatever becomes of the tests, no process outlives them."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def marked(*marks: str) -> dict[int, str]:
    """Living processes with one of these marks, by pid, with their command lines."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    found: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        folder = Path("/proc", entry)
        try:
            if wanted & set((folder / "environ").read_bytes().split(b"\0")):
                text = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry)] = text.decode(errors="replace").strip()
        except OSError:
            continue  # gone while we looked
    return found


@dataclass
class Process:
    """A program, and the process of it that is there now. It writes to `<name>.out` and `<name>.log`."""

    name: str
    arguments: list[str]
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ASTRA
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    _popen: subprocess.Popen[bytes] | None = None
    _log_from: int = 0
    _out_at: int = 0

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """The exit code, once it has ended."""
        assert self._popen is not None
        return self._popen.poll()

    @property
    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def is_alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self, **environ: str) -> Process:
        """Start it, out of reach of our own ^C. `environ`: for this start alone."""
        assert not self.is_alive(), f"{self.name} is there already"
        # The kernel kills a child when the thread that made it ends, and those of an event loop end with the loop.
        assert threading.current_thread() is threading.main_thread()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log, self._out.open("ab") as out:
            self._log_from, self._out_at = log.tell(), out.tell()
            self._popen = subprocess.Popen(
                [*self.command, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                cwd=self.folder,
                env=clean_environment(**{**self.environ, **environ, MARK: self.mark}),
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        return self

    # -- what it says -----------------------------------------------------------------------

    def said(self) -> str:
        """What it has written to stderr since its last start."""
        return self.log.read_bytes()[self._log_from :].decode(errors="replace")

    def line(self, wanted: Callable[[str], object], within_s: float = WAIT_S) -> str:
        """Wait for the next line on stdout that is wanted; those before it are taken, too."""

        def look() -> list[str]:
            *lines, _ = self._out.read_bytes()[self._out_at :].split(b"\n")
            for line in lines:
                self._out_at += len(line) + 1
                if wanted(line.decode()):
                    return [line.decode()]
            return []

        return self.until(look, "a line on stdout", within_s)[0]

    def until(
        self,
        condition: Callable[[], FoundT | None],
        what: str = "a condition",
        within_s: float = WAIT_S,
    ) -> FoundT:
        """Wait for something while the process lives; a failure shows its log."""

        def look() -> FoundT | None:
            is_over = not self.is_alive()
            found = condition()
            assert found or not is_over, f"{self.name} ended with {self.code}"
            return found

        try:
            return until(look, what, within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._tail()}") from None

    def until_said(self, text: str) -> None:
        self.until(lambda: text in self.said(), repr(text))

    # -- its end ----------------------------------------------------------------------------

    def send(self, number: signal.Signals) -> None:
        assert self._popen is not None
        self._popen.send_signal(number)  # never sent to a pid that was reaped

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9`, of it alone."""
        self.send(signal.SIGKILL)
        self.wait()

    def wait(self, within_s: float = STOP_S) -> int:
        assert self._popen is not None
        try:
            return self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end\n{self._tail()}") from None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it unless it has ended, and wait for its end; its exit code."""
        self.send(number)
        return self.wait()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """As `stop`, and nothing that it has started is left."""
        try:
            code = self.stop(number)
            until(lambda: not self.family(), f"the end of {self.family()}", LEFT_S)
            return code
        finally:
            self.close()

    def family(self) -> dict[int, str]:
        """The living among it and what it has started, by pid."""
        return marked(self.mark)

    def close(self) -> None:
        """Leave nothing behind, in whatever state it is."""
        if self.is_alive():
            self.kill()
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def _out(self) -> Path:
        return self.folder / f"{self.name}.out"

    def _tail(self) -> str:
        return f"{self.name} wrote:\n{self.said()[-4000:]}"
