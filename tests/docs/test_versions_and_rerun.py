"""The guides to versions and to re-runs are run here as they stand, command by command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.processes.command_line import Up, up
from tests.processes.process import ROOT


class Guide:
    """A page: its commands, and the definitions in it under the names that it gives them."""

    def __init__(self, name: str) -> None:
        page = (ROOT / "docs" / "guides" / name).read_text("utf-8")
        blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        self.commands = [line for block in blocks for line in block.strip().splitlines()]
        names = re.findall(r"ave this as `([a-z]+\.json)`", page)
        texts = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
        self.files = dict(zip(names, texts, strict=True))

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).write_text(text)


def typed(server: Up, command: str, code: int = 0) -> tuple[str, str]:
    """Type what the page says; what it prints."""
    result = server.astra(*shlex.split(command)[1:])
    assert result.code == code, (command, result)
    return result.out, result.err


def test_the_guide_to_versions_works_as_it_stands(tmp_path: Path) -> None:
    guide = Guide("versions.md")
    first, *others = guide.commands
    assert first == "astra up"
    guide.write_files(tmp_path)
    with up(tmp_path) as server:
        printed = [(command, typed(server, command)) for command in others]
    told = {command.split()[2]: out + err for command, (out, err) in printed}
    assert len(printed) == len(others) >= 15
    compared = next(out for command, (out, _) in printed if command.endswith("--to 2"))
    page = (ROOT / "docs" / "guides" / "versions.md").read_text("utf-8")
    assert compared in page
    assert "greets politely" in told["history"]
    assert "as version 3" in told["restore"]
    assert told["sync"] == "Nothing to do\n"


def test_the_guide_to_reruns_works_as_it_stands(tmp_path: Path) -> None:
    guide = Guide("rerun.md")
    first, *others = guide.commands
    assert first == "astra up"
    guide.write_files(tmp_path)
    with up(tmp_path) as server:
        out, err = typed(server, others[0], code=1)
        found = re.search(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", out + err)
        assert found is not None, (out, err)
        run_id = found[0]
        new, told = typed(server, others[1].replace("$RUN", run_id))
        assert "results taken over: 1" in told
        names = {"$RUN": run_id, "$NEW": new.strip()}
        for command in others[2:]:
            for name, value in names.items():
                command = command.replace(name, value)
            out, _ = typed(server, command)
            if " compare " in command:
                assert "Check" in out and "Given" not in out
