"""The guide to secrets is run here as it stands, command by command."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.processes.command_line import up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "guides" / "secrets.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]
[DEFINITION] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = COMMANDS
    assert first == "astra up"
    (tmp_path / "secret.json").write_text(DEFINITION)
    printed: dict[str, str] = {}
    with up(tmp_path) as server:
        for command in others:
            printed[command] = server.typed(command)
            assert "sk-of-this-guide" not in printed[command]
        assert len(printed) == len(others) >= 5
        ran = printed["astra run secret.json"]
        assert "my key is ***" in ran and str(len("sk-of-this-guide")) in ran
        assert "openai" in printed["astra secrets list"]
        assert not json.loads(server.typed("astra secrets list --json"))["items"]


def test_a_value_is_never_an_argument_and_may_come_from_a_file(tmp_path: Path) -> None:
    with up(tmp_path) as server:
        assert server.astra("secrets", "set", "a", "value").code == 2
        (tmp_path / "value.txt").write_text("of a file\n")
        assert (
            server.astra("secrets", "set", "a", "--file", "value.txt", "--json").json["version"]
            == 1
        )
        assert server.astra("secrets", "set", "a", "--file", "nowhere").code == 2
        assert server.astra("secrets", "set", "a", stdin="\n").code == 2
        assert server.astra("secrets", "delete", "a").code == 2, "it asks first"
        assert server.astra("secrets", "delete", "nobody", "--yes").code == 1
