"""`ResourceHandle`: a resource of the worker, as a handler uses it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from astraflow_sdk.errors import NodeError

UTC = timezone.utc  # noqa: UP017  (`datetime.UTC` came with 3.11)


class ResourceError(NodeError):
    """A resource is not available, or the request is invalid. The code says which."""

    category = "CONFIGURATION"
    default_code = "E.RESOURCE.INVALID"

    def __init__(self, message: str, *, category: str = "CONFIGURATION", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.category = category


def invalid(message: str) -> ResourceError:
    return ResourceError(message, retryable=False)


def denied(message: str) -> ResourceError:
    return ResourceError(message, retryable=False, code="E.RESOURCE.DENIED")


@dataclass(eq=False)
class ResourceHandle:
    """A reference to a resource. As a context manager it is released at the end of the block."""

    resource_id: str
    type: str
    worker_id: str
    scope: str | None = None
    state: str = "ready"
    metadata: dict[str, Any] = field(default_factory=dict)
    """What its maker said about it. Of a file also `path`, `name` and `sha256`."""
    size_bytes: int = 0
    checksum: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    in_use_count: int = 0
    run_id: str | None = None
    node_id: str | None = None
    value: Any = None
    """The object itself, if it is kept in memory."""
    content: bytes | None = None
    """The bytes of a small value that travels inline: there is no resource then."""
    token: str = ""
    give_back: Callable[[str], None] | None = None

    @property
    def inline(self) -> bool:
        return self.content is not None

    @property
    def path(self) -> Path | None:
        """Where the file is. Read it, do not change it."""
        path = self.metadata.get("path")
        return Path(path) if path is not None else None

    def read_bytes(self) -> bytes:
        """All of a file or of an inline value. Large files are better read in pieces, from `path`.

        Raises:
            ResourceError: it is an object.
        """
        if self.content is not None:
            return self.content
        if self.path is None:
            raise invalid(f"an object has no bytes: {self.resource_id}")
        return self.path.read_bytes()

    def ref(self) -> dict[str, Any]:
        """What to return in a result, so that it follows the edges to whoever uses it."""
        if self.content is not None:
            told = {key: value for key, value in self.metadata.items() if key != "path"}
            return {"inline": {**told, "type": self.type, "base64": _base64(self.content)}}
        return {
            "resourceRef": {
                "resourceId": self.resource_id,
                "workerId": self.worker_id,
                "type": self.type,
            }
        }

    def artifact(self, *, inline: bool | None = None) -> dict[str, Any]:
        """The handle as a result lists it.

        Raises:
            ResourceError: an object, or a large file, is wanted inline.
        """
        is_inline = self.inline if inline is None else inline
        metadata = {key: value for key, value in self.metadata.items() if key != "path"}
        if is_inline:
            metadata["base64"] = _base64(self.read_bytes())
        artifact: dict[str, Any] = {
            "resource_id": self.resource_id,
            "worker_id": self.worker_id,
            "type": self.type,
            "size_bytes": self.size_bytes,
            "inline": is_inline,
            "metadata": metadata,
        }
        if self.expires_at is not None:
            artifact["expires_at"] = iso(self.expires_at)
        return artifact

    def __enter__(self) -> ResourceHandle:
        return self

    def __exit__(self, *_: object) -> None:
        if self.give_back is not None:
            self.give_back(self.resource_id)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def iso(at: datetime) -> str:
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def from_ms(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def to_ms(at: datetime) -> int:
    """Raises ResourceError: it has no zone, or is beyond what a worker counts to."""
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise invalid(f"expires_at must be a datetime with a time zone: {at!r}")
    try:
        return int(at.timestamp() * 1000)
    except (OverflowError, ValueError) as problem:
        raise invalid(f"expires_at is no time that can be used: {at!r}") from problem
