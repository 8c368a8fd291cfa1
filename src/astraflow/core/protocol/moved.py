"""What a worker is told that has come to a scheduler which does not own its tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import control
from astraflow.core.protocol.codec import encode
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.wire import Sender

if TYPE_CHECKING:
    from astraflow.core.ids import IdSource


class _Opening(msgspec.Struct):
    """The tenant in the first frame of a connection; of the wrong type it is none."""

    tenant: object = None


_decode: Final = msgspec.json.Decoder(_Opening).decode


def claimed_tenant(raw: bytes) -> str | None:
    """The tenant that the first frame of a connection names; None if it is no frame, or of protocol 1."""
    try:
        tenant = _decode(raw).tenant
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return tenant if isinstance(tenant, str) else None


def moved_frame(scheduler_id: str, tenant: str, location: str, ids: IdSource, ts: str) -> bytes:
    """`control.reset E.SESSION.MOVED`: connect to `location`."""
    code = errors.SESSION_MOVED
    maker = FrameMaker(tenant, Sender("scheduler", scheduler_id), ids)
    reset = control.Reset(code.code, code.says, None, location)
    return encode(maker.make(control.RESET, reset), ts)
