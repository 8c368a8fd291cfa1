"""The guide to a serverless worker is run here as it stands, command by command; only the ports differ."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from pathlib import Path

from tests.processes.command_line import Up, up
from tests.processes.process import ROOT, Process

PAGE = (ROOT / "docs" / "guides" / "serverless-worker.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]


class Reader:
    """Somebody with three terminals."""

    def __init__(self, server: Up, terminals: ExitStack) -> None:
        self._server = server
        self._terminals = terminals
        self._environ: dict[str, str] = {}
        self._urls = {"http://127.0.0.1:8080": server.url}
        self.said = ""

    def type(self, command: str) -> None:
        for written, real in self._urls.items():
            command = command.replace(written, real)
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self._environ[name] = value
        elif " serve " in command:
            self._serve(shlex.split(command)[1:])
        else:
            given, _, rest = command.rpartition("| ")
            stdin = given.split()[2] if given else ""
            done = self._server.astra(*shlex.split(rest)[1:], stdin=stdin)
            assert done.code == 0, (command, done.err)
            self.said += done.out + done.err

    def _serve(self, arguments: list[str]) -> None:
        port = arguments.index("--port") + 1
        assert arguments[port] == "8081"
        arguments[port] = "0"
        served = Process("served", arguments, self._server.folder, self._environ).start()
        self._terminals.callback(served.close)
        line = served.line(lambda one: one.startswith("listening on "))
        self._urls["http://127.0.0.1:8081"] = line.split()[-1]


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = COMMANDS
    assert first == "astra up --workers 0"
    with ExitStack() as terminals:
        server = terminals.enter_context(up(tmp_path, "--workers", "0"))
        reader = Reader(server, terminals)
        for command in others:
            reader.type(command)
    assert "Hello, World!" in reader.said
    assert "functions" in reader.said
