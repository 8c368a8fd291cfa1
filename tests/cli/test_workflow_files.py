"""Workflows as files: exported, imported, and synchronized with a folder, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.workflows import node, workflow
from tests.processes.command_line import Up


def flow(number: int, value: Any = 1, name: str = "") -> dict[str, Any]:
    made = workflow(node(number, "echo", "Say", parameters={"value": value}))
    known = f"{number:08}-7f7c-4c1b-9d61-0c3a2f6d1b11"
    return {**made, "id": known, "metadata": {"name": name or f"Flow {number}"}}


def put(server: Up, tmp_path: Path, document: dict[str, Any]) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps(document))
    assert server.astra("workflows", "save", str(file)).code == 0


def stored(server: Up, document: dict[str, Any]) -> Any:
    return server.astra("workflows", "show", document["id"], "--json").json


@pytest.fixture
def empty(server: Up) -> Iterator[Up]:
    """The server, without workflows."""
    yield server
    for one in server.astra("workflows", "list", "--json").json["items"]:
        server.astra("workflows", "delete", one["id"], "--yes")


def steps(server: Up, folder: Path, *more: str, code: int = 0) -> list[tuple[str, str]]:
    done = server.astra("workflows", "sync", str(folder), "--json", *more)
    assert done.code == code, done
    return [(one["id"][:8].lstrip("0"), one["action"]) for one in done.json["items"]]


def test_a_workflow_is_exported_and_imported_as_it_is_or_as_a_copy(
    empty: Up, tmp_path: Path
) -> None:
    first = flow(1)
    put(empty, tmp_path, first)
    done = empty.astra("workflows", "export", "--to", str(tmp_path / "out"))
    (name,) = done.out.splitlines()
    assert Path(name).name == "flow-1-00000001.json"
    content = Path(name).read_bytes()
    assert json.loads(content) == first
    same = empty.astra("workflows", "import", name, "--json").json["items"]
    assert same[0]["outcome"] == "unchanged"
    Path(name).write_text(json.dumps(flow(1, 2)))
    refused = empty.astra("workflows", "import", name)
    assert refused.code == 1
    assert first["id"] in refused.err and "version 1" in refused.err
    assert empty.astra("workflows", "import", name, "--on-conflict", "skip").code == 0
    assert stored(empty, first) == first
    assert empty.astra("workflows", "import", name, "--on-conflict", "draft").code == 0
    assert empty.astra("workflows", "draft", first["id"]).code == 0
    made = empty.astra("workflows", "import", name, "--on-conflict", "version", "--json").json
    assert made["items"][0]["version"] == 2
    copy = empty.astra("workflows", "import", name, "--new-ids", "--json").json["items"][0]
    assert copy["outcome"] == "created" and copy["id"] != first["id"]
    assert empty.astra("workflows", "import", name, "--on-conflict", "perhaps").code == 2
    again = empty.astra(
        "workflows", "export", first["id"], "--version", "1", "--to", str(tmp_path / "old")
    )
    assert Path(again.out.strip()).read_bytes() == content
    assert empty.astra("workflows", "export", "--version", "1").code == 2


def test_a_folder_and_a_server_are_brought_together_and_stay_so(empty: Up, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    put(empty, tmp_path, flow(1))
    (folder / "mine.json").write_text(json.dumps(flow(2), indent=8))
    assert steps(empty, folder, "--dry-run") == [("1", "pull"), ("2", "push")]
    assert not (folder / ".astra-sync.json").exists()
    assert steps(empty, folder) == [("1", "pull"), ("2", "push")]
    assert stored(empty, flow(2)) == flow(2)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert steps(empty, folder) == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(before) == [".astra-sync.json", "flow-1-00000001.json", "mine.json"]
    (folder / "mine.json").write_text(json.dumps(flow(2)))
    assert steps(empty, folder) == [], "formatting is no change"
    put(empty, tmp_path, flow(1, "theirs", "Renamed"))
    (folder / "mine.json").write_text(json.dumps(flow(2, "mine")))
    assert steps(empty, folder) == [("1", "pull"), ("2", "push")]
    assert json.loads((folder / "flow-1-00000001.json").read_text())["metadata"] == {
        "name": "Renamed"
    }
    assert stored(empty, flow(2)) == flow(2, "mine")


def test_a_conflict_does_nothing_until_a_side_wins(empty: Up, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    for number in (1, 2):
        put(empty, tmp_path, flow(number))
    steps(empty, folder)
    ours = folder / "flow-1-00000001.json"
    other = folder / "flow-2-00000002.json"
    ours.write_text(json.dumps(flow(1, "ours")))
    other.write_text(json.dumps(flow(2, "ours")))
    put(empty, tmp_path, flow(1, "theirs"))
    told = empty.astra("workflows", "sync", str(folder))
    assert told.code == 1
    assert "CONFLICT" in told.out and "nothing was done" in told.err
    assert stored(empty, flow(2)) == flow(2)
    assert json.loads(ours.read_text()) == flow(1, "ours")
    assert steps(empty, folder, "--force", "remote", "--dry-run") == [("1", "pull"), ("2", "push")]
    assert steps(empty, folder, "--force", "local") == [("1", "push"), ("2", "push")]
    assert stored(empty, flow(1)) == flow(1, "ours")
    assert steps(empty, folder) == []
    assert empty.astra("workflows", "sync", str(folder), "--force", "me").code == 2


def test_what_was_deleted_on_one_side_is_left_until_deleting_is_asked_for(
    empty: Up, tmp_path: Path
) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    for number in (1, 2):
        put(empty, tmp_path, flow(number))
    steps(empty, folder)
    (folder / "flow-1-00000001.json").unlink()
    empty.astra("workflows", "delete", flow(2)["id"], "--yes")
    assert steps(empty, folder) == [("1", "leave"), ("2", "leave")]
    assert steps(empty, folder) == [("1", "leave"), ("2", "leave")]
    assert steps(empty, folder, "--delete") == [("1", "delete_remote"), ("2", "delete_local")]
    assert empty.astra("workflows", "list", "--json").json["items"] == []
    assert [path.name for path in folder.iterdir()] == [".astra-sync.json"]
    assert steps(empty, folder, "--delete") == []


def test_what_cannot_be_saved_stops_and_what_was_done_is_remembered(
    empty: Up, tmp_path: Path
) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(flow(1)))
    (folder / "b.json").write_text(json.dumps({**flow(2), "nodes": [{"id": "x", "type": "y"}]}))
    failed = empty.astra("workflows", "sync", str(folder))
    assert failed.code == 1
    assert "/nodes/0" in failed.err
    (folder / "b.json").write_text(json.dumps(flow(2)))
    assert steps(empty, folder) == [("2", "push")]


def test_what_is_no_folder_of_workflows_is_refused(empty: Up, tmp_path: Path) -> None:
    assert empty.astra("workflows", "sync", str(tmp_path / "nowhere")).code == 2
    (tmp_path / "a.json").write_text("{}")
    assert empty.astra("workflows", "sync", str(tmp_path)).code == 2
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(flow(1)))
    assert "Two files" in empty.astra("workflows", "sync", str(tmp_path)).err
    (tmp_path / "b.json").unlink()
    (tmp_path / ".astra-sync.json").write_text("[")
    assert empty.astra("workflows", "sync", str(tmp_path)).code == 2
