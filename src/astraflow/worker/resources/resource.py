"""One resource of a worker, and the validation of its fields."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple

import msgspec

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.limits import NAME_CHARS
from astraflow.core.protocol.wire import is_resource_id
from astraflow.core.timestamps import iso

Kind = Literal["file", "memory"]
State = Literal["ready", "evicting", "evicted", "released"]

SESSION_PREFIX: Final = "session:"
"""A scope that begins so outlives runs, and whoever is of the tenant may use what is in it."""
MAX_TTL_S: Final = 366 * 86_400
"""As in the manifest: who asks for more does not mean it, and a date of the year 9999 would never be cleaned up."""
METADATA_BYTES: Final = 16 * 1024
"""It goes with every reference, in every event."""
LOCAL_METADATA: Final = "path"
"""Of one machine only: told to the hosts of this worker and to nobody else."""

_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,63}")


class Lessee(NamedTuple):
    """The holder of a lease: an attempt, or the worker itself, which has no run and may lease everything."""

    run_id: RunId | None
    task_id: TaskId
    attempt: int

    @classmethod
    def of(cls, dispatch: business.Dispatch) -> Lessee:
        return cls(dispatch.run_id, dispatch.task_id, dispatch.attempt)


WORKER: Final = Lessee(None, TaskId(""), 0)


class Maker(msgspec.Struct, frozen=True):
    """The creator of a resource: attempt, node, the package whose host keeps it, and the lane that is told of it."""

    lessee: Lessee
    node_id: str | None = None
    package: business.PackageId | None = None
    lane: int = 0


class LocalResource(msgspec.Struct, kw_only=True):
    """What is written down of a resource. Times are wall-clock milliseconds.

    `token` names one registration: its folder, or its object in a host. An id can be registered again, a token not.
    """

    token: str
    resource_id: str
    type: str
    kind: Kind
    worker_id: str
    scope: str
    run_id: RunId | None = None
    node_id: str | None = None
    package: business.PackageId | None = None
    lane: int = 0
    """Where it was made, and is known."""
    state: State = "ready"
    metadata: dict[str, Any] = {}
    size_bytes: int = 0
    checksum: str | None = None
    name: str = ""
    mtime_ns: int = 0
    created_at: int = 0
    expires_at: int = 0
    ttl_ms: int = 0
    used_at: int = 0
    listed: bool = False
    """Some result has returned it as an artifact: it stays to the end of its time, whatever becomes of its run."""
    in_use_count: int = 0
    gone_at: int | None = None
    reason: str = ""
    group: str = ""
    """The first registration of the same object in its host; registrations of one group take room once."""

    @property
    def room_key(self) -> str:
        """What takes room: the file, or the object however often it is registered."""
        return self.group or self.token

    @property
    def is_gone(self) -> bool:
        return self.gone_at is not None

    @property
    def is_session(self) -> bool:
        return self.scope.startswith(SESSION_PREFIX)

    def may_use(self, run_id: RunId | None) -> bool:
        """Attempts of its run may; anybody of the tenant may use what is of a session, or listed as an artifact."""
        return (
            run_id is None or run_id in (self.run_id, self.scope) or self.is_session or self.listed
        )

    def may_replace(self, run_id: RunId | None) -> bool:
        return run_id is None or run_id in (self.run_id, self.scope) or self.is_session

    def told_metadata(self) -> msgspec.Raw:
        told = {key: value for key, value in self.metadata.items() if key != LOCAL_METADATA}
        return msgspec.Raw(msgspec.json.encode(told))

    def artifact(self) -> business.ResultArtifact:
        return business.ResultArtifact(
            self.resource_id,
            self.worker_id,
            self.type,
            self.size_bytes,
            iso(self.expires_at),
            metadata=self.told_metadata(),
        )

    def event(self, state: str | None = None) -> business.ResourceEvent:
        """Everything about it, each time: only the newest event of a resource is sure to arrive."""
        return business.ResourceEvent(
            self.resource_id,
            msgspec.convert(state or self.state, _EventState),
            self.size_bytes,
            iso(self.expires_at),
            self.type,
            self.scope,
            self.run_id,
            self.node_id,
            self.package if self.kind == "memory" else None,
            iso(self.created_at),
            self.told_metadata(),
        )


_EventState = Literal["ready", "touched", "evicting", "evicted", "released"]


def invalid(message: str) -> errors.Refused:
    return errors.Refused(errors.RESOURCE_INVALID, message)


def check_id(resource_id: str) -> None:
    """Raises:
    Refused: it is none, and no scheduler would take it.
    """
    if is_resource_id(resource_id):
        return
    raise invalid(
        f"a resource id has 1 to {NAME_CHARS} printable characters and no empty, . or .. part: "
        f"{resource_id[:NAME_CHARS]!a}"
    )


def check_type(type_name: str) -> None:
    """Raises:
    Refused: it is none.
    """
    if not _TYPE.fullmatch(type_name):
        raise invalid(
            "the type of a resource is a letter and up to 63 letters, digits or _.:/- after it: "
            f"{type_name[:64]!a}"
        )


def check_metadata(metadata: object) -> dict[str, Any]:
    """Raises:
    Refused: it is no object of JSON, or too much.
    """
    try:
        raw = msgspec.json.encode(metadata)
        found = msgspec.json.decode(raw, type=dict[str, Any])
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise invalid(f"metadata must be an object of JSON: {problem}") from problem
    if len(raw) > METADATA_BYTES:
        raise invalid(f"metadata may have {METADATA_BYTES} bytes: it has {len(raw)}")
    found.pop(LOCAL_METADATA, None)
    return found


def refused(code: errors.Code, message: str, value: object) -> errors.Refused:
    return errors.Refused(code, f"{message}: {value}")
