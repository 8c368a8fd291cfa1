"""The guide to triggers is run here as it stands, command by command."""

from __future__ import annotations

import re
from pathlib import Path

from tests.processes.command_line import up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "guides" / "triggers.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]
[DEFINITION] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
FLOW = "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f10"


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = COMMANDS
    assert first == "astra up"
    (tmp_path / "report.json").write_text(DEFINITION)
    with up(tmp_path) as server:
        printed = {command: server.typed(command) for command in others}
        assert len(printed) == len(others) == 8
        assert "weekdays" in printed["astra triggers list"]
        assert "nextTimes" in printed[f"astra triggers show {FLOW} weekdays"]
        assert "started" in printed[f"astra triggers history {FLOW} weekdays"]
        shown = server.astra("triggers", "show", FLOW, "push", "--json").json
        assert shown["hookPath"].startswith("/api/v1/hooks/")
