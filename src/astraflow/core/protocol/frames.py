"""Making frames: every envelope that one peer sends comes from its `FrameMaker`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.protocol import control
from astraflow.core.protocol.wire import AckInfo, Envelope

if TYPE_CHECKING:
    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.wire import Sender, Unreadable


class FrameMaker:
    """Knows who sends, and where ids come from."""

    __slots__ = ("ids", "sender", "tenant")

    def __init__(self, tenant: str, sender: Sender, ids: IdSource) -> None:
        self.tenant = tenant
        self.sender = sender
        self.ids = ids

    def make(
        self,
        frame_type: str,
        payload: object,
        corr: str | None = None,
        ack: AckInfo | None = None,
        frame_id: str | None = None,
    ) -> Envelope:
        """A frame; with `frame_id` one that was made before and keeps its id."""
        if frame_id is None:
            frame_id = self.ids.new()
        return Envelope(
            frame_type, frame_id, "", self.tenant, self.sender, payload, corr, None, ack
        )

    def asking(self, frame_type: str, payload: object) -> Envelope:
        """A frame that asks for its own acknowledgement."""
        return self.make(frame_type, payload, None, AckInfo(True))

    def error(self, frame_id: str, unreadable: Unreadable) -> Envelope:
        """The answer to a frame that cannot be used."""
        return self.make(
            control.ERROR,
            control.ControlError(
                frame_id, unreadable.code.code, unreadable.message, unreadable.pointer or None
            ),
        )
