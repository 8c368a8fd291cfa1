"""The page about the audit is run here as it stands, command by command."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from astraflow.api.app import NOT_AUDITED
from tests.processes.command_line import up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "audit.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]


def test_the_page_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = COMMANDS
    assert first == "astra up"
    printed: dict[str, str] = {}
    with up(tmp_path) as server:
        for command in others:
            head = printed.get("astra audit verify", "").strip()
            words = [head if word == "HEAD" else word for word in shlex.split(command)[1:]]
            result = server.astra(*words)
            assert result.code == 0, (command, result.err)
            printed[command] = result.out
        written = (server.folder / "audit.jsonl").read_text().splitlines()
    assert len(printed) == len(others) >= 8
    assert "token.create" in printed["astra audit list --action token."]
    assert json.loads(printed["astra audit verify --json"])["ok"]
    entries = [json.loads(line) for line in written]
    assert [one["number"] for one in entries] == list(range(1, len(entries) + 1))
    (created,) = printed["astra audit export --action token. --since 24h"].splitlines()
    assert json.loads(created) in entries


def test_the_page_names_what_leaves_no_entry() -> None:
    for action in NOT_AUDITED:
        method, path = action.split()
        is_named = f"`{method} {path}`" in PAGE
        assert is_named or "/tasks/" in path or "/uploads/" in path or "/auth/" in path, action
