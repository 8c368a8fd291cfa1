"""One debug line for each frame: who sent what, with the fields of the older documents, and nothing of its payload.

A frame is the most frequent thing that a process handles. Whoever handles frames asks once, when it is made, whether
they are logged (`logs_frames`), and keeps the answer.
"""

from __future__ import annotations

import logging
from typing import Any, Literal

from astraflow.core.protocol.wire import Envelope


def logs_frames(log: logging.Logger) -> bool:
    """Whether the level of the log is low enough."""
    return log.isEnabledFor(logging.DEBUG)


def log_frame(log: logging.Logger, what: Literal["received", "sent"], frame: Envelope) -> None:
    """Write the line of a frame."""
    log.debug("frame %s: %s", what, frame.type, extra=fields_of(frame))


def fields_of(frame: Envelope) -> dict[str, Any]:
    """What a log line says of a frame. `code` is that of the error that it carries."""
    carried = frame.payload
    code = getattr(carried, "code", None) or getattr(getattr(carried, "error", None), "code", None)
    return {
        "tenant": frame.tenant,
        "sender": frame.sender.id,
        "type": frame.type,
        "id": frame.id,
        "corr": frame.corr,
        # Of a payload that cannot be read, it is a row of the catalogue.
        "code": getattr(code, "code", code),
        "seq": frame.seq,
    }
