"""What people and other systems tell a run: signals and decisions, as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Raw

from astraflow.core.contract.base import (
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    no_text,
)

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_COMMENT_CHARS = 4_096
OBJECT: JsonObject = {"type": "object"}


def _null() -> Raw:
    return Raw(b"null")


def _empty() -> Raw:
    return Raw(b"{}")


class SignalRequest(RequestBody, frozen=True, kw_only=True):
    """A message for the nodes of a run that wait for it."""

    payload: Annotated[
        Raw, doc("What the node gives on: any JSON, at most 256 KiB.", extra_json_schema={})
    ] = msgspec.field(default_factory=_null)

    EXAMPLE: ClassVar[JsonObject] = {"payload": {"paid": 42}}


class SignalAccepted(RestObject, frozen=True, kw_only=True):
    """The message is stored."""

    run_id: Annotated[str, doc("The run.")]
    name: Annotated[str, doc("The name that nodes wait for.")]


class SignalAddress(RestObject, frozen=True, kw_only=True):
    """An address at which a system outside sends a signal without a token."""

    name: Annotated[str, doc("The name that nodes wait for.")]
    url: Annotated[str, doc("Where to send it: whoever knows it can, so treat it as a secret.")]
    open: Annotated[bool, doc("Whether a node waits for it, or may wait for it yet.")]


class SignalAddressPage(Page[SignalAddress], frozen=True, kw_only=True):
    """The addresses of a run, by name."""


class ApprovalDecision(RequestBody, frozen=True, kw_only=True):
    """A person's decision."""

    approved: Annotated[bool, doc("`false`: it is rejected.")]
    comment: Annotated[str, doc("Why.", max_length=MAX_COMMENT_CHARS)] = msgspec.field(
        default_factory=no_text
    )
    values: Annotated[
        Raw, doc("What was filled in; it must fit the form.", extra_json_schema=OBJECT)
    ] = msgspec.field(default_factory=_empty)
    scope: Annotated[
        str,
        doc(
            "`scopePath` of the node, if it is inside of a map or of a called workflow.",
            max_length=4_096,
        ),
    ] = msgspec.field(default_factory=no_text)

    EXAMPLE: ClassVar[JsonObject] = {"approved": True, "comment": "looks right"}


class OpenApproval(RestObject, frozen=True, kw_only=True):
    """A node that waits for a person."""

    run_id: Annotated[str, doc("The run.")]
    node_id: Annotated[str, doc("The node.")]
    scope_path: Annotated[str | None, doc("Where the node is, if it is inside of others.")] = None
    label: Annotated[str, doc("Its label.")]
    message: Annotated[str, doc("What is asked.")]
    roles: Annotated[list[str], doc("Who may decide; empty: whoever may start runs.")]
    since: Annotated[Timestamp | None, doc("Since when it waits.")]
    until: Annotated[Timestamp | None, doc("Its deadline.")] = None
    form: Annotated[JsonObject | None, doc("A JSON Schema of what is to be filled in.")] = None


class ListApprovals(PageQuery, frozen=True, kw_only=True):
    """A page of the open approvals of the tenant."""


class OpenApprovalPage(Page[OpenApproval], frozen=True, kw_only=True):
    """Open approvals, oldest run first."""
