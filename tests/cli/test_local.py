"""`astra run --local`: a whole run in one process, from the outside."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.workflows import EXAMPLES, FAILING, SLOW, node, workflow
from tests.processes.command_line import Done, Terminal, astra, start
from tests.processes.process import Process

Local = Callable[..., Done]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where temporary files of the commands go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def local(tmp_path: Path, scratch: Path) -> Local:
    """Runs `astra run --local` in an empty folder, without a home; nothing may be left by it."""
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(*arguments: str, stdin: str = "", **environment: str) -> Done:
        done = astra(
            "run", "--local", *arguments, cwd=empty, stdin=stdin, HOME=str(tmp_path / "no-home"),
            TMPDIR=str(scratch), **environment,
        )  # fmt: skip
        assert list(empty.iterdir()) == []
        assert list(scratch.iterdir()) == []
        return done

    return run


def started(definition: dict[str, Any], folder: Path, scratch: Path) -> Process:
    (folder / "given.json").write_text(json.dumps(definition))
    return start("run", "--local", "given.json", cwd=folder, TMPDIR=str(scratch))


def test_a_workflow_runs_as_on_a_server(local: Local) -> None:
    done = local(str(EXAMPLES / "hello.json"))
    assert done.code == 0
    assert len(done.out.splitlines()) == 10
    assert "Tell the first | Hello, Ada! You are guest number 1." in done.err
    assert "succeeded after " in done.err.splitlines()[-1]


def test_json_has_every_event_and_then_the_run(local: Local) -> None:
    done = local(str(EXAMPLES / "conditions.json"), "--json", "--input", "total=1500")
    *events, run = done.lines
    assert done.code == 0
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert (run["status"], run["outputs"]) == ("succeeded", {"said": "1500: asked"})


@pytest.mark.parametrize(
    ("name", "code"), [("error-port.json", 0), ("retry.json", 0), ("expressions.json", 0)]
)
def test_the_examples_run(local: Local, name: str, code: int) -> None:
    assert local(str(EXAMPLES / name)).code == code


def test_files_are_made_and_read(local: Local) -> None:
    made, read = node(1, "file", "Made", parameters={"text": "abc"}), node(2, "read_file", "Read")
    wired = workflow(made, read)
    port = {
        "source": {"node": made["id"], "port": "file"},
        "target": {"node": read["id"], "port": "file"},
    }
    wired["edges"] = [port]
    done = local("-", "--json", stdin=json.dumps(wired))
    assert done.code == 0
    assert done.lines[-1]["nodes"][1]["result"]["sizeBytes"] == 3


def test_a_large_result_is_given_to_the_next_node(local: Local, tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text(
        "from astraflow.builder import Flow, core\n"
        "workflow = Flow('Large')\n"
        "made = core.python(workflow, 'Make', code='def main():\\n    return {\"t\": \"x\" * 6_000_000}\\n')\n"
        "read = 'def main(t):\\n    return {\"n\": len(t)}\\n'\n"
        "core.python(workflow, 'Read', code=read, inputs=made['result'])\n"
    )
    done = local(str(path), "--json")
    assert done.code == 0, done
    assert done.lines[-1]["nodes"][1]["result"] == {"n": 6_000_000}


def test_a_run_that_fails_exits_with_1(local: Local) -> None:
    done = local("-", stdin=json.dumps(FAILING))
    assert done.code == 1
    assert "broken on purpose" in done.out


def test_what_cannot_run_is_refused_with_pointers(local: Local) -> None:
    done = local("-", stdin=json.dumps(workflow(node(1, "nope"))))
    assert done.code == 1
    assert "/nodes/0/type: no known package" in done.err
    as_json = local("-", "--json", stdin=json.dumps(workflow(node(1, "nope")))).json
    assert (as_json["status"], as_json["code"]) == (422, "E.WORKFLOW.INVALID")
    missing = local(str(EXAMPLES / "nobody.json"))
    assert missing.code == 2
    undeclared = local(str(EXAMPLES / "hello.json"), "--input", "name=Ada")
    assert undeclared.code == 1
    assert "name" in undeclared.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",),
        ("-", "--no-watch"),
        ("-", "--idempotency-key", "a"),
    ],
)
def test_what_needs_a_server_is_refused(local: Local, arguments: tuple[str, ...]) -> None:
    done = local(*arguments, stdin=json.dumps(SLOW))
    assert done.code == 2
    assert "--local" in done.err


def test_settings_of_servers_do_not_count(local: Local) -> None:
    done = local(
        "-", stdin=json.dumps(workflow(node(1, "noop"))), ASTRA_SERVER="http://192.0.2.1:1",
        ASTRA_TOKEN="none", ASTRA_SCHEDULER_DATABASE_URL="nonsense", ASTRA_WORKER_TENANT="x",
    )  # fmt: skip
    assert done.code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_run(
    tmp_path: Path, scratch: Path, number: signal.Signals
) -> None:
    running = started(SLOW, tmp_path, scratch)
    running.until(lambda: "Long sleep running" in running.said())
    assert running.end(number) == 130
    said = running.said()
    assert "Cancelling the run" in said
    assert "cancelled" in said.splitlines()[-1]
    assert list(scratch.iterdir()) == []


def test_nothing_listens_and_nothing_is_connected(tmp_path: Path, scratch: Path) -> None:
    running = started(SLOW, tmp_path, scratch)
    running.until(lambda: "Long sleep running" in running.said())
    links = [os.readlink(one) for one in Path(f"/proc/{running.pid}/fd").iterdir()]
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    tables = [
        Path(f"/proc/{running.pid}/net/{name}").read_text() for name in ("tcp", "tcp6", "udp")
    ]
    inodes = {line.split()[9] for table in tables for line in table.splitlines()[1:]}
    assert not sockets & inodes
    assert running.end(signal.SIGINT) == 130


def test_a_person_is_asked_at_the_terminal(tmp_path: Path) -> None:
    path = str(EXAMPLES / "approval.json")
    terminal = Terminal("run", "--local", path, "--signal", 'paid={"sum": 500}', cwd=tmp_path)
    terminal.read_until("Pay 500 to Ada? [y/n]")
    terminal.type("y\n")
    terminal.read_until("Comment")
    terminal.type("fine\n")
    terminal.read_until("Values of the form")
    terminal.type("nonsense\n")
    terminal.read_until("this is no JSON object")
    terminal.type('{"budget": "IT"}\n')
    terminal.read_until("500 from IT")
    assert terminal.end() == 0


def test_a_person_may_say_no(tmp_path: Path) -> None:
    terminal = Terminal("run", "--local", str(EXAMPLES / "approval.json"), cwd=tmp_path)
    terminal.read_until("Pay 500 to Ada? [y/n]")
    terminal.type("n\n")
    terminal.read_until("Comment")
    terminal.type("\n")
    terminal.read_until("Rejected succeeded")
    assert terminal.end() == 0


APPROVAL = workflow(
    node(1, "approval", "Sure?", approval={"message": "Go on?"}),
    node(2, "signal", "Called", signal={"name": "call"}),
)


def test_without_a_terminal_a_person_is_not_waited_for(local: Local) -> None:
    done = local("-", stdin=json.dumps(APPROVAL))
    assert done.code == 1
    assert "Sure? waits for a person" in done.err
    assert "--yes" in done.err


def test_approvals_and_signals_can_be_given_at_the_start(local: Local) -> None:
    done = local("-", "--yes", "--signal", 'call={"a": 1}', "--json", stdin=json.dumps(APPROVAL))
    assert done.code == 0
    sure, called = done.lines[-1]["nodes"]
    assert sure["result"]["approved"] is True
    assert called["result"]["payload"] == {"a": 1}


def test_a_form_that_nobody_fills_in_ends_the_run(local: Local) -> None:
    done = local(str(EXAMPLES / "approval.json"), "--yes")
    assert done.code == 1
    assert "Approve takes no such decision" in done.err


def test_a_script_is_run_and_its_workflow_too(local: Local, tmp_path: Path) -> None:
    done = local(str(EXAMPLES / "builder.py"), "--input", "country=DE", "--json")
    assert done.code == 0
    assert done.lines[-1]["outputs"] == {"receipt": "2 things to DE: 37.5"}
    golden = json.loads((EXAMPLES / "builder.json").read_text())
    assert done.lines[-1]["workflowId"] == golden["id"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("other = 1", "defines no workflow"),
        ("workflow = 5", "defines no workflow"),
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
    ],
)
def test_a_script_without_a_workflow_is_refused(
    local: Local, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    done = local(str(path))
    assert done.code == 2
    assert said in done.err


def test_a_script_may_make_its_workflow_when_asked_and_print(local: Local, tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("LABEL = 'From another file'\n")
    path = tmp_path / "made.py"
    path.write_text(
        "from parts import LABEL\nfrom astraflow import Flow\nfrom astraflow.builder import core\n"
        "print('hello from the script')\n"
        "def workflow():\n    flow = Flow('Made')\n    core.echo(flow, LABEL, value=1)\n    return flow\n"
        "if __name__ == '__main__':\n    raise SystemExit(9)\n"
    )
    done = local(str(path), "--json")
    assert done.code == 0
    assert done.lines[-1]["nodes"][0]["label"] == "From another file"
    assert "hello from the script" in done.err


def test_options_of_local_runs_are_not_for_others(tmp_path: Path) -> None:
    done = astra("run", "-", "--yes", cwd=tmp_path, stdin=json.dumps(SLOW))
    assert done.code == 2
    assert "for --local" in done.err
