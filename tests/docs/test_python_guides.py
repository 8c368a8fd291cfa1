"""The guides to workflows in Python and to local runs are run here as they stand, command by command."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.processes.command_line import Terminal, Up, astra, up
from tests.processes.process import ROOT, clean_environment
from tests.processes.waiting import WAIT_S


def page_of(name: str) -> str:
    return (ROOT / "docs" / "guides" / name).read_text("utf-8")


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return [line for block in blocks for line in block.strip().splitlines()]


def python(command: str, folder: Path) -> str:
    """What `python FILE` prints, or writes into the file behind `>`."""
    words, _, target = command.partition(" > ")
    done = subprocess.run(
        [sys.executable, *shlex.split(words)[1:]],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    if target:
        (folder / target).write_text(done.stdout)
    return done.stdout


def typed(server: Up, command: str) -> str:
    if command.startswith("python "):
        return python(command, server.folder)
    return server.typed(command)


def test_the_guide_to_python_works_as_it_stands(tmp_path: Path) -> None:
    page = page_of("python.md")
    names = re.findall(r"ave this as `([a-z]+\.py)`", page)
    texts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    whole = [text for text in texts if text.startswith(("from ", "import "))]
    for name, text in zip(names, whole, strict=True):
        (tmp_path / name).write_text(text)
    first, *others = commands_of(page)
    assert first == "astra up"
    with up(tmp_path) as server:
        printed = {command: typed(server, command) for command in others}
    assert "37.5 to DE" in printed["astra run order.py --input country=DE"]
    assert "25.5 to FR" in printed["astra run order.json"]
    assert printed["python results.py"] == "37.5 to IT\n{'result': 25.5}\n"


def test_the_catalogs_of_the_guide_are_found() -> None:
    import astraflow.builder

    (shown,) = [one for one in re.findall(r"```python\n(.*?)```", page_of("python.md"), re.DOTALL)
                if "server_catalog" in one]  # fmt: skip
    for name in re.findall(r"(\w+_catalog)\(", shown):
        assert name in astraflow.builder.__all__


def test_the_guide_to_local_runs_works_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    *commands, asks = commands_of(page_of("local.md"))
    said = []
    for command in commands:
        done = astra(*shlex.split(command)[1:], cwd=tmp_path)
        assert done.code == 0, done
        said.append(done.out + done.err)
    assert "You are guest number 1" in said[0]
    assert "1500: asked" in said[1]
    assert "2 things to DE: 37.5" in said[2]
    terminal = Terminal(*shlex.split(asks)[1:], cwd=tmp_path)
    terminal.read_until("Pay 500 to Ada? [y/n]")
    terminal.type("y\n")
    terminal.read_until("Comment")
    terminal.type("\n")
    terminal.read_until("Values of the form")
    terminal.type('{"budget": "IT"}\n')
    assert terminal.end() == 0
    assert "500 from IT" in terminal.seen
