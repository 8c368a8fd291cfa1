"""A real Chromium that a test drives as a person would: over the DevTools protocol, through a pipe."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes.waiting import WAIT_S, until

__all__ = ["BrowserPage", "browsing"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but this machine: a page that names another host does not wait for it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
# Chromium reads commands at descriptor 3 and writes answers to 4.
EXEC = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


class BrowserPage:
    """The one page of a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._rest = b""
        self._ids = itertools.count(1)
        self._session: dict[str, str] = {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def go(self, url: str) -> None:
        self._ask("Page.navigate", url=url)

    @property
    def url(self) -> str:
        return str(self.run("location.href"))

    @property
    def text(self) -> str:
        """What a person sees."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def run(self, script: str) -> Any:
        """The value of a script in the page; None while the page is being left."""
        given = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._ask("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer
        return answer.get("result", {}).get("value")

    def until_shown(self, text: str) -> str:
        """Wait until the page shows this; all that it shows then."""
        return until(lambda: shown if text in (shown := self.text) else None, f"the text {text!r}")

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        order = {"id": number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(order).encode() + b"\0")
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == number:
                return dict(answer.get("result", {}))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            piece = os.read(self._answers, 1 << 16) if ready else b""
            assert piece, "the browser does not answer"
            self._rest += piece
        raw, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(raw))


@contextmanager
def browsing(profile: Path) -> Iterator[BrowserPage]:
    """A browser of its own, with nothing in it."""
    program = os.environ.get("ASTRA_CHROMIUM") or shutil.which("chromium") or "google-chrome"
    path = shutil.which(program)
    assert path is not None, "there is no Chromium: `make chromium` installs one"
    theirs_in, commands = _high_pipe()
    answers, theirs_out = _high_pipe()
    ends = [sys.executable, "-c", EXEC, str(theirs_in), str(theirs_out)]
    process = subprocess.Popen(
        [*ends, path, *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield BrowserPage(commands, answers)
    finally:
        os.close(commands)  # it ends with its commands
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answers)


def _high_pipe() -> tuple[int, int]:
    """A pipe whose descriptors are not those that Chromium takes."""
    low = os.pipe()
    high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in low]
    for one in low:
        os.close(one)
    return high[0], high[1]
