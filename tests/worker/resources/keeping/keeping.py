"""Nodes that make and use resources, in all the ways that an author may."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from astraflow_sdk import Context, artifact, node, resource


class Model:
    """Something that is dear to make."""

    def __init__(self, note: str) -> None:
        self.note = note
        self.used = 0

    def close(self) -> None:
        Path(self.note).write_text("closed")

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.close()

    def close_badly(self) -> None:
        raise OSError("it does not close")


@node("keeping.keep")
async def keep(ctx: Context, note: str, how: str = "close", **more: Any) -> dict[str, Any]:
    model = Model(note)
    handle = resource.keep(model, type="model", close=getattr(model, how), **more)
    return {"model": handle.ref(), "pid": os.getpid()}


@node("keeping.use")
async def use(ctx: Context, model: Any) -> dict[str, Any]:
    with resource.lease(model) as handle:
        handle.value.used += 1
        leased = list(ctx.leased_resources)
        return {"used": handle.value.used, "pid": os.getpid(), "leased": leased}


@node("keeping.use_in_thread")
def use_in_thread(ctx: Context, model: Any) -> dict[str, Any]:
    handle = resource.lease(model)
    handle.value.used += 1
    return {"used": handle.value.used, "pid": os.getpid()}


@node("keeping.hold")
async def hold(ctx: Context, file: Any = None, model: Any = None) -> None:
    """Holds what it was given until it is cancelled."""
    ctx.log("info", "up")
    await asyncio.Event().wait()


@node("keeping.store")
async def store(ctx: Context, text: str, name: str = "a.txt", **more: Any) -> dict[str, Any]:
    handle = await asyncio.to_thread(artifact.store_bytes, text.encode(), name=name, **more)
    return {"file": handle.ref(), "inline": handle.inline}


@node("keeping.unlisted")
def unlisted(
    ctx: Context, resource_id: str, path: str | None = None, **more: Any
) -> dict[str, Any]:
    registry = ctx.resource_registry
    assert registry is not None
    made = Path(path) if path else ctx.data_dir / "made"
    if not path:
        made.write_text("made")
    handle = registry.register_file(resource_id, made, **more)
    return {"file": handle.ref(), "path": str(handle.path)}


@node("keeping.write")
def write(ctx: Context, text: str, gate: str) -> dict[str, Any]:
    """Writes a file of a usual name, and registers it when everybody has written theirs."""
    before = [one.name for one in ctx.data_dir.iterdir()]
    path = ctx.data_dir / "processed.mp4"
    path.write_text(text)
    (ctx.data_dir / "left").write_text("left behind")
    ctx.log("info", "up")
    while not Path(gate).exists():
        time.sleep(0.001)
    handle = artifact.store_file(path)
    folders = {"data_dir": str(ctx.data_dir), "cwd": os.getcwd()}
    return {"file": handle.ref(), "before": before, **folders}


@node("keeping.fill")
async def fill(ctx: Context, size: int) -> None:
    """Fills its folder, and does not stop."""
    (ctx.data_dir / "fill").write_bytes(b"x" * size)
    ctx.log("info", "up")
    await asyncio.Event().wait()


@node("keeping.read")
def read(ctx: Context, file: Any = None) -> dict[str, Any]:
    with resource.lease(file) as handle:
        return {"text": handle.read_bytes().decode(), "path": str(handle.path)}


@node("keeping.read_on_the_loop")
async def read_on_the_loop(ctx: Context, file: Any = None) -> dict[str, Any]:
    with resource.lease(file) as handle:
        return {"text": handle.read_bytes().decode()}


@node("keeping.release_twice")
def release_twice(ctx: Context, file: Any = None) -> None:
    handle = resource.lease(file)
    registry = ctx.resource_registry
    assert registry is not None
    while True:
        registry.release(handle.resource_id)


@node("keeping.touch")
def touch(ctx: Context, resource_id: str, seconds: float) -> None:
    assert ctx.resource_registry is not None
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    ctx.resource_registry.touch(resource_id, expires_at=until)


@node("keeping.lists")
def lists(ctx: Context, resource_id: str) -> dict[str, Any]:
    ctx.add_artifact(resource_id, "file")
    return {}


@node("keeping.lies")
def lies(ctx: Context) -> dict[str, Any]:
    """Writes to the worker's file after its digest was made."""
    handle = artifact.store_bytes(b"before it")
    assert handle.path is not None
    handle.path.write_bytes(b"after it, and longer")
    return {}


@node("keeping.late")
def late(ctx: Context, note: str) -> dict[str, Any]:
    """A thread that outlives its attempt."""
    registry = ctx.resource_registry
    assert registry is not None

    def speak() -> None:
        while ctx.state is not None:
            pass
        try:
            registry.register(None, "late", "model")
        except BaseException as problem:
            Path(note).write_text(str(problem))

    threading.Thread(target=speak, daemon=True).start()
    return {}


@node("keeping.garbled")
def garbled(ctx: Context) -> dict[str, Any]:
    """Says it has made something, in a way that nobody can read."""
    head = f'"type":"register","task_id":"{ctx.task_id}","attempt":{ctx.attempt}'
    ctx._port.post(f'{{{head},"resource_id":"a","kind":"ghost"}}')  # type: ignore[attr-defined]
    return {}


@node("keeping.exits")
def exits(ctx: Context) -> None:
    os._exit(1)
