"""What holds for every test: nothing leaks, and Hypothesis says how to repeat what it found."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import obstore
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from obstore.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

# obstore opens its runtime at its first use, once for the process: before the first test that is no leak.
obstore.put(MemoryStore(), "first", b"")

# CI machines are shared and slow by turns: a deadline would fail for reasons not in the code.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "database": DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("ci", max_examples=100, **_COMMON)
settings.register_profile("long", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine function gets a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


class Held(NamedTuple):
    """What this process holds that a test could leave behind."""

    files: frozenset[tuple[str, str]]
    threads: frozenset[threading.Thread]
    children: frozenset[str]


def _open_files() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.add((entry, os.readlink(f"/proc/self/fd/{entry}")))
        except FileNotFoundError:
            continue  # the descriptor that listed the folder
    return frozenset(found)


def _children() -> frozenset[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found.update(Path(f"/proc/self/task/{task}/children").read_text().split())
        except FileNotFoundError:
            continue  # a thread that ended meanwhile
    return frozenset(found)


LATE_S = 2.0
"""A server in a thread closes its side of a connection a moment after its client has."""


def _held() -> Held:
    return Held(_open_files(), frozenset(threading.enumerate()), _children())


def _leaked(before: Held) -> list[str]:
    after = _held()
    return [
        *(f"file {name} -> {target}" for name, target in sorted(after.files - before.files)),
        *(f"thread {thread.name}" for thread in after.threads - before.threads),
        *(f"child process {pid}" for pid in sorted(after.children - before.children)),
    ]


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    if not Path("/proc/self/fd").is_dir():
        yield
        return
    before = _held()
    yield
    if _leaked(before):
        gc.collect()  # a cycle that holds a file is not a leak, only late
        left = _leaked(before)
        ends_at = time.monotonic() + LATE_S
        while left and time.monotonic() < ends_at:
            time.sleep(0.05)  # nor is a connection that the loop of another thread is closing
            left = _leaked(before)
        assert not left, f"the test left behind: {', '.join(left)}"
