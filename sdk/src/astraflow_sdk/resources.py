"""The registry of resources as handlers use it (seed 003 §3), and one that needs no worker, for tests.

All calls return at once, also in `async` handlers. Checks that only the worker can make (quota, access) happen while
the handler continues; a refusal becomes the failure of the attempt.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from astraflow_sdk.file_store import FileStore, StoredContent, new_token, safe_name
from astraflow_sdk.handles import UTC, ResourceError, ResourceHandle, denied, invalid, to_ms

MAX_TTL_S = 366 * 86_400
ID_CHARS = 256
INLINE_BYTES = 1024 * 1024
"""The largest value that may be returned inline: a result has room for it and more."""
SESSION_PREFIX = "session:"
MAX_SIZE = 2**53
"""What every reader of JSON can count to."""

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,63}")


@dataclass(frozen=True)
class Defaults:
    """`resources.defaults` of the manifest."""

    inline_threshold_bytes: int = 0
    type: str = "file"
    ttl_s: float | None = None

    @staticmethod
    def of(manifest: Mapping[str, Any]) -> Defaults:
        resources = manifest.get("resources")
        said = (resources.get("defaults") or {}) if isinstance(resources, dict) else {}
        return Defaults(
            int(said.get("inlineThresholdBytes") or 0),
            str(said.get("type") or "file"),
            said.get("ttlSeconds"),
        )


@dataclass
class Registration:
    """The fields of a new resource beside its handle."""

    handle: ResourceHandle
    close: Callable[[], Any] | None = None
    filed: StoredContent | None = None
    ttl_s: float | None = None
    expires_at_ms: int | None = None


class ResourceRegistry:
    """Resources of one attempt: those that came with it, those it makes, those it leases.

    May be used from threads. What a place to keep them must do is in the methods that begin with `_`.
    """

    def __init__(
        self,
        run_id: str,
        worker_id: str,
        filing: FileStore,
        defaults: Defaults = Defaults(),  # noqa: B008  (it is frozen)
    ) -> None:
        self.defaults = defaults
        self.leased: dict[str, ResourceHandle] = {}
        """What came with the attempt."""
        self._run_id = run_id
        self._worker_id = worker_id
        self._filing = filing
        self._held: dict[str, ResourceHandle] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    # -- making -----------------------------------------------------------------------------

    def register(
        self,
        scope: str | None,
        resource_id: str,
        type: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        value: Any = None,
        close: Callable[[], Any] | None = None,
        size_bytes: int | None = None,
        expires_at: datetime | None = None,
        ttl_seconds: float | None = None,
    ) -> ResourceHandle:
        """Keep an object in this process. `close` is called without arguments when it goes, and may be `async`.

        Raises:
            ResourceError: what was given makes no sense, or this package cannot keep objects.
        """
        handle = self._handle(scope, resource_id, type, metadata)
        handle.value = value
        handle.size_bytes = _size(size_bytes)
        handle.token = new_token()
        return self._add(Registration(handle, close, None, *self._life(ttl_seconds, expires_at)))

    def register_file(
        self,
        resource_id: str,
        file_path: str | os.PathLike[str],
        scope: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        type: str | None = None,
        name: str | None = None,
        expires_at: datetime | None = None,
        ttl_seconds: float | None = None,
    ) -> ResourceHandle:
        """Give a file from below `ctx.data_dir` to the worker: it is moved, `path` of the handle says where to.

        It is read once for its digest. In an `async` handler, call this with `asyncio.to_thread` for large files.

        Raises:
            ResourceError: what was given makes no sense.
            InfrastructureError: the disk does not do it.
        """
        handle = self._handle(scope, resource_id, type or self.defaults.type, metadata)
        life = self._life(ttl_seconds, expires_at)
        filed = self._filing.take(file_path, name)
        handle.token, handle.size_bytes = filed.token, filed.size_bytes
        handle.checksum = filed.sha256
        found = {"name": filed.path.name, **handle.metadata}
        handle.metadata = {**found, "sha256": filed.sha256, "path": str(filed.path)}
        return self._add(Registration(handle, None, filed, *life))

    def fresh_path(self, name: str = "file") -> Path:
        """Where a file can be written that shall be registered: alone in a folder."""
        return self._filing.fresh_path(name)

    def new_id(self, name: str) -> str:
        """An id that nobody else has."""
        run = safe_name(self._run_id).replace(".", "_")
        return f"{run}/{new_token()}/{safe_name(name)}"

    def _handle(
        self, scope: str | None, resource_id: str, type: str, metadata: Mapping[str, Any] | None
    ) -> ResourceHandle:
        check_id(resource_id)
        if not isinstance(type, str) or not _TYPE.fullmatch(type):
            raise invalid(f"the type of a resource is a word like file or browserSession: {type!r}")
        scope = scope or self._run_id
        check_id(scope)
        is_session = scope.startswith(SESSION_PREFIX) and len(scope) > len(SESSION_PREFIX)
        if scope != self._run_id and not is_session:
            raise invalid(f"the scope of a resource is its run or session:<name>: {scope!r}")
        return ResourceHandle(
            resource_id,
            type,
            self._worker_id,
            scope,
            metadata=dict(metadata or {}),
            created_at=datetime.now(UTC),
            in_use_count=1,
            run_id=self._run_id,
            give_back=self.release,
        )

    def _life(
        self, ttl_seconds: float | None, expires_at: datetime | None
    ) -> tuple[float | None, int | None]:
        if expires_at is not None:
            return None, _milliseconds(expires_at)
        ttl_s = self.defaults.ttl_s if ttl_seconds is None else ttl_seconds
        if ttl_s is not None and (isinstance(ttl_s, bool) or not 0 < ttl_s <= MAX_TTL_S):
            raise invalid(f"a resource lives more than 0 and at most {MAX_TTL_S} s: {ttl_s!r}")
        return ttl_s, None

    def _add(self, making: Registration) -> ResourceHandle:
        handle = making.handle
        now = datetime.now(UTC)
        if making.expires_at_ms is not None:
            handle.expires_at = datetime.fromtimestamp(making.expires_at_ms / 1000, UTC)
        elif making.ttl_s is not None:
            handle.expires_at = now + timedelta(seconds=making.ttl_s)
        self._keep(making)
        with self._lock:
            self._held[handle.resource_id] = handle
            self._counts[handle.resource_id] = 1
        return handle

    # -- using ------------------------------------------------------------------------------

    def lease(self, resource_id: str) -> ResourceHandle:
        """Use a resource until `release`, or the end of the attempt.

        One that neither came with the attempt nor was made by it is asked for: not possible on the loop of an `async`
        handler, use `asyncio.to_thread` there.

        Raises:
            ResourceError: it is not to be had; the code says why.
        """
        check_id(resource_id)
        with self._lock:
            handle = self._held.get(resource_id)
            if handle is not None:
                self._counts[resource_id] += 1
                return handle
        handle = self._fetch(resource_id)
        self._hold(handle)
        return handle

    def _hold(self, handle: ResourceHandle) -> None:
        with self._lock:
            handle.give_back = self.release
            self._held[handle.resource_id] = handle
            self._counts[handle.resource_id] = self._counts.get(handle.resource_id, 0) + 1

    def release(self, resource_id: str, *, reason: str | None = None) -> None:
        """Give a lease back. What is released once more than leased is an error.

        Raises:
            ResourceError: it is not leased.
        """
        check_id(resource_id)
        with self._lock:
            if resource_id not in self._counts:
                raise invalid(f"released, but not leased by this attempt: {resource_id}")
            self._counts[resource_id] -= 1
            is_last = self._counts[resource_id] == 0
            if is_last:
                del self._counts[resource_id]
                del self._held[resource_id]
        if is_last:
            self._say("release", resource_id=resource_id, reason=str(reason or ""))

    def release_scope(self, scope: str) -> None:
        """Let go of all objects of a run or session, and of its files that no result lists.

        Raises:
            ResourceError: the scope is another run's.
        """
        check_id(scope)
        if scope != self._run_id and not scope.startswith(SESSION_PREFIX):
            raise denied(f"this is the scope of another run: {scope!r}")
        self._say("release_scope", scope=scope)

    def evict(self, resource_id: str, *, reason: str | None = None) -> None:
        """It is of no more use: let it go when its last lease ends.

        Raises:
            ResourceError: it has no such id.
        """
        check_id(resource_id)
        self._say("evict", resource_id=resource_id, reason=str(reason or ""))

    def touch(self, resource_id: str, *, expires_at: datetime | None = None) -> None:
        """Let it live until then, or for its whole time from now.

        Raises:
            ResourceError: the time is past, or more than a year away.
        """
        check_id(resource_id)
        at_ms = None if expires_at is None else _milliseconds(expires_at)
        handle = self._held.get(resource_id)
        if handle is not None and expires_at is not None:
            handle.expires_at = max(handle.expires_at or expires_at, expires_at)
        self._say("touch", resource_id=resource_id, expires_at=at_ms)

    def list(self, *, scope: str | None = None, type: str | None = None) -> list[ResourceHandle]:
        """Those that this attempt holds."""
        with self._lock:
            return [
                one
                for one in self._held.values()
                if scope in (None, one.scope) and type in (None, one.type)
            ]

    def gc(self) -> None:
        """Ask for a cleanup now. It happens by itself at intervals."""
        self._say("gc")

    def to_artifact_descriptor(
        self, resource_id: str, inline: bool | None = None
    ) -> dict[str, Any]:
        """An entry for the `artifacts` of a result.

        Raises:
            ResourceError: this attempt does not hold it, or it is too large to be inline.
        """
        handle = self._held.get(resource_id)
        if handle is None:
            raise invalid(f"this attempt holds no such resource: {resource_id!r}")
        if inline and handle.size_bytes > INLINE_BYTES:
            raise invalid(f"more than {INLINE_BYTES} bytes cannot be inline: {resource_id}")
        return handle.artifact(inline=inline)

    # -- where they are kept ----------------------------------------------------------------

    def _keep(self, making: Registration) -> None:
        raise NotImplementedError

    def _fetch(self, resource_id: str) -> ResourceHandle:
        raise NotImplementedError

    def _say(self, action: str, **fields: Any) -> None:
        raise NotImplementedError


class LocalRegistry(ResourceRegistry):
    """A registry for tests of nodes: keeps everything in this process and below a folder, without a worker."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        run_id: str = "run",
        worker_id: str = "local",
        defaults: Defaults = Defaults(),  # noqa: B008  (it is frozen)
    ) -> None:
        source = Path(folder)
        filing = FileStore(source / "resources", source)
        super().__init__(run_id, worker_id, filing, defaults)
        self.kept: dict[str, Registration] = {}
        """All that was registered and is still there, by id."""

    def _keep(self, making: Registration) -> None:
        self._drop(making.handle.resource_id)
        self.kept[making.handle.resource_id] = making

    def _fetch(self, resource_id: str) -> ResourceHandle:
        making = self.kept.get(resource_id)
        if making is None:
            message = f"there is no such resource: {resource_id}"
            raise ResourceError(message, retryable=False, code="E.RESOURCE.MISSING")
        expires_at = making.handle.expires_at
        if expires_at is not None and expires_at.timestamp() <= time.time():
            message = f"the resource has expired: {resource_id}"
            raise ResourceError(message, retryable=False, code="E.RESOURCE.EXPIRED")
        return making.handle

    def _say(self, action: str, **fields: Any) -> None:
        if action == "evict":
            self._drop(fields["resource_id"])
        elif action == "release_scope":
            scope = fields["scope"]
            for making in [one for one in self.kept.values() if one.handle.scope == scope]:
                self._drop(making.handle.resource_id)

    def _drop(self, resource_id: str) -> None:
        """An `async` close is left to the test: there may be no loop here."""
        making = self.kept.pop(resource_id, None)
        if making is None:
            return
        if making.filed is not None:
            making.filed.path.unlink(missing_ok=True)
        elif making.close is not None:
            making.close()


def check_id(resource_id: object) -> None:
    """Raises ResourceError: it is no id."""
    if not isinstance(resource_id, str) or not 0 < len(resource_id) <= ID_CHARS:
        raise invalid(f"a resource id is a text of 1 to {ID_CHARS} characters")
    if not resource_id.isprintable() or {"", ".", ".."}.intersection(resource_id.split("/")):
        raise invalid(f"a resource id is printable and has no empty, . or .. part: {resource_id!a}")


def _milliseconds(at: datetime) -> int:
    at_ms = to_ms(at)
    now_ms = time.time() * 1000
    if not now_ms < at_ms <= now_ms + MAX_TTL_S * 1000:
        raise invalid(f"a resource ends in the future, at most {MAX_TTL_S} s from now: {at}")
    return at_ms


def _size(size_bytes: int | None) -> int:
    if size_bytes is None:
        return 0
    is_whole = isinstance(size_bytes, int) and not isinstance(size_bytes, bool)
    if not is_whole or not 0 <= size_bytes <= MAX_SIZE:
        raise invalid(f"size_bytes is a whole number from 0 to {MAX_SIZE}: {size_bytes!r}")
    return size_bytes
