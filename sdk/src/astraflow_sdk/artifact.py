"""Artifacts: files that a node returns beside its result; the worker keeps them and the run lists them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from astraflow_sdk.current import current
from astraflow_sdk.handles import ResourceHandle

DEFAULT_MIME = "application/octet-stream"


def fresh_path(name: str = "file") -> Path:
    """Where to write a file that `store_file` shall take: alone in a new folder below `ctx.data_dir`."""
    return current().needed_registry().fresh_path(name)


def store_file(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    type: str | None = None,
    mime: str | None = None,
    ttl_seconds: float | None = None,
    durable: bool = False,
) -> ResourceHandle:
    """Give a file from below `ctx.data_dir` to the worker and list it. It is moved: see `path` of the handle.

    `durable`: it is copied to where it outlives this worker, as soon as the attempt has succeeded.

    Raises:
        ResourceError: it is no file that can be kept.
    """
    ctx = current()
    registry = ctx.needed_registry()
    shown = name or Path(path).name
    handle = registry.register_file(
        registry.new_id(shown),
        path,
        metadata=_described(shown, mime, durable),
        type=type,
        name=shown,
        ttl_seconds=ttl_seconds,
    )
    ctx.list_artifact(handle.artifact())
    return handle


def store_bytes(
    content: bytes,
    *,
    name: str | None = None,
    type: str | None = None,
    mime: str | None = None,
    ttl_seconds: float | None = None,
    durable: bool = False,
) -> ResourceHandle:
    """Keep bytes as a file and list it. Fewer than the manifest's `inlineThresholdBytes` travel in the result instead.

    Raises:
        ResourceError: what was given makes no sense.
    """
    ctx = current()
    registry = ctx.needed_registry()
    shown = name or "file"
    if len(content) >= registry.defaults.inline_threshold_bytes:
        path = registry.fresh_path(shown)
        path.write_bytes(content)
        return store_file(
            path, name=shown, type=type, mime=mime, ttl_seconds=ttl_seconds, durable=durable
        )
    handle = ResourceHandle(
        registry.new_id(shown),
        type or registry.defaults.type,
        ctx.worker_id,
        ctx.run_id,
        metadata=_described(shown, mime),
        size_bytes=len(content),
        content=bytes(content),
    )
    ctx.list_artifact(handle.artifact())
    return handle


def _described(name: str, mime: str | None, durable: bool = False) -> dict[str, Any]:
    import mimetypes  # not at the top: a cold host starts faster without it

    found: dict[str, Any] = {"mime": mime or mimetypes.guess_type(name)[0] or DEFAULT_MIME}
    found["name"] = name
    return {**found, "durable": True} if durable else found
