"""What a worker is told that has come to a scheduler which does not own its lane."""

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
    return _reset_frame(
        scheduler_id, tenant, control.Reset(code.code, code.says, None, location), ids, ts
    )


def refusal_frame(
    scheduler_id: str, tenant: str, code: errors.Code, reason: str, ids: IdSource, ts: str
) -> bytes:
    """`control.reset`: the worker cannot be served from here."""
    return _reset_frame(scheduler_id, tenant, control.Reset(code.code, reason), ids, ts)


def _reset_frame(
    scheduler_id: str, tenant: str, reset: control.Reset, ids: IdSource, ts: str
) -> bytes:
    maker = FrameMaker(tenant, Sender("scheduler", scheduler_id), ids)
    return encode(maker.make(control.RESET, reset), ts)
