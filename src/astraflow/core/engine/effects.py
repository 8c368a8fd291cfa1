"""Effects: what is done after the facts of a batch are committed. There is no other kind.

An effect names *what*; it holds no URL and calls nobody. The shell signs the URLs (`Signed`) between the commit and
`Engine.committed`, and performs the effects that are not frames (`ShellEffect`).
"""

from __future__ import annotations

import msgspec

from astraflow.core.errors import AstraflowError
from astraflow.core.fleet.resources import ResourceKey, ResourceRecord
from astraflow.core.fleet.versions import ActiveVersionRecord, PublishedVersion
from astraflow.core.fleet.workers import Channel, DrainIntent
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol.business import Dispatch, ExecCancel, NextResponse
from astraflow.core.protocol.wire import Wire
from astraflow.core.runs.callbacks import CallbackAnswer


class _Effect(msgspec.Struct, frozen=True):
    """The base of all effects."""


# -- frames --------------------------------------------------------------------------------------


class SendDispatch(_Effect, frozen=True):
    """Send a leased attempt to its worker, if it is still leased when the commit is done: on its session, or, for an
    HTTP pool, by the shell.

    `copies`: for each of `dispatch.resource_refs` the resource whose copy the worker fetches, if its own worker did not
    come back. The shell adds the URLs.
    """

    dispatch: Dispatch
    channel: Channel
    copies: tuple[ResourceRecord | None, ...] = ()
    workflow_id: str = ""
    """For an HTTP pool, as is `enqueued_at` (wall clock, milliseconds)."""
    enqueued_at: int = 0
    tenant: str = ""
    """Of a dispatch with secrets: `dispatch.secrets` has their names, and the shell adds the values."""
    refusal: tuple[str, str] | None = None
    """The code and the message, if the shell could not add them."""


class SendStop(_Effect, frozen=True):
    """Ask a worker to stop an attempt."""

    cancel: ExecCancel
    session_id: SessionId


class SendNextResponse(_Effect, frozen=True):
    """Answer a call of a middleware."""

    response: NextResponse
    session_id: SessionId


class AskWorker(_Effect, frozen=True):
    """Ask a worker for something about packages or resources. What asks for it is stored: after a new session it is
    asked for again."""

    session_id: SessionId
    frame_type: str
    payload: Wire


class SendInstall(_Effect, frozen=True):
    """Have a worker of a tenant install a version. The shell adds the URL of the archive."""

    session_id: SessionId
    tenant: str
    package: PublishedVersion
    url: str = ""


class SendExport(_Effect, frozen=True):
    """Have a worker upload the bytes of a resource. The shell adds the URL to upload to."""

    session_id: SessionId
    resource: ResourceKey
    url: str = ""


class SendDrain(_Effect, frozen=True):
    """Tell a worker to drain."""

    session_id: SessionId
    intent: DrainIntent


class AcceptSession(_Effect, frozen=True):
    """The register is reconciled and stored: open the session."""

    session_id: SessionId


# -- for the shell -------------------------------------------------------------------------------


class ReplyToCaller(_Effect, frozen=True):
    """Answer a caller of the API."""

    token: object
    run_id: RunId | None
    error: AstraflowError | None = None


class LearnManifest(_Effect, frozen=True):
    """A worker reports a package that it brought along."""

    tenant: str
    manifest: bytes


class CopyFailed(_Effect, frozen=True):
    """A worker cannot deliver the bytes of a resource: nobody need wait for them."""

    resource: ResourceKey
    why: str


class StoreValue(_Effect, frozen=True):
    """Store what a map has collected, and say where (`NoteValue`)."""

    tenant: str
    run_id: RunId
    task: int
    value: bytes


class ReadList(_Effect, frozen=True):
    """Read the stored list of a map from its copy, and say what it is (`NoteList`). Without a copy it is lost."""

    tenant: str
    run_id: RunId
    task: int
    resource_id: str
    copy: str | None


class Activated(_Effect, frozen=True):
    """Another version of a package is active."""

    active: ActiveVersionRecord


class AnswerCallback(_Effect, frozen=True):
    """Answer an HTTP worker."""

    token: object
    answer: CallbackAnswer | AstraflowError


class EndPush(_Effect, frozen=True):
    """An attempt of an HTTP pool is over: what is still sent of it is of no use."""

    task_id: TaskId
    attempt: int


ShellEffect = (
    ReplyToCaller
    | LearnManifest
    | CopyFailed
    | StoreValue
    | ReadList
    | Activated
    | AnswerCallback
    | EndPush
    | SendDispatch
)
"""What the shell does, not the sessions."""
Effect = (
    SendStop
    | SendNextResponse
    | AskWorker
    | SendInstall
    | SendExport
    | SendDrain
    | AcceptSession
    | ShellEffect
)
