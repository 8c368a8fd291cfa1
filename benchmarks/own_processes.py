"""Processes of a benchmark itself: what loads a scheduler must not run beside the clock that measures it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["line_of", "own_process", "tell"]


@asynccontextmanager
async def own_process(module: str, *arguments: object) -> AsyncIterator[subprocess.Popen[str]]:
    """A process of the benchmark itself, ended with the block."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    process = await asyncio.to_thread(_start, command)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
        process.stdin.close()
        process.stdout.close()


def _start(command: list[str]) -> subprocess.Popen[str]:
    # Our own module, with arguments that we made.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that it prints; empty if it has ended."""
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).strip()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
