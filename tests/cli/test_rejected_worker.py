"""A worker that is not let in: both sides say so, with what to do, and neither fills its log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.proc import die_with_parent
from tests.cli.rig import WAIT_S, clean_environment
from tests.hostile.server import Server, running


def lines_of(path: Path) -> list[dict[str, str]]:
    text = path.read_text(errors="replace") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def until_warned(path: Path, word: str) -> dict[str, str]:
    end = time.monotonic() + WAIT_S
    while True:
        for line in lines_of(path):
            if line["level"] == "warning" and word in line["message"]:
                return line
        assert time.monotonic() < end, path.read_text(errors="replace")[-4000:]
        time.sleep(0.05)


def start_worker(server: Server, folder: Path, token: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [
                sys.executable, "-m", "astraflow", "worker", "--data-dir", str(folder / "kept"),
                "--scheduler-url", f"ws://127.0.0.1:{server.port}/ws/worker",
            ],
            env=clean_environment(ASTRA_WORKER_AUTH_TOKEN=token),
            cwd=folder, stdout=log, stderr=log, preexec_fn=die_with_parent,
        )  # fmt: skip


def test_a_worker_with_a_wrong_token_is_told_why_on_both_sides(tmp_path: Path) -> None:
    folder = tmp_path / "worker"
    with running(tmp_path) as server:
        worker = start_worker(server, folder, "not the token of this scheduler")
        try:
            said = until_warned(folder / "log", "E.AUTH.INVALID_TOKEN")
            assert said["code"] == "E.AUTH.INVALID_TOKEN"
            assert "get a new token" in said["message"], "what to do"
            assert "reconnecting in " in said["message"], "and when"
            instance = (folder / "kept" / "worker_instance_id").read_text().strip()
            seen = until_warned(tmp_path / "server.log", "E.AUTH.INVALID_TOKEN")
            assert (seen["tenant"], seen["worker"]) == ("default", instance)
            assert "127.0.0.1:" in seen["message"]
            assert "not the token" not in server.log + (folder / "log").read_text()
        finally:
            worker.kill()
            worker.wait()
