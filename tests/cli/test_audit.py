"""`astra audit` against a real server."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.command_line import Up


def test_what_was_done_is_listed_exported_and_verified(server: Up, tmp_path: Path) -> None:
    made = server.astra("tokens", "create", "--label", "audited", "--json").json["tokenId"]
    (entry,) = server.astra("audit", "list", "--action", "token.", "--json").json["items"]
    assert (entry["action"], entry["detail"]["subject"]) == ("token.create", made)
    shown = server.astra("audit", "list", "--action", "token.create", "--since", "1h")
    assert shown.code == 0
    assert made in shown.out
    assert server.astra("audit", "list", "--until", "1h", "--json").json["items"] == []

    head = server.astra("audit", "verify").out.strip()
    report = server.astra("audit", "verify", "--expect", head, "--json").json
    assert report["ok"]
    assert report["from"] == 1

    lines = server.astra("audit", "export").out.splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, len(lines) + 1))
    file = tmp_path / "audit.jsonl"
    wrote = server.astra("audit", "export", "--action", "token.", "-o", str(file), "--json")
    assert wrote.json["entries"] == 1
    assert json.loads(file.read_text()) == entry
    assert [one.name for one in tmp_path.iterdir()] == ["audit.jsonl"]


def test_a_head_that_never_was_is_a_failure(server: Up) -> None:
    wrong = f"1:{'0' * 64}"
    result = server.astra("audit", "verify", "--expect", wrong)
    assert result.code == 1
    assert "another hash" in result.err
    assert not server.astra("audit", "verify", "--expect", wrong, "--json").json["ok"]


def test_what_cannot_be_read_is_refused(server: Up, tmp_path: Path) -> None:
    for arguments in (
        ("list", "--since", "yesterday"),
        ("list", "--outcome", "maybe"),
        ("export", "--until", "soon"),
        ("export", "-o", str(tmp_path / "no" / "folder.jsonl")),
    ):
        assert server.astra("audit", *arguments).code == 2, arguments
    assert server.astra("audit", "verify", "--expect", "nonsense").code != 0
    assert server.astra("audit", "verify", "--expect", "").code == 2
    for folder in (".", "..", str(tmp_path)):
        refused = server.astra("audit", "export", "--output", folder)
        assert refused.code == 2 and "it is a folder" in refused.err
