"""Grants: what the owner of a tenant says of an event stream that another node is to serve.

A request for a stream that reaches another node is passed on to the owner like any other. The owner checks all that it
would check for a stream of its own: the credential and its role, the tenant, the run, the position, the rate. Its
answer is not the stream but what the stream is. The node that was asked serves it from its feed, and ends it with the
credential (`followed_credentials`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.ids import RunId
from astraflow.scheduler.mixed_events import MixedOpening

if TYPE_CHECKING:
    from astraflow.api.asgi import Scope

GRANT: Final = "astraflow.grant"
"""In the ASGI scope: another node asks for the grant of a stream."""
GRANT_HEADER: Final = b"x-astra-grant"
"""By which it asks. It counts only beside a valid hop."""
GRANT_TYPE: Final = b"application/x-astra-grant"
STREAMS: Final = frozenset({"/api/v1/events", "/api/v1/stream"})


class RunOpening(msgspec.Struct, frozen=True, tag="run"):
    """The stream of one run."""

    tenant: str
    run_id: RunId
    after: int
    first: bytes
    """What is sent before all events: a snapshot, if one was wanted."""


class TenantOpening(msgspec.Struct, frozen=True, tag="tenant"):
    """The stream of a tenant."""

    tenant: str
    after: dict[int, int]
    """By lane."""
    is_from_now: bool
    """Whether no last id was given: then nothing before its first event is missing."""


StreamOpening = RunOpening | TenantOpening | MixedOpening

encode_grant: Final = msgspec.msgpack.Encoder().encode
_opening: Final[msgspec.msgpack.Decoder[StreamOpening]] = msgspec.msgpack.Decoder(StreamOpening)


class BadGrant(Exception):
    """What came is no grant."""


def decode_grant(body: bytes) -> StreamOpening:
    """Raises: BadGrant."""
    try:
        return _opening.decode(body)
    except msgspec.DecodeError as error:
        raise BadGrant(str(error)) from error


def is_stream(scope: Scope) -> bool:
    """Whether a request asks for an event stream."""
    return scope["method"] == "GET" and scope["path"].rstrip("/") in STREAMS
