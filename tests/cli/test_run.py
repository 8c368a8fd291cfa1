"""`astra run`: whole exchanges with a real server."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.workflows import EXAMPLES, FAILING, SLOW, node, workflow
from tests.processes.command_line import Terminal, Up
from tests.processes.process import ASTRA, clean_environment
from tests.processes.waiting import WAIT_S


@pytest.mark.parametrize("name", ["hello", "fanout", "retry", "invoice"])
def test_an_example_runs_and_its_end_is_shown(server: Up, name: str) -> None:
    done = server.astra("run", str(EXAMPLES / f"{name}.json"))
    assert done.code == 0, done
    nodes = json.loads((EXAMPLES / f"{name}.json").read_text())["nodes"]
    rows = [line.split("\t") for line in done.out.splitlines() if "\t" in line]
    assert [row[0] for row in rows] == [one["label"] for one in nodes]
    assert {row[1] for row in rows} == {"succeeded"}
    assert {row[4] for row in rows} == {"worker-1"}
    assert " succeeded after " in done.err.splitlines()[-1]


def test_progress_goes_to_stderr_and_streamed_words_become_lines(server: Up) -> None:
    done = server.astra("run", str(EXAMPLES / "hello.json"))
    lines = done.err.splitlines()
    assert lines[0].endswith(" queued")
    assert "Tell the first | Hello, Ada! You are guest number 1." in lines
    assert any(line.startswith("Type the speech > Welcome Ada, Grace and Alan.") for line in lines)
    assert "\x1b" not in done.out + done.err


def test_outputs_are_the_results_that_nothing_follows(server: Up) -> None:
    done = server.astra("run", str(EXAMPLES / "retry.json"))
    assert '"Third time lucky": {' in done.out
    assert "Fails twice\tsucceeded\t3\t" in done.out
    assert "Fails twice retrying: E.RUNNER.FAILURE the service is not there yet" in done.err


def test_declared_outputs_are_shown_in_their_place(server: Up) -> None:
    invoice = str(EXAMPLES / "invoice.json")
    done = server.astra("run", invoice)
    assert done.code == 0, done
    expected = {"total": 7.5, "text": "2 items, 7.5 EUR in all"}
    assert json.loads(done.out[done.out.index("{") :]) == expected
    assert server.astra("run", invoice, "--json").lines[-1]["outputs"] == expected
    bought = ("-i", 'lines=[{"name": "Ink", "price": 2}]', "-i", "currency=NOK")
    other = server.astra("run", invoice, *bought, "--json")
    assert other.lines[-1]["outputs"] == {"total": 2, "text": "1 items, 2 NOK in all"}
    refused = server.astra("run", invoice, "-i", 'lines=[{"name": "Ink"}]')
    assert "/inputs/lines/0/price" in refused.err


def test_inputs_are_read_as_the_workflow_declares_them(server: Up, tmp_path: Path) -> None:
    declared = {
        "zip": {"schema": {"type": "string"}, "required": True, "description": "The post code"},
        "days": {"schema": {"type": "integer"}, "default": 3},
    }
    document = workflow(node(1, "noop")) | {"inputs": declared}
    file = tmp_path / "workflow.json"
    file.write_text(json.dumps(document))
    missing = server.astra("run", str(file), "-i", "days=x")
    assert missing.code != 0
    assert "/inputs/zip" in missing.err
    assert "/inputs/days" in missing.err
    done = server.astra("run", str(file), "-i", "zip=01234", "--json")
    assert done.lines[-1]["inputs"] == {"zip": "01234", "days": 3}
    more = tmp_path / "inputs.json"
    more.write_text('{"zip": "x", "days": 5}')
    saved = server.astra("workflows", "save", str(file)).out.strip()
    given = server.astra("run", saved, "--input-file", str(more), "-i", "zip=7", "--json")
    assert given.lines[-1]["inputs"] == {"zip": "7", "days": 5}
    shown = server.astra("runs", "show", given.lines[-1]["runId"])
    assert 'inputs {"zip":"7","days":5}' in shown.err
    told = server.astra("workflows", "show", saved)
    assert "input zip (string, required): The post code" in told.err
    assert json.loads(told.out) == document


def test_a_run_that_takes_longer_than_its_timeout_fails(server: Up) -> None:
    document = workflow(node(1, "sleep", parameters={"seconds": 600})) | {"timeoutSeconds": 1}
    done = server.astra("run", "-", stdin=json.dumps(document))
    assert done.code == 1
    assert "E.TIMEOUT the run did not end by its deadline" in done.err.splitlines()[-1]


def test_what_does_not_fit_is_said_before_anything_runs(server: Up) -> None:
    document = workflow(node(1, "http", parameters={"url": 5}))
    done = server.astra("workflows", "validate", "-", stdin=json.dumps(document))
    assert done.code != 0
    assert "/nodes/0/parameters/url" in done.err
    unsure = workflow({**node(1, "noop"), "retries": 3})
    warned = server.astra("workflows", "validate", "-", stdin=json.dumps(unsure))
    assert warned.code == 0
    assert "did you mean 'retry'?" in warned.err


def test_json_is_one_event_a_line_and_then_the_run(server: Up) -> None:
    done = server.astra("run", str(EXAMPLES / "retry.json"), "--json")
    assert done.code == 0, done
    *events, run = done.lines
    assert [one["id"] for one in events] == list(range(1, len(events) + 1))
    assert events[0]["data"] == {"status": "queued"}
    assert events[-1]["data"] == {"status": "succeeded"}
    assert run["status"] == "succeeded"
    assert run["lastEvent"] == len(events)
    assert [one["status"] for one in run["nodes"]] == ["succeeded", "succeeded"]


def test_a_run_that_fails_ends_with_1_and_says_why(server: Up) -> None:
    done = server.astra("run", "-", stdin=json.dumps(FAILING))
    assert done.code == 1
    assert "Breaks\tfailed\t1\t" in done.out
    assert "broken on purpose" in done.out
    assert " failed after " in done.err
    as_json = server.astra("run", "-", "--json", stdin=json.dumps(FAILING))
    assert as_json.code == 1
    assert as_json.lines[-1]["status"] == "failed"


def test_without_watching_only_the_id_is_told(server: Up) -> None:
    done = server.astra("run", str(EXAMPLES / "retry.json"), "--no-watch")
    assert done.code == 0
    (run_id,) = done.out.splitlines()
    assert f"astra runs watch {run_id}" in done.err
    as_json = server.astra("run", str(EXAMPLES / "retry.json"), "--no-watch", "--json")
    assert as_json.json["status"] == "queued"


def test_the_same_key_is_the_same_run(server: Up) -> None:
    arguments = ("run", str(EXAMPLES / "retry.json"), "--no-watch", "--idempotency-key", "one")
    assert server.astra(*arguments).out == server.astra(*arguments).out


def test_a_request_and_a_saved_workflow_can_be_run(server: Up) -> None:
    request = {"workflow": workflow(node(1, "noop")), "inputs": {}}
    assert server.astra("run", "-", stdin=json.dumps(request)).code == 0
    undeclared = server.astra("run", "-", "-i", "name=Ada", stdin=json.dumps(request))
    assert undeclared.code == 1
    assert "/inputs/name" in undeclared.err
    saved = server.astra("workflows", "save", "-", stdin=json.dumps(workflow(node(1, "noop"))))
    done = server.astra("run", saved.out.strip())
    assert done.code == 0, done
    assert "Node 1\tsucceeded" in done.out


def test_what_is_no_definition_is_refused_before_anything_is_sent(server: Up) -> None:
    broken = server.astra("run", "-", stdin='{"nodes": [')
    assert (broken.code, broken.out) == (2, "")
    assert " is not JSON, " in broken.err
    assert "\n\nhint: " in broken.err
    missing = server.astra("run", "nowhere.json")
    assert missing.code == 2
    assert "Cannot read nowhere.json: No such file or directory" in missing.err
    no_object = server.astra("run", "-", "--json", stdin="[]")
    assert no_object.code == 2
    assert no_object.json["code"] == "E.INPUT.UNREADABLE"
    no_pair = server.astra("run", str(EXAMPLES / "hello.json"), "--input", "novalue")
    assert no_pair.code == 2
    assert "NAME=VALUE" in no_pair.err


def test_an_invalid_definition_is_told_with_all_its_problems(server: Up) -> None:
    wrong = workflow(node(1, "nope"), node(1, "noop"))
    done = server.astra("run", "-", stdin=json.dumps(wrong))
    assert done.code == 1
    assert "/nodes/0/type: no known package" in done.err
    as_json = server.astra("run", "-", "--json", stdin=json.dumps(wrong)).json
    assert as_json["status"] == 422
    assert len(as_json["errors"]) >= 2


def test_interrupting_a_watch_leaves_the_run_and_says_how_to_go_on(
    server: Up, tmp_path: Path
) -> None:
    run_id = server.submit(SLOW)
    watching = server.start("runs", "watch", run_id)
    watching.line(lambda line: line.startswith("Long sleep running"))
    assert watching.end(signal.SIGINT) == 130
    said = watching.said()
    assert f"the run continues: {run_id}" in said
    assert f"astra runs cancel {run_id}" in said
    assert server.astra("runs", "show", run_id, "--json").json["status"] == "running"
    assert server.astra("runs", "cancel", run_id, "--yes").code == 0
    ended = server.astra("runs", "watch", run_id)
    assert ended.code == 1
    assert ended.out.splitlines()[-1].startswith("Long sleep\tcancelled")


def test_a_reader_that_goes_away_is_no_error(server: Up) -> None:
    command = [*ASTRA, "run", str(EXAMPLES / "fanout.json"), "--json"]
    with subprocess.Popen(
        command,
        cwd=server.folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"id":1,')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(WAIT_S) == 0


def test_at_a_terminal_a_picture_moves_and_a_table_stays(server: Up) -> None:
    terminal = Terminal("run", str(EXAMPLES / "hello.json"), cwd=server.folder)
    terminal.read_until("1 running")
    code = terminal.end()
    assert code == 0, terminal.seen
    assert "Type the speech > Welcome" in terminal.seen
    table = terminal.seen.rpartition("attempts")[2]
    assert "Applause" in table
    assert "succeeded after" in table


def test_without_colours_the_words_are_the_same(server: Up) -> None:
    terminal = Terminal("run", str(EXAMPLES / "retry.json"), cwd=server.folder, NO_COLOR="1")
    assert terminal.end() == 0
    assert "succeeded" in terminal.seen
    assert "\x1b[32m" not in terminal.seen
