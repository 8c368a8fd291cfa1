"""What a worker is told that has come to a scheduler which does not own its tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.codec import encode
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.wire import Sender

if TYPE_CHECKING:
    from astraflow.core.ids import IdSource


class _Opening(msgspec.Struct):
    """The tenant and the lane in the first frame of a connection; of the wrong type they are none."""

    tenant: object = None
    payload: object = None


_decode: Final = msgspec.json.Decoder(_Opening).decode


def claimed_place(raw: bytes) -> tuple[str | None, int]:
    """The tenant and the lane that the first frame of a connection names; no tenant if it is no frame, or of protocol
    1."""
    try:
        opening = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, 0
    lane = opening.payload.get("lane") if isinstance(opening.payload, dict) else None
    is_lane = isinstance(lane, int) and 0 <= lane < limits.MAX_LANES
    tenant = opening.tenant if isinstance(opening.tenant, str) else None
    return tenant, lane if is_lane and isinstance(lane, int) else 0


def moved_frame(scheduler_id: str, tenant: str, location: str, ids: IdSource, ts: str) -> bytes:
    """`control.reset E.SESSION.MOVED`: connect to `location`."""
    code = errors.SESSION_MOVED
    maker = FrameMaker(tenant, Sender("scheduler", scheduler_id), ids)
    reset = control.Reset(code.code, code.says, None, location)
    return encode(maker.make(control.RESET, reset), ts)
