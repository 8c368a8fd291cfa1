"""The guide to a first node is run here as it stands, command by command, so that it cannot rot."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from astraflow.cli.pkg_template import MODULE
from tests.processes.command_line import start, up
from tests.processes.process import ROOT, Process, clean_environment
from tests.processes.waiting import WAIT_S

PAGE = (ROOT / "docs" / "guides" / "first-node.md").read_text("utf-8")

Block = tuple[str, str]


def blocks() -> list[Block]:
    return re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which `astra` is ours, and what it caches is gone afterwards."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "astra").write_text(f'#!/bin/sh\nexec {sys.executable} -m astraflow "$@"\n')
    (programs / "astra").chmod(0o755)
    kept = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    yield clean_environment(
        PATH=f"{programs}:{os.environ['PATH']}",
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        UV_CACHE_DIR=kept,
    )


class Newcomer:
    """Somebody who does what the page says, with a terminal for each thing that stays in the foreground."""

    def __init__(self, folder: Path, environment: dict[str, str], terminals: ExitStack) -> None:
        self._folder = folder
        self._environment = environment
        self._terminals = terminals
        self._dev: Process | None = None
        self.said = ""

    def do(self, commands: str) -> None:
        self.said = ""
        for command in commands.strip().splitlines():
            self._type(command)

    def _type(self, command: str) -> None:
        if command == "astra up":
            self._terminals.enter_context(up(self._folder))
        elif command.startswith("astra pkg dev"):
            self._dev = start(*command.split()[1:], cwd=self._folder)
            self._terminals.callback(self._dev.close)
            self._await_live(self._dev)
        else:
            self._run(command)
            if command.startswith("sed") and self._dev is not None:
                self._await_live(self._dev)

    def _run(self, command: str) -> None:
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        self.said += ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command}\n{self.said}"

    def _await_live(self, dev: Process) -> None:
        dev.line(lambda line: "is live on 1 worker" in line)

    def leave_dev(self) -> None:
        """^C, which the page says between two blocks."""
        assert self._dev is not None
        self._dev.send(signal.SIGINT)
        self._dev.line(lambda line: "hello 0.1.0 is active again" in line)
        assert self._dev.wait() == 0
        self._dev = None


def test_a_newcomer_gets_from_nothing_to_a_node_in_the_palette(
    tmp_path: Path, shell: dict[str, str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    shown = 0
    with ExitStack() as terminals:
        newcomer = Newcomer(folder, shell, terminals)
        for language, text in blocks():
            if language == "bash":
                if "manifest.json" in text:
                    newcomer.leave_dev()
                newcomer.do(text)
            elif language == "text":
                shown += 1
                missing = [line for line in text.splitlines() if line not in newcomer.said]
                assert not missing, f"{missing}\n{newcomer.said}"
    assert shown == 5


def test_the_node_of_the_guide_is_the_one_that_is_made() -> None:
    (code,) = [text for language, text in blocks() if language == "python"]
    assert MODULE.replace("$name", "hello").endswith(code)
