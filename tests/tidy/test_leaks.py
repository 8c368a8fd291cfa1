"""The leak check sees what a test leaves behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parent.parent / "conftest.py"

LEAKS = {
    "file": "kept.append(open(__file__))",
    "thread": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "child process": "kept.append(subprocess.Popen(['true']))",
}
PROGRAM = """
import subprocess, threading
kept = []
def test_it():
    {line}
"""


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "test_leak.py").write_text(PROGRAM.format(line=line))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_fails_the_test_that_made_it(kind: str, tmp_path: Path) -> None:
    answer = run(tmp_path, LEAKS[kind])
    assert answer.returncode == 1, answer.stdout
    assert f"the test left behind: {kind}" in answer.stdout


def test_what_is_given_back_is_no_leak(tmp_path: Path) -> None:
    answer = run(tmp_path, "open(__file__).close()")
    assert answer.returncode == 0, answer.stdout
