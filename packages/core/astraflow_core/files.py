"""Files as resources: written once, found again by id on the worker that holds them."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
import uuid
from pathlib import Path
from typing import Any

from astraflow_sdk import ConfigurationError, Context, InfrastructureError, NodeError, node

__all__ = ["file", "read_file"]

FILE_BYTES = 1024**3
"""The largest file that `core.file` makes."""
PIECE_BYTES = 1024 * 1024

# What an id of ours looks like. It is also a path below the folder, so nothing else is let through.
_ID = re.compile(r"[0-9a-zA-Z_-]{1,100}/[0-9a-f]{32}/[0-9a-zA-Z_-][0-9a-zA-Z._-]{0,99}")
_UNSAFE = re.compile(r"[^0-9a-zA-Z._-]")


class _Missing(NodeError):
    category = "DATA_QUALITY"
    default_code = "E.RESOURCE.MISSING"


class _Invalid(NodeError):
    category = "CONFIGURATION"
    default_code = "E.RESOURCE.INVALID"


@node("core.file")
def file(
    ctx: Context, name: str = "file", sizeBytes: int | None = None, text: str | None = None
) -> dict[str, Any]:
    """Make a file: of a text, or of so many bytes."""
    pieces = [text.encode()] if isinstance(text, str) else _pieces(sizeBytes)
    shown = _UNSAFE.sub("_", str(name)).lstrip(".")[:100] or "file"
    scope = _UNSAFE.sub("_", ctx.run_id).replace(".", "_")[:100]
    resource_id = f"{scope}/{uuid.uuid4().hex}/{shown}"
    path = _path(ctx, resource_id)
    size, digest = _write(path, pieces)
    mime = mimetypes.guess_type(shown)[0] or "application/octet-stream"
    ctx.add_artifact(
        resource_id, "file", size_bytes=size, metadata={"mime": mime, "sha256": digest}
    )
    reference = {"resourceId": resource_id, "workerId": ctx.worker_id, "type": "file"}
    return {"file": {"resourceRef": reference}}


@node("core.read_file")
def read_file(ctx: Context, file: Any = None) -> dict[str, Any]:
    """The size and the digest of a file that another node made."""
    reference = file.get("resourceRef") if isinstance(file, dict) else None
    resource_id = reference.get("resourceId") if isinstance(reference, dict) else None
    if not isinstance(resource_id, str) or not _ID.fullmatch(resource_id):
        raise _Invalid(
            "file must be a reference to a file: {resourceRef: {resourceId, workerId, type}}"
        )
    size, digest = 0, hashlib.sha256()
    try:
        with open(_path(ctx, resource_id), "rb") as content:
            while piece := content.read(PIECE_BYTES):
                ctx.raise_if_cancelled()
                size += len(piece)
                digest.update(piece)
    except FileNotFoundError as problem:
        raise _Missing(f"this worker has no such file: {resource_id}") from problem
    return {"sizeBytes": size, "sha256": digest.hexdigest()}


def _pieces(size: int | None) -> Any:
    if size is None:
        raise ConfigurationError("give the file a text or sizeBytes")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= FILE_BYTES:
        raise ConfigurationError(
            f"sizeBytes must be a whole number from 0 to {FILE_BYTES}: {size!r}"
        )
    whole = bytes(min(PIECE_BYTES, size))
    return (whole[: min(PIECE_BYTES, size - at)] for at in range(0, size, PIECE_BYTES))


def _path(ctx: Context, resource_id: str) -> Path:
    return ctx.data_dir / "resources" / resource_id


def _write(path: Path, pieces: Any) -> tuple[int, str]:
    """Write beside, then rename: a file with its name is whole."""
    size, digest = 0, hashlib.sha256()
    unfinished = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True)
        with open(unfinished, "xb") as content:
            for piece in pieces:
                size += content.write(piece)
                digest.update(piece)
            content.flush()
            os.fsync(content.fileno())
        unfinished.rename(path)
    except OSError as problem:
        unfinished.unlink(missing_ok=True)
        raise InfrastructureError(f"the file cannot be written: {problem.strerror}") from problem
    return size, digest.hexdigest()
