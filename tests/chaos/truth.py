"""The register of truth: what really ran, written by the nodes themselves, outside of the system.

Each node has a file, named by a key that its client chose, and with `each` one for each of its tasks. A line is
`run key attempt word ns pid`; it is written with one `write` to a file opened with O_APPEND, so that lines of two
processes never mix.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["ACTS", "SCRIPT", "Line", "read_truth"]

ACTS = (
    "ok",
    "slow",
    "fail_once",
    "fail",
    "abort_once",
    "segfault_once",
    "stubborn",
    "flood",
    "fork",
    "big",
    "stream",
    "segfault",
    "eat",
    "still",
)
"""What a node can do. The last three are for tests that ask for them."""

SCRIPT = r"""
import ctypes, os, subprocess, time

def main(folder, key, act="ok", seconds=0.0, size=0, each=False):
    if each:
        key = f"{key}.{ctx.task_id}"

    def line(word):
        text = f"{ctx.run_id} {key} {ctx.attempt} {word} {time.monotonic_ns()} {os.getpid()}\n"
        file = os.open(os.path.join(folder, key), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    line("start")
    if act == "abort_once" and ctx.attempt == 1:
        os.abort()
    if act == "segfault_once" and ctx.attempt == 1:
        ctypes.string_at(8)
    if act == "segfault":
        time.sleep(0.4)
        ctypes.string_at(8)
    if act == "eat":
        held = []
        while True:
            held.append(bytearray(os.urandom(64)) * 65536)
            time.sleep(0.02)
    if act == "still":
        time.sleep(seconds)
    if act == "fork":
        subprocess.Popen(["sleep", "300"], start_new_session=True)
    if act == "flood":
        for _ in range(2000):
            print("f" * 500)
    until = time.monotonic() + (seconds if act != "still" else 0.0)
    while time.monotonic() < until:
        line("beat")
        if act == "stream":
            ctx.emit(f"piece {time.monotonic_ns()} ")
        if act != "stubborn":
            ctx.raise_if_cancelled()
        time.sleep(0.04)
    if act == "fail" or (act == "fail_once" and ctx.failures == 0):
        line("raise")
        raise RuntimeError("failed as asked")
    line("end")
    return {"key": key, "attempt": ctx.attempt, "filler": "b" * size}
"""


class Line(NamedTuple):
    run: str
    key: str
    attempt: int
    word: str
    ns: int
    pid: int


def read_truth(folder: Path) -> dict[str, list[Line]]:
    """All lines by key, in the order in which they were written."""
    found: dict[str, list[Line]] = {}
    for path in sorted(folder.iterdir()):
        lines = []
        for text in path.read_text().splitlines():
            run, key, attempt, word, ns, pid = text.split()
            lines.append(Line(run, key, int(attempt), word, int(ns), int(pid)))
        found[path.name] = lines
    return found
