"""The guide to users and tokens is run here as it stands, command by command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.processes.command_line import Up, up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "guides" / "users-and-tokens.md").read_text("utf-8")
PASSWORD = "correct horse battery"
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]


class Reader:
    """Somebody who types what the page says, and puts in what the server has told before."""

    def __init__(self, server: Up) -> None:
        self._server = server
        self.done: list[str] = []

    def type(self, command: str) -> None:
        arguments = shlex.split(command)[1:]
        known = self._known(command)
        result = self._server.astra(
            *[known.get(one, one) for one in arguments],
            stdin=f"{PASSWORD}\n",
            XDG_CONFIG_HOME=str(self._server.folder / "config"),
        )
        assert result.code == 0, (command, result.err)
        self.done.append(command)

    def _known(self, command: str) -> dict[str, str]:
        if "TOKEN_ID" not in command:
            return {}
        listed = self._server.astra("tokens", "list", "--json").json["items"]
        return {"TOKEN_ID": listed[0]["tokenId"]}


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = COMMANDS
    assert first == "astra up"
    with up(tmp_path) as server:
        reader = Reader(server)
        for command in others:
            reader.type(command)
        assert len(reader.done) == len(others) >= 9
