"""The commands that look at things and change them: whole exchanges with a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from astraflow import __version__
from tests.cli.workflows import EXAMPLES, SLOW, node, workflow
from tests.processes.command_line import Terminal, Up, astra

HELLO = EXAMPLES / "hello.json"


@pytest.fixture(scope="module")
def finished(server: Up) -> str:
    """A run of `hello.json` that has ended."""
    done = server.astra("run", str(HELLO), "--json")
    assert done.code == 0, done
    run_id: str = done.lines[-1]["runId"]
    return run_id


def test_runs_are_listed_as_lines_and_as_json(server: Up, finished: str) -> None:
    done = server.astra("runs", "list", "--status", "succeeded")
    row = next(line.split("\t") for line in done.out.splitlines() if line.startswith(finished))
    assert row[1:3] == ["Hello", "succeeded"]
    page = server.astra("runs", "list", "--json").json
    assert finished in [one["runId"] for one in page["items"]]
    assert page["nextCursor"] is None
    nothing = server.astra("runs", "list", "--status", "failed")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No runs\n")


def test_a_long_list_comes_in_pages(server: Up, finished: str) -> None:
    server.astra("run", "-", stdin=json.dumps(workflow(node(1, "noop"))))
    first = server.astra("runs", "list", "--limit", "1", "--json").json
    assert len(first["items"]) == 1
    second = server.astra(
        "runs", "list", "--limit", "1", "--json", "--cursor", first["nextCursor"]
    ).json
    assert second["items"] != first["items"]
    told = server.astra("runs", "list", "--limit", "1")
    assert "there are more rows" in told.err
    assert len(server.astra("runs", "list", "--limit", "0").out.splitlines()) >= 2


def test_a_run_and_a_node_are_shown(server: Up, finished: str) -> None:
    done = server.astra("runs", "show", finished)
    assert done.code == 0
    assert len(done.out.splitlines()) == 10
    assert f"run {finished} succeeded after " in done.err
    run = server.astra("runs", "show", finished, "--json").json
    assert run["runId"] == finished
    assert "pendingAck" in run["nodes"][0]  # as the server said it, nothing left out
    found = server.astra("runs", "show", finished, "--node", "Guests", "--json").json
    assert found["result"] == {"value": {"first": "Ada", "second": "Grace", "third": "Alan"}}
    assert found["parameters"] == {"value": {"first": "Ada", "second": "Grace", "third": "Alan"}}
    assert found["package"]["name"] == "core"
    told = server.astra("runs", "show", finished, "--node", "Guests").err
    assert f"package core {found['package']['version']}" in told
    assert 'parameters {"value":{"first":"Ada"' in told


def test_a_node_that_waits_says_for_what(server: Up) -> None:
    """Two nodes of one concurrency key: one of them sleeps, whichever it is."""
    keyed = {"parameters": {"seconds": 120}, "concurrencyKey": "printer"}
    run_id = server.submit(
        workflow(node(1, "sleep", "One", **keyed), node(2, "sleep", "Two", **keyed))
    )
    shown = server.astra("runs", "show", run_id).out
    assert "waiting for key" in " ".join(shown.split())
    assert server.astra("runs", "cancel", run_id, "--yes").code == 0


def test_watching_what_has_ended_replays_it(server: Up, finished: str) -> None:
    done = server.astra("runs", "watch", finished)
    assert done.code == 0
    assert f"run {finished} queued" in done.out.splitlines()
    assert done.out.splitlines()[-1].startswith("Applause\tsucceeded")


def test_logs_are_lines_and_texts_as_they_were_said(server: Up, finished: str) -> None:
    told = server.astra("runs", "logs", finished).out
    assert "Tell the third | Hello, Alan! You are guest number 3.\n" in told
    assert "Type the speech > Welcome Ada, Grace and Alan. Nobody waits" in told
    assert server.astra("runs", "logs", finished, "--follow").out == told
    one = server.astra("runs", "logs", finished, "--node", "Applause", "--json").lines
    assert [line["text"].strip() for line in one] == [
        "everybody has been greeted and the speech is over"
    ]


def test_a_story_is_told_of_one_node_or_of_all(server: Up, finished: str) -> None:
    one = server.astra("runs", "story", finished, "Guests").out.splitlines()
    assert one[-1].endswith("Guests: succeeded with attempt 1")
    everything = server.astra("runs", "story", finished, "--json").json["story"]
    assert len({line["nodeId"] for line in everything}) == 10
    assert everything == sorted(everything, key=lambda line: line["at"])


def test_a_timeline_lists_every_attempt(server: Up, finished: str) -> None:
    found = server.astra("runs", "timeline", finished, "--json").json["items"]
    attempts = [one for one in found if one["kind"] == "attempt"]
    assert attempts
    assert all(one["status"] == "succeeded" and one["finishedAt"] for one in attempts)
    told = server.astra("runs", "timeline", finished, "--node", "Guests")
    assert told.code == 0
    assert "Guests" in told.out
    assert "succeeded" in told.out


def test_runs_and_their_output_are_filtered(server: Up, finished: str) -> None:
    rows = server.astra("runs", "list", "--text", "HELL", "--json").json["items"]
    assert finished in [one["runId"] for one in rows]
    assert server.astra("runs", "list", "--until", "2000-01-01T00:00:00Z").err == "No runs\n"
    assert "since" in server.astra("runs", "list", "--since", "yesterday").err
    every = server.astra("runs", "logs", finished, "--json").lines
    newest = server.astra("runs", "logs", finished, "--newest", "1", "--json").lines
    assert newest == every[-1:]
    assert server.astra("runs", "logs", finished, "--channel", "nothing", "--json").lines == []
    mixed = server.astra("runs", "logs", finished, "--follow", "--newest", "1")
    assert "--follow" in mixed.err


def test_cancelling_asks_first(server: Up) -> None:
    run_id = server.submit(SLOW)
    terminal = Terminal("runs", "cancel", run_id, cwd=server.folder)
    terminal.read_until("[y/N]")
    terminal.type("n\n")
    assert terminal.end() == 1
    assert server.astra("runs", "show", run_id, "--json").json["cancelRequested"] is False
    terminal = Terminal("runs", "cancel", run_id, cwd=server.folder)
    terminal.read_until("[y/N]")
    terminal.type("y\n")
    assert terminal.end() == 0
    assert server.astra("runs", "show", run_id, "--json").json["cancelRequested"] is True


def test_a_workflow_is_saved_shown_and_deleted(server: Up) -> None:
    saved = server.astra("workflows", "save", str(HELLO))
    workflow_id = saved.out.strip()
    assert "Saved as version" in saved.err
    new = server.astra("workflows", "save", str(HELLO), "--if-version", "0")
    assert new.code == 1, "it is not new any more"
    shown = server.astra("workflows", "show", workflow_id)
    assert json.loads(shown.out) == json.loads(HELLO.read_text())
    assert workflow_id in server.astra("workflows", "list").out
    refused = server.astra("workflows", "delete", workflow_id)
    assert refused.code == 2
    assert "hint: give --yes if it is meant" in refused.err
    assert server.astra("workflows", "delete", workflow_id, "--yes").code == 0


def test_a_definition_is_validated(server: Up) -> None:
    assert server.astra("workflows", "validate", str(HELLO), "--json").json["valid"] is True
    wrong = server.astra("workflows", "validate", "-", stdin='{"id": "x", "nodes": []}')
    assert wrong.code == 1
    assert "/nodes: " in wrong.err


def test_workers_are_listed_drained_and_taken_back(server: Up, finished: str) -> None:
    (row,) = server.astra("workers", "list").out.splitlines()
    assert row.split("\t")[1:5] == ["worker-1", "online", "0/64", "core 1.0.0"]
    shown = server.astra("workers", "show", "worker-1", "--json").json
    assert shown["workerId"] == row.split("\t")[0]
    table = server.astra("workers", "show", "worker-1").out
    assert "core.noop" in table and "cpuPct" in table
    assert 0 <= shown["memPct"] <= 100 and 0 < shown["diskPct"] <= 100
    drained = server.astra("workers", "drain", "worker-1", "--reason", "a test", "--json")
    assert drained.json["type"] == "drain"
    assert server.astra("workers", "undrain", shown["workerId"]).code == 0
    assert server.astra("run", "-", stdin=json.dumps(workflow(node(1, "noop")))).code == 0


def test_the_store_can_be_looked_at_but_not_changed_while_it_is_used(
    server: Up, finished: str
) -> None:
    shown = server.astra("db", "status", "--json").json
    assert shown["openedBy"] == str(server.process.pid)
    assert shown["runs"] >= 1
    assert server.astra("db", "check").err == "ok: var/astraflow.db\n"
    refused = server.astra("db", "sweep", "--yes")
    assert refused.code == 3
    assert f"process {server.process.pid} has the store open" in refused.err
    assert "hint: stop the process" in refused.err


def test_a_healthy_installation_passes_the_doctor(server: Up, finished: str) -> None:
    done = server.astra("doctor", "--json")
    assert done.code == 0, done
    verdicts = {one["name"]: one["verdict"] for one in done.json["checks"]}
    assert set(verdicts.values()) <= {"ok", "warn"}, done.json
    assert {"host", "parts", "store", "server", "token", "workers"} <= verdicts.keys()
    assert "ok    python" in server.astra("doctor").out


def test_a_bad_token_is_told_by_every_command(server: Up) -> None:
    done = server.astra("runs", "list", ASTRA_SERVER=server.url, ASTRA_TOKEN="wrong-token")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "hint: get a new token" in done.err
    doctor = server.astra("doctor", ASTRA_SERVER=server.url, ASTRA_TOKEN="wrong-token")
    assert doctor.code == 1
    assert "fail  token" in doctor.out


def test_the_token_of_one_server_is_not_sent_to_another(server: Up) -> None:
    same = server.astra("runs", "list", ASTRA_SERVER=server.url)
    assert same.code == 0
    other = server.url.replace("127.0.0.1", "localhost")
    assert server.astra("runs", "list", ASTRA_SERVER=other).code == 2


@pytest.mark.parametrize(
    "command",
    [
        ("runs", "show", "nothing-of-this-name"),
        ("runs", "watch", "nothing-of-this-name"),
        ("workers", "show", "nothing-of-this-name"),
    ],
)
def test_an_unknown_id_is_an_error_in_both_languages(server: Up, command: tuple[str, ...]) -> None:
    done = server.astra(*command, "--json")
    assert done.code == 1
    assert done.json["status"] == 404
    assert done.json["hint"]
    assert done.err == ""


def test_what_somebody_named_cannot_steer_the_terminal(server: Up) -> None:
    evil = workflow(
        node(1, "log", "\x1b[2Jlabel\u202e", parameters={"message": "\x1b]0;x\x07said"})
    )
    del evil["nodes"][0]["label"]
    done = server.astra("run", "-", stdin=json.dumps(evil))
    assert done.code == 0, done
    assert "said" in done.err
    assert "\x1b" not in done.out + done.err


def test_a_server_elsewhere_is_found_by_its_name(server: Up, tmp_path: Path) -> None:
    done = astra(
        "runs", "list", "--json", cwd=tmp_path, ASTRA_SERVER=server.url, ASTRA_TOKEN=server.token
    )
    assert done.code == 0
    assert "items" in done.json


def test_the_version_is_told(tmp_path: Path) -> None:
    assert astra("--version", cwd=tmp_path).out == f"astraflow {__version__}\n"
    assert astra("version", "--json", cwd=tmp_path).json["astraflow"] == __version__
