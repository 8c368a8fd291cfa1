"""The login page in a real Chromium: a link logs the browser in once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.processes.command_line import up
from tests.processes.waiting import WAIT_S


def text_of(url: str, profile: Path) -> str:
    """The page after its script has run."""
    program = os.environ.get("ASTRA_CHROMIUM") or shutil.which("chromium") or "google-chrome"
    done = subprocess.run(
        [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=10000",
            f"--user-data-dir={profile}",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_link_logs_a_browser_in_once(tmp_path: Path) -> None:
    with up(tmp_path, "--workers", "0") as server:
        link = server.process.line(lambda one: "/login#" in one).split()[-1]
        first = text_of(link, tmp_path / "first")
        assert 'id="root"' in first, "the app itself"
        again = text_of(link, tmp_path / "second")
        assert "the link has expired or was used" in again
        assert '<form id="login">' in again
        bare = text_of(f"{server.url}/login", tmp_path / "third")
        assert '<form id="login">' in bare
        listed = server.astra("tokens", "list", "--json").json["items"]
        assert [one["kind"] for one in listed] == ["session"]
