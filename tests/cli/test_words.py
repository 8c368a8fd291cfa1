"""What the command line says: where it failed, how bad it is, what is missing, and what to do next."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from astraflow.client import requests
from astraflow.core import errors
from tests.cli.workflows import node, workflow
from tests.processes.command_line import Terminal, Up, astra

BROKEN = workflow(
    node(1, "python", "Divide", parameters={"code": "def main():\n    return 1 / 0\n"})
)
LOUD = workflow(
    node(
        1,
        "python",
        "Shouts",
        parameters={"code": "def main():\n    for n in range(400_000):\n        print('x' * 80)\n"},
    )
)


def test_a_traceback_is_shown_in_lines(server: Up) -> None:
    done = server.astra("run", "-", stdin=json.dumps(BROKEN))
    assert done.code == 1
    lines = [line.strip() for line in done.err.splitlines()]
    assert "Traceback (most recent call last):" in lines
    assert "ZeroDivisionError: division by zero" in lines
    run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
    one = server.astra("runs", "show", run_id, "--node", "Divide")
    assert "  Traceback (most recent call last):" in one.err.splitlines()
    assert "  ZeroDivisionError: division by zero" in one.err.splitlines()
    as_json = server.astra("runs", "show", run_id, "--node", "Divide", "--json").json
    assert as_json["error"]["stack"].count("\n") > 1


def test_the_level_of_a_log_line_is_shown(server: Up) -> None:
    levels = {"debug": "small", "info": "usual", "warning": "odd", "error": "bad"}
    nodes = [
        node(place, "log", f"N{place}", parameters={"level": level, "message": text})
        for place, (level, text) in enumerate(levels.items(), 1)
    ]
    done = server.astra("run", "-", stdin=json.dumps(workflow(*nodes)))
    said = {line for line in done.err.splitlines() if " | " in line}
    assert said == {"N1 | DEBUG small", "N2 | usual", "N3 | WARNING odd", "N4 | ERROR bad"}
    run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
    logs = server.astra("runs", "logs", run_id)
    assert set(logs.out.splitlines()) == said
    (odd,) = [
        one for one in server.astra("runs", "logs", run_id, "--json").lines if one["text"] == "odd"
    ]
    assert odd["metadata"] == {"level": "warning"}
    for follow in ((), ("--follow",)):
        shown = server.astra("runs", "logs", run_id, "--level", "warning", *follow).out
        assert set(shown.splitlines()) == {"N3 | WARNING odd", "N4 | ERROR bad"}


def test_output_that_was_dropped_is_mentioned(server: Up) -> None:
    done = server.astra("run", "-", stdin=json.dumps(LOUD))
    assert done.code == 0, done.err[-2000:]
    assert "of output were dropped" in done.err
    run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
    assert "of output were dropped" in server.astra("runs", "logs", run_id).out


def test_ids_are_never_broken_in_two_lines(server: Up) -> None:
    run_id = server.submit(workflow(node(1, "noop")))
    worker_id = server.astra("workers", "list", "--json").json["items"][0]["workerId"]
    for arguments, wanted in ((("runs", "list"), run_id), (("workers", "list"), worker_id)):
        terminal = Terminal(*arguments, cwd=server.folder, COLUMNS="60")
        terminal.end()
        assert wanted in terminal.seen


def test_a_port_in_use_is_told_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = astra("up", "--port", port, cwd=tmp_path)
    assert done.code == 2
    assert f"error: cannot listen on 127.0.0.1:{port}: Address already in use" in done.err
    assert "hint: stop the process that listens there, or choose another port" in done.err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [(("rnu",), "run"), (("workes", "list"), "workers"), (("runs", "lst"), "list")],
)
def test_a_mistyped_command_is_told_the_nearest(
    tmp_path: Path, arguments: tuple[str, ...], near: str
) -> None:
    done = astra(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert f"Did you mean '{near}'?" in done.err


def test_a_mistyped_type_or_port_is_told_the_nearest(server: Up) -> None:
    first, second = node(1, "ecko"), node(2, "echo")
    wrong = workflow(first, second)
    wrong["nodes"].append(node(3, "echo"))
    wrong["edges"] = [
        {
            "source": {"node": second["id"], "port": "valeu"},
            "target": {"node": wrong["nodes"][2]["id"]},
        }
    ]
    done = server.astra("workflows", "validate", "-", stdin=json.dumps(wrong))
    assert done.code == 1
    assert "did you mean 'core.echo'?" in done.err
    assert "did you mean 'value'?" in done.err


def test_a_cycle_is_told_by_labels(server: Up) -> None:
    one, two = node(1, "noop", "Fetch"), node(2, "noop", "Store")
    circle = workflow(one, two, edges=((one, two), (two, one)))
    done = server.astra("workflows", "validate", "-", stdin=json.dumps(circle))
    assert "the edges go round in a circle: Fetch → Store → Fetch" in done.err


def test_json_that_is_none_is_told_with_line_and_column(server: Up) -> None:
    broken = '{\n  "id": "ä", "nodes": [,]\n}'
    with pytest.raises(json.JSONDecodeError) as known:
        json.loads(broken)
    done = server.astra("run", "-", stdin=broken)
    assert (done.code, done.out) == (2, "")
    assert f"not JSON, line 2, column {known.value.colno}: " in done.err
    cut = server.astra("run", "-", stdin='{\n "nodes": [')
    assert "not JSON, line 2, column 12: the text ends too early" in cut.err


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object()])
def test_the_client_refuses_what_json_cannot_hold(value: object) -> None:
    document = {"id": "x", "nodes": [{"parameters": {"value": value}}]}
    with pytest.raises(errors.Refused):
        requests.submit(document, None, "key")
    with pytest.raises(errors.Refused):
        requests.submit("id", {"a": value}, "key")
    with pytest.raises(errors.Refused):
        requests.validate_workflow(document)


def test_what_the_list_of_items_says_is_what_other_commands_take(server: Up) -> None:
    box = node(1, "container", "Box", map={"over": "=range(2)", "item": "row"})
    inside = node(2, "echo", "Inside", parameters={"value": "=row * 10"}, parent=box["id"])
    each = node(3, "echo", "Each", parameters={"value": "=item"}, map={"over": "=[row, 7]"})
    each["parent"] = box["id"]
    assert server.astra("run", "-", stdin=json.dumps(workflow(box, inside, each))).code == 0
    run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
    rows = server.astra("runs", "items", run_id, "Box").out.splitlines()
    scope = f"{rows[1].split(chr(9))[-1]}/{box['id']}:0"
    for name in ("Inside", inside["id"]):
        shown = server.astra("runs", "show", run_id, "--node", name, "--scope", scope, "--json")
        assert shown.json["result"] == {"value": 10}
    inner = server.astra("runs", "items", run_id, "Each", "--scope", scope, "--json")
    assert [one["result"]["value"] for one in inner.json["items"]] == [1, 7]
    lost = server.astra("runs", "show", run_id, "--node", "Nobody", "--scope", scope)
    assert (lost.code, "no such node in this scope: Nobody" in lost.err) == (1, True)
