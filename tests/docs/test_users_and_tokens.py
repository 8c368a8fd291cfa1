"""The pages about users, tokens, tenants and metrics are run here as they stand, command by command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.processes.command_line import Up, up
from tests.processes.process import ROOT

PAGES = {"guides/users-and-tokens.md": 9, "tenants.md": 8, "observability.md": 1}
"""With the least number of commands in each."""
PASSWORD = "correct horse battery"


def commands(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.strip().splitlines()]


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


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_as_it_stands(page: str, tmp_path: Path) -> None:
    typed = [command for command in commands(page) if command != "astra up"]
    assert len(typed) >= PAGES[page]
    with up(tmp_path) as server:
        reader = Reader(server)
        for command in typed:
            reader.type(command)
        assert reader.done == typed
