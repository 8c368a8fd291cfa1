"""The guide to backups is run here as it stands, command by command."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from tests.processes.command_line import up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "guides" / "backup.md").read_text("utf-8")
[BLOCK] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = BLOCK.strip().splitlines()
    assert first == "astra up"
    (tmp_path / "greeting.txt").write_text("a secret of this guide")
    with up(tmp_path) as server:
        printed = {command: server.typed(command) for command in others}
    assert "ok: astraflow-1.backup" in printed["astra db verify astraflow-1.backup"]
    assert "schemaVersion" in printed["astra db status --data-dir drill"]
    with zipfile.ZipFile(tmp_path / "astraflow-1.backup") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    key = (tmp_path / "var" / "secrets.key").read_bytes().strip()
    assert b"greeting" in content
    assert b"a secret of this guide" not in content and key not in content
    assert {"secrets.key", "secret", "token"} <= {one.name for one in (tmp_path / "var").iterdir()}
    assert not (tmp_path / "drill" / "secrets.key").exists()
