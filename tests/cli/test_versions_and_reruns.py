"""Drafts, versions, re-runs and comparisons from the command line, against a real server and worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.workflows import SLOW, node, workflow
from tests.processes.command_line import Up

ID = "11111111-7f7c-4c1b-9d61-0c3a2f6d1b11"


def file_of(folder: Path, document: dict[str, Any]) -> str:
    path = folder / "flow.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_draft_is_saved_published_compared_and_restored(server: Up, tmp_path: Path) -> None:
    first = {**workflow(node(1, "echo", "Say", parameters={"value": "a"})), "id": ID}
    file = file_of(tmp_path, {**first, "nodes": [{"id": "x"}]})
    saved = server.astra("workflows", "save", file, "--draft")
    assert (saved.code, saved.out) == (0, f"{ID}\n"), saved
    assert "revision 1" in saved.err
    assert ID in server.astra("workflows", "drafts").out
    broken = server.astra("workflows", "publish", ID)
    assert broken.code == 1
    assert "/nodes/0" in broken.err
    assert server.astra("workflows", "save", file_of(tmp_path, first), "--draft").code == 0
    made = server.astra("workflows", "publish", ID, "--note", "first one", "--json").json
    assert (made["version"], made["note"]) == (1, "first one")
    assert server.astra("workflows", "draft", ID).code == 1
    second = json.loads(json.dumps(first))
    second["nodes"][0]["parameters"]["value"] = "b"
    server.astra("workflows", "save", file_of(tmp_path, second), "--draft")
    shown = server.astra("workflows", "diff", ID)
    assert '~ /parameters/value: "a" -> "b"' in shown.out, shown
    assert "version 1 -> draft" in shown.err
    printed = server.astra("workflows", "draft", ID)
    assert json.loads(printed.out) == second
    assert "made from version 1" in printed.err
    assert server.astra("workflows", "publish", ID).code == 0
    done = server.astra("workflows", "restore", ID, "1", "--json").json
    assert (done["restored"], done["version"]) == (1, 3)
    lines = server.astra("workflows", "history", ID).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["3", "2", "1"]
    assert lines[0].endswith("restores version 1")
    assert server.astra("workflows", "restore", ID, "2", "--draft").code == 0
    assert server.astra("workflows", "restore", ID, "1", "--draft").code == 1
    assert server.astra("workflows", "diff", ID, "--from", "1", "--to", "3").err.endswith("equal\n")
    assert server.astra("workflows", "draft", ID, "--discard", "--yes").code == 0
    assert "-> version 3" in server.astra("workflows", "diff", ID).err
    both = server.astra("workflows", "save", file, "--draft", "--note", "x")
    assert both.code == 2
    assert server.astra("workflows", "delete", ID, "--yes").code == 0


def test_a_failed_run_is_repeated_with_another_parameter_and_compared(server: Up) -> None:
    given = node(1, "echo", "Given", parameters={"value": 1})
    breaks = node(2, "fail", "Breaks", parameters={"message": "on purpose"})
    run_id = server.submit(workflow(given, breaks))
    assert server.astra("runs", "watch", run_id).code == 1
    again = server.astra("runs", "rerun", run_id)
    assert again.code == 0, again
    new = again.out.strip()
    assert "results taken over: 1" in again.err
    assert server.astra("runs", "watch", new).code == 1
    assert server.astra("runs", "show", new, "--json").json["rerunOf"] == run_id
    changed = server.astra(
        "runs", "rerun", run_id, "--from", "Given", "--set", "Given.value=2", "--json"
    ).json
    assert changed["kept"] == []
    assert server.astra("runs", "watch", changed["runId"]).code == 1
    told = server.astra("runs", "compare", run_id, changed["runId"])
    row = next(line for line in told.out.splitlines() if line.startswith("Given"))
    assert row.split("\t")[3:] == ["changed", "parameters/value, result/value"], told
    equal = server.astra("runs", "compare", run_id, run_id)
    assert (equal.out, equal.err) == ("", "The runs are equal, node by node\n")
    for bad in (
        ("runs", "rerun"),
        ("runs", "rerun", run_id, "--status", "failed"),
        ("runs", "rerun", run_id, "--all", "--from", "Given"),
        ("runs", "rerun", run_id, "--set", "value=2"),
        ("runs", "rerun", "--status", "failed", "--set", "Given.value=2"),
        ("runs", "cancel"),
    ):
        assert server.astra(*bad).code == 2, bad
    assert server.astra("runs", "rerun", run_id, "--from", "Nobody").code == 1


def test_many_runs_are_cancelled_and_repeated_by_a_filter(server: Up) -> None:
    slow = {**SLOW, "id": ID}
    runs = [server.submit(slow) for _ in range(2)]
    dry = server.astra("runs", "cancel", "--workflow", ID, "--dry-run")
    assert [line.split("\t")[0] for line in dry.out.splitlines()] == runs[::-1]
    assert server.astra("runs", "cancel", "--workflow", ID).code == 2, "it asks first"
    done = server.astra("runs", "cancel", "--workflow", ID, "--yes", "--json").json
    assert [one["runId"] for one in done["items"]] == runs[::-1]
    for run_id in runs:
        server.astra("runs", "watch", run_id)
    again = server.astra(
        "runs", "rerun", "--status", "cancelled", "--workflow", ID, "--yes", "--json"
    ).json
    assert all(one["newRunId"] for one in again["items"])
    assert len(again["items"]) == 2
    assert server.astra("runs", "cancel", "--workflow", ID, "--yes").code == 0
    none = server.astra("runs", "cancel", "--workflow", "nothing", "--yes")
    assert (none.code, none.err) == (0, "No such runs\n")


def test_results_are_pinned_used_and_removed(server: Up, tmp_path: Path) -> None:
    first, second = node(1, "echo", "Slow", parameters={"value": "real"}), node(2, "echo", "Next")
    flow = {**workflow(first, second), "id": "22222222-7f7c-4c1b-9d61-0c3a2f6d1b11"}
    port = {"port": "value"}
    flow["edges"] = [
        {"source": {"node": first["id"], **port}, "target": {"node": second["id"], **port}}
    ]
    known = flow["id"]
    assert server.astra("workflows", "save", file_of(tmp_path, flow)).code == 0
    pinned = server.astra("workflows", "pin", known, "Slow", "--result", '{"value": "pinned"}')
    assert (pinned.code, pinned.err) == (0, "Pinned the result of Slow\n"), pinned
    assert '{"value":"pinned"}' in server.astra("workflows", "pins", known).out
    run = server.astra("run", known, "--pinned", "--json").lines[-1]
    assert run["nodes"][1]["result"] == {"value": "pinned"}
    shown = server.astra("run", known, "--pinned")
    assert "pinned result" in shown.out
    plain = server.astra("run", known, "--json").lines[-1]
    assert plain["nodes"][1]["result"] == {"value": "real"}
    again = server.astra("workflows", "pin", known, "Slow", "--run", plain["runId"], "--json").json
    assert (again["result"], again["fromRun"]) == ({"value": "real"}, plain["runId"])
    (tmp_path / "result.json").write_text('{"value": "file"}')
    file = str(tmp_path / "result.json")
    assert server.astra("workflows", "pin", known, second["id"], "--file", file).code == 0
    listed = server.astra("workflows", "pins", known, "--json").json["items"]
    assert len(listed) == 2
    for wrong in ([], ["--result", "5"], ["--result", "{}", "--file", file]):
        assert server.astra("workflows", "pin", known, "Slow", *wrong).code == 2
    assert server.astra("workflows", "unpin", known, "Slow").code == 0
    assert server.astra("workflows", "unpin", known, "Slow").code == 1
    assert server.astra("workflows", "unpin", known, "Nobody").code == 1
