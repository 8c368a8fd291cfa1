"""Files as resources: written once, found again by id on the worker that holds them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from astraflow_sdk import (
    Cancelled,
    ConfigurationError,
    Context,
    InfrastructureError,
    ResourceError,
    artifact,
    node,
    resource,
)

__all__ = ["file", "read_file"]

FILE_BYTES = 1024**3
"""The largest file that `core.file` makes."""
PIECE_BYTES = 1024 * 1024


@node("core.file")
def file(
    ctx: Context,
    name: str = "file",
    sizeBytes: int | None = None,
    text: str | None = None,
    durable: bool = False,
) -> dict[str, Any]:
    """Make a file: of a text, or of so many bytes. A durable one is copied to where it outlives its worker."""
    pieces = iter([text.encode()]) if isinstance(text, str) else _pieces(sizeBytes)
    path = artifact.fresh_path(str(name))
    _write(ctx, path, pieces)
    handle = artifact.store_file(path, name=str(name), type="file", durable=bool(durable))
    return {"file": handle.ref()}


@node("core.read_file")
def read_file(ctx: Context, file: Any = None) -> dict[str, Any]:
    """The size and the digest of a file that another node made."""
    size, digest = 0, hashlib.sha256()
    with resource.lease(file) as handle:
        if handle.path is None:
            raise ResourceError(f"this is no file: {handle.resource_id or handle.type}")
        with open(handle.path, "rb") as content:
            while piece := content.read(PIECE_BYTES):
                ctx.raise_if_cancelled()
                size += len(piece)
                digest.update(piece)
    return {"sizeBytes": size, "sha256": digest.hexdigest()}


def _pieces(size: int | None) -> Iterator[bytes]:
    if size is None:
        raise ConfigurationError("give the file a text or sizeBytes")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= FILE_BYTES:
        raise ConfigurationError(
            f"sizeBytes must be a whole number from 0 to {FILE_BYTES}: {size!r}"
        )
    whole = bytes(min(PIECE_BYTES, size))
    return (whole[: min(PIECE_BYTES, size - at)] for at in range(0, size, PIECE_BYTES))


def _write(ctx: Context, path: Path, pieces: Iterator[bytes]) -> None:
    try:
        with open(path, "xb") as content:
            for piece in pieces:
                ctx.raise_if_cancelled()
                content.write(piece)
    except OSError as problem:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise InfrastructureError(f"the file cannot be written: {problem.strerror}") from problem
    except Cancelled:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
