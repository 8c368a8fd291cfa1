"""`astra up`: it comes up, keeps its workers alive, and leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import httpx

from tests.cli.workflows import EXAMPLES, SLOW, node, workflow
from tests.processes.command_line import Up, astra, start, up
from tests.processes.rest import TOKEN
from tests.processes.system import running
from tests.processes.waiting import until

NOTHING = json.dumps(workflow(node(1, "noop")))


def worker_of(running: Up) -> int:
    """The process id of the one worker."""
    (found,) = [pid for pid, command in running.process.family().items() if " worker " in command]
    return found


def test_it_serves_a_run_ends_without_a_trace_and_remembers(tmp_path: Path) -> None:
    running = Up(tmp_path)
    try:
        assert httpx.get(f"{running.url}/readyz").status_code == 200
        place = tmp_path / "var" / "endpoint.json"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert json.loads(place.read_text())["url"] == running.url
        told = running.process.line(lambda line: "curl" in line)
        assert f"{running.url}/api/v1/runs" in told
        done = running.astra("run", str(EXAMPLES / "retry.json"), "--json")
        assert done.code == 0, done
        run_id, token = done.lines[-1]["runId"], running.token
        worker = worker_of(running)
        assert running.token.encode() not in Path(f"/proc/{worker}/cmdline").read_bytes()
        assert running.token not in running.said()
        assert len(running.process.family()) >= 3, "a worker and at least one host"
    finally:
        code = running.end()
    assert code == 0
    assert not place.exists()
    with up(tmp_path, "--workers", "0") as again:
        assert again.token == token
        assert again.astra("runs", "show", run_id, "--json").json["status"] == "succeeded"
    assert "Shutting down: waiting for running attempts" in running.said()


def test_killed_it_takes_its_workers_and_hosts_with_it(tmp_path: Path) -> None:
    running = Up(tmp_path)
    run_id = running.submit(SLOW)
    watching = running.start("runs", "watch", run_id, "--patience", "0.2")
    watching.line(lambda line: line.startswith("Long sleep running"))
    assert len(running.process.family()) >= 3
    running.end(signal.SIGKILL)
    # Whoever watched gives up after a while, and says how to go on.
    assert watching.wait() == 3
    assert f"astra runs watch {run_id}" in watching.said()
    assert "the server has been gone for 0.2 s" in watching.said()


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        assert running.astra("run", "-", stdin=NOTHING).code == 0
        os.kill(worker_of(running), signal.SIGKILL)
        assert running.astra("run", "-", stdin=NOTHING).code == 0
        assert "worker-1 exited with signal 9; restarting" in running.said()


def test_a_second_one_in_the_same_folder_says_who_is_there(tmp_path: Path) -> None:
    with up(tmp_path, "--workers", "0") as running:
        second = astra("up", "--port", "0", cwd=tmp_path)
        assert (second.code, second.out) == (3, "")
        assert second.err.startswith(
            f"error: Process {running.process.pid}, listening on {running.url}, has the store open"
        )
        assert "\n\nhint: stop the process that the message names" in second.err
        server = astra("server", "--port", "0", cwd=tmp_path)
        assert server.code == 3
        assert f"rocess {running.process.pid} has the store open" in server.err


def test_the_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    running = Up(tmp_path)
    run_id = running.submit(SLOW)
    watching = running.start("runs", "watch", run_id)
    watching.line(lambda line: line.startswith("Long sleep running"))
    watching.end(signal.SIGINT)
    running.process.send(signal.SIGINT)
    # It waits for the sleep of two minutes now, for some seconds at most; nobody has to wait for it to be over.
    running.process.until_said("press ^C again to kill them")
    assert running.end(signal.SIGINT) == 1
    assert "killed" in running.said()


def test_a_run_is_watched_over_a_restart_of_the_server(tmp_path: Path) -> None:
    """The server is killed while a run is watched, and started again at the same address; the run goes on."""
    first, second = node(1, "sleep", "First", parameters={"seconds": 2}), node(2, "noop", "Second")
    with running(tmp_path, 1) as system:
        asking = {"ASTRA_SERVER": system.url, "ASTRA_TOKEN": TOKEN}
        run_id = system.rest.submit(workflow(first, second, edges=[(first, second)]))
        watching = start("runs", "watch", run_id, cwd=tmp_path, **asking)
        try:
            watching.line(lambda line: line.startswith("First running"))
            system.scheduler.kill()
            watching.line(lambda line: line.startswith("connection lost"))
            system.start()
            watching.line(lambda line: line.startswith("reconnected"))
            watching.line(lambda line: line.startswith(f"run {run_id} succeeded"))
            assert watching.wait() == 0
        finally:
            watching.close()


def test_its_workers_hold_a_token_that_opens_nothing_but_a_session(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        environ = Path(f"/proc/{worker_of(running)}/environ").read_bytes().split(b"\0")
        (given,) = [one for one in environ if one.startswith(b"ASTRA_WORKER_AUTH_TOKEN=")]
        token = given.partition(b"=")[2].decode()
        assert token != running.token
        refused = running.astra("runs", "list", "--json", ASTRA_TOKEN=token)
        assert refused.code != 0
        assert refused.json["code"] == "E.AUTH.FORBIDDEN"
        assert running.astra("run", "-", stdin=NOTHING).code == 0


def test_what_it_keeps_is_unreadable_for_other_users(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir(mode=0o755)  # made by somebody else, as they make folders
    with up(tmp_path, "--workers", "0"):
        files = [path for path in (tmp_path / "var").iterdir() if path.is_file()]
        assert {"token", "secret", "astraflow.db", "astraflow.db-wal"} <= {
            one.name for one in files
        }
        assert [one.name for one in files if one.stat().st_mode & 0o077] == []


def test_a_drained_worker_is_started_again_when_the_drain_is_taken_back(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        assert running.astra("run", "-", stdin=NOTHING).code == 0
        assert running.astra("workers", "drain", "worker-1").code == 0
        running.process.until_said("worker-1 was drained; `astra workers undrain` restarts it")
        (drained,) = running.astra("workers", "list", "--json").json["items"]
        assert drained["drainRequested"] is True
        waiting = running.submit(json.loads(NOTHING))
        assert running.astra("workers", "undrain", "worker-1").code == 0
        assert running.astra("runs", "watch", waiting).code == 0
        assert running.said().count("was drained") == 1
        assert "restarting in" not in running.said()


def test_the_web_app_is_opened_logged_in(tmp_path: Path) -> None:
    """By a link of its own: the one that is printed still works."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened.part\nmv {tmp_path}/opened.part {tmp_path}/opened\n'
    )
    browser.chmod(0o755)
    opened = tmp_path / "opened"
    with up(tmp_path, "--workers", "0", "--open", BROWSER=f"{browser} %s") as server:
        link = until(lambda: opened.read_text() if opened.exists() else None, "a browser")
        printed = server.process.line(lambda one: "/login#" in one).split()[-1]
        assert link != printed
        for one in (link, printed):
            code = one.partition("#")[2]
            answer = httpx.post(
                f"{server.url}/api/v1/auth/link", json={"code": code}, trust_env=False
            )
            assert answer.json()["subject"] == "bootstrap"


def test_a_browser_that_cannot_start_is_no_error(tmp_path: Path) -> None:
    with up(tmp_path, "--workers", "0", "--open", BROWSER="/nowhere/browser") as server:
        until(lambda: "open the login link" in server.said(), "what to do instead")
        assert server.astra("workers", "list").code == 0
