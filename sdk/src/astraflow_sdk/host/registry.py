"""The resource registry of one attempt in a host: moves files, keeps objects, and informs the worker in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraflow_sdk.context import Context
from astraflow_sdk.errors import ConfigurationError
from astraflow_sdk.file_store import FileStore
from astraflow_sdk.handles import ResourceError, ResourceHandle, from_ms, invalid
from astraflow_sdk.host.channel import encode_json
from astraflow_sdk.resources import Registration, ResourceRegistry

if TYPE_CHECKING:
    from astraflow_sdk.host.process import NodeHost

TOLD_CHARS = 64 * 1024
"""Of one frame: the worker takes 16 KiB of metadata. What is far beyond is not sent to be refused."""
REASON_CHARS = 1024


class HostRegistry(ResourceRegistry):
    """The `ctx.resource_registry` of handlers."""

    def __init__(self, ctx: Context, host: NodeHost, filing: FileStore) -> None:
        super().__init__(ctx.run_id, host.worker_id, filing, host.defaults)
        self._ctx = ctx
        self._host = host
        for told in ctx.told_leases:
            handle = self._told(told)
            self._hold(handle)
            self.leased[handle.resource_id] = handle

    def _keep(self, making: Registration) -> None:
        handle = making.handle
        frame: dict[str, Any] = {
            "resource_id": handle.resource_id,
            "kind": "memory" if making.filed is None else "file",
            "resource_type": handle.type,
            "token": handle.token,
            "scope": handle.scope,
            "metadata": {key: one for key, one in handle.metadata.items() if key != "path"},
            "size_bytes": handle.size_bytes,
        }
        if making.ttl_s is not None:
            frame["ttl_s"] = making.ttl_s
        if making.expires_at_ms is not None:
            frame["expires_at"] = making.expires_at_ms
        if making.filed is None:
            self._keep_object(making, frame)
            return
        frame["name"] = making.filed.path.name
        frame["sha256"] = making.filed.sha256
        frame["mtime_ns"] = making.filed.mtime_ns
        self._post("register", frame)

    def _keep_object(self, making: Registration, frame: dict[str, Any]) -> None:
        handle = making.handle
        if not self._host.objects.may_keep:
            raise invalid(
                "this package runs each attempt in a process of its own (isolation: attempt), which "
                f"ends with it: nothing can be kept in memory: {handle.resource_id}"
            )
        shares = self._host.objects.add(handle.token, handle.value, making.close)
        if shares is not None:
            frame["shares"] = shares
        try:
            self._post("register", frame)
        except ResourceError:
            self._host.objects.drop(handle.token)
            raise

    def _fetch(self, resource_id: str) -> ResourceHandle:
        self._check_running()
        try:
            answer = self._host.ask(self._ctx, {"type": "lease", "resource_id": resource_id})
        except ConfigurationError:
            raise invalid(
                "this resource did not come with the attempt, and the loop cannot wait for it: give "
                "the node a reference to it, or await asyncio.to_thread(resource.lease, …): "
                f"{resource_id}"
            ) from None
        error = answer.get("error")
        if error is not None:
            raise ResourceError(
                error.get("message", ""),
                category=error["category"],
                code=error["code"],
                retryable=error.get("retryable"),
            )
        return self._told(answer["handle"])

    def _say(self, action: str, **fields: Any) -> None:
        said = {key: value for key, value in fields.items() if value is not None}
        if "reason" in said:
            said["reason"] = said["reason"][:REASON_CHARS]
        self._post("use", {"action": action, **said})

    def _post(self, kind: str, fields: dict[str, Any]) -> None:
        self._check_running()
        head = {"type": kind, "task_id": self._ctx.task_id, "attempt": self._ctx.attempt}
        try:
            text = encode_json({**head, **fields})
        except (TypeError, ValueError, RecursionError) as problem:
            raise invalid(f"metadata must be an object of JSON: {problem}") from problem
        if len(text) > TOLD_CHARS:
            raise invalid(f"what is said about a resource may have {TOLD_CHARS} characters in all")
        self._host.post(text)

    def _check_running(self) -> None:
        if self._ctx.state is None:
            raise invalid("the attempt has ended: it can make and use no resources any more")

    def _told(self, told: dict[str, Any]) -> ResourceHandle:
        metadata = dict(told.get("metadata") or {})
        if told.get("path") is not None:
            metadata["path"] = told["path"]
        return ResourceHandle(
            told["resource_id"],
            told["type"],
            self._host.worker_id,
            told["scope"],
            told.get("state", "ready"),
            metadata,
            told.get("size_bytes", 0),
            told.get("checksum"),
            from_ms(told.get("created_at", 0)),
            from_ms(told.get("expires_at", 0)),
            told.get("in_use_count", 0),
            told.get("run_id"),
            told.get("node_id"),
            self._host.objects.find(told["token"]),
            token=told["token"],
        )
