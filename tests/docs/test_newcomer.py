"""The path of a newcomer: every command that the README, `astra up` and the guides print, executed as it is printed.

Only the port is another one, so that the tests can run beside whatever listens at 8080.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes.process import ROOT, Process, clean_environment, free_port
from tests.processes.waiting import WAIT_S

LEFT_OUT = (
    ".git",
    ".venv",
    "var",
    "build",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "node_modules",
)
INSTALL_S = 300.0
"""The first browser node is installed with wheels from the network."""


def blocks(page: str, *languages: str) -> list[str]:
    """The commands in the blocks of a page, one each, without their comments."""
    text = (ROOT / page).read_text("utf-8")
    found = []
    for language, block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL):
        if language in languages:
            joined = block.replace("\\\n", " ")
            found += [
                line.partition(" #")[0].strip() for line in joined.splitlines() if line.strip()
            ]
    return found


class Terminal:
    """A shell in the folder that was cloned."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        programs = folder.parent / "bin"
        programs.mkdir(exist_ok=True)
        for name in ("python3", "python"):  # as on a machine where it is installed
            if not (programs / name).exists():
                (programs / name).symlink_to(sys.executable)
        self.environment = clean_environment(
            PATH=f"{os.environ['PATH']}:{programs}",
            XDG_CACHE_HOME=str(folder.parent / "cache"),
            UV_CACHE_DIR=os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv"),
        )

    def type(self, command: str, within_s: float = WAIT_S) -> str:
        ended = subprocess.run(
            ["sh", "-c", command.replace("8080", str(self.port))],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=within_s,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        return ended.stdout + ended.stderr

    @contextmanager
    def staying(self, command: str) -> Iterator[list[str]]:
        """A command that stays in the foreground; what it said until its list of commands was complete."""
        given = ["-c", f"exec {command}"]
        process = Process("staying", given, self.folder, self.environment, ("sh",)).start()
        said: list[str] = []

        def is_last(line: str) -> bool:
            said.append(line)
            return line.strip().startswith("curl ")

        try:
            process.line(is_last)
            yield said
        finally:
            # `make` does not hand a signal on; its child ends the two of them.
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGINT)
            process.end(signal.SIGCONT if children else signal.SIGINT)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A fresh clone, but for the environment that is made already."""
    folder = tmp_path_factory.mktemp("newcomer") / "astraflow"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    port = free_port()
    for example in (*folder.glob("examples/*.json"), *folder.glob("docs/examples/*.json")):
        example.write_text(example.read_text("utf-8").replace(":8080", f":{port}"), "utf-8")
    return Terminal(folder, port)


def printed_commands(said: list[str]) -> list[str]:
    start = next(place for place, line in enumerate(said) if line.startswith("Try, in another"))
    return [line.strip() for line in said[start + 1 :] if line.strip()]


@pytest.mark.timeout(INSTALL_S + 120)
def test_the_front_page_and_what_it_starts(terminal: Terminal) -> None:
    first, *rest = blocks("README.md", "")
    assert first == "make run"
    contributing = rest.index("make")
    with terminal.staying(f"make run PORT={terminal.port}") as said:
        printed = printed_commands(said)
        assert len(printed) == 3, said
        for command in printed:
            answer = terminal.type(command)
            assert "error" not in answer, f"{command}\n{answer}"
        (page,) = [one.split()[-1] for one in said if "/api/docs" in one]
        assert "<title>AstraFlow API</title>" in terminal.type(f"curl -sS --fail {page}")
        for command in rest[:contributing]:
            answer = terminal.type(command, INSTALL_S)
            if command.startswith("curl"):
                body = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])
                assert body["status"] == "queued", answer
        guided = blocks("docs/guides/browser.md", "bash")
        assert guided == ["astra run examples/playwright-smoke.json"]
        assert "succeeded" in terminal.type(f".venv/bin/{guided[0]}", INSTALL_S)


def test_the_targets_for_contributors_are_there(terminal: Terminal) -> None:
    commands = [one for one in blocks("README.md", "") if one.startswith("make")]
    assert commands[1] == "make"
    listed = terminal.type("make")
    for command in commands[2:]:
        (target,) = command.split()[1:]
        assert re.search(rf"^  {target} +\w", listed, re.MULTILINE), f"{target}\n{listed}"
        terminal.type(f"make -n {target}")


def test_elsewhere_the_greeting_says_where_the_server_is(terminal: Terminal) -> None:
    port = free_port()
    command = f".venv/bin/astra up --port {port} --data-dir elsewhere --workers 0"
    with terminal.staying(command) as said:
        export, *commands = printed_commands(said)
        assert export.startswith("export ASTRA_SERVER=")
        (workers,) = [one for one in commands if "workers list" in one]
        terminal.type(f"{export}; {workers}")
