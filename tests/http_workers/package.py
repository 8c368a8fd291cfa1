"""A package whose nodes say what happens to them in a file: the same file runs with a session and without."""

from __future__ import annotations

import json
from pathlib import Path

from astraflow_sdk.describe import describe_package

NODES = '''
import asyncio
import os
import time
from pathlib import Path

from astraflow_sdk import Context, DataQualityError, node


def note(ctx: Context, mark: str, what: str) -> None:
    with open(mark, "a") as file:
        file.write(f"{what} {ctx.attempt} {time.monotonic():.6f}\\n")


@node("served.upper", category="Text")
async def upper(ctx: Context, text: str) -> dict:
    """Upper-case a text."""
    return {"text": text.upper()}


@node("served.plain", category="Text")
def plain(text: str) -> dict:
    """A plain function."""
    return {"text": text[::-1]}


@node("served.bad", category="Text")
def bad() -> dict:
    """It fails."""
    raise DataQualityError("row 3 has no name")


@node("served.slow", category="Text")
async def slow(ctx: Context, mark: str, seconds: float) -> dict:
    """It takes its time, and stops when it is told to."""
    note(ctx, mark, "begin")
    try:
        for step in range(int(seconds * 20)):
            ctx.progress(step / (seconds * 20), f"step {step}")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        note(ctx, mark, "cancelled")
        raise
    note(ctx, mark, "end")
    return {"pid": os.getpid()}


@node("served.telling", category="Text")
async def telling(ctx: Context, key: str, how: str, go_on: str) -> dict:
    """It tells its secret in every way that it has."""
    if how == "logs":
        ctx.log("info", f"logged {key}")
    else:
        ctx.progress(0.5, f"at work with {key}")
    while not os.path.exists(go_on):
        await asyncio.sleep(0.02)
    if how == "raises":
        raise DataQualityError(f"refused {key}")
    return {"returned": key, "inside": [f"a {key} b"], key: 1, "twice": repr(key.encode())}


@node("served.stubborn", category="Text")
def stubborn(ctx: Context, mark: str, seconds: float) -> dict:
    """It does not listen."""
    note(ctx, mark, "begin")
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        time.sleep(0.02)
        note(ctx, mark, "alive")
    note(ctx, mark, "end")
    return {}
'''


def write_nodes(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "served_nodes.py").write_text(NODES)
    manifest = {"name": "served", "version": "1.0.0", "schemaVersion": "1.0.0"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    whole = describe_package(folder, manifest)
    (folder / "manifest.json").write_text(json.dumps(whole))
    return folder
