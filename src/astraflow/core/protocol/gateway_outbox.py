"""What a gateway puts out: frames and closings for connections, events for the engine, and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.ids import NO_SESSION, SessionId
from astraflow.core.protocol.events import CloseConnection, GatewayEvent, SendFrame, SessionAudited
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.wire import Sender

if TYPE_CHECKING:
    from astraflow.core.errors import Code
    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.connection_table import PeerConnection
    from astraflow.core.protocol.wire import Envelope, Unreadable


class GatewayOutbox:
    """Collects output until it is taken. All parts of a gateway write into the same one."""

    __slots__ = ("_ids", "_sender", "counters", "events", "output")

    def __init__(self, scheduler_id: str, ids: IdSource) -> None:
        self.output: list[SendFrame | CloseConnection] = []
        self.events: list[GatewayEvent] = []
        self.counters: dict[str, int] = {}
        self._sender = Sender("scheduler", scheduler_id)
        self._ids = ids

    def take_output(self) -> list[SendFrame | CloseConnection]:
        output, self.output = self.output, []
        return output

    def take_events(self) -> list[GatewayEvent]:
        events, self.events = self.events, []
        return events

    def drop_events_of(self, session_id: SessionId) -> None:
        self.events = [event for event in self.events if event.session_id != session_id]

    def maker_for(self, tenant: str) -> FrameMaker:
        # Not kept: a stranger may name any tenant. A session keeps its own.
        return FrameMaker(tenant, self._sender, self._ids)

    def put(self, connection: PeerConnection, envelope: Envelope) -> None:
        """Send a frame that is made already."""
        self.output.append(SendFrame(connection.conn, envelope))

    def put_new(self, connection: PeerConnection, frame_type: str, payload: object) -> None:
        """Send an unsequenced frame."""
        self.put(connection, self.maker_for(connection.tenant).make(frame_type, payload))

    def put_error(self, connection: PeerConnection, frame_id: str, unreadable: Unreadable) -> None:
        """Answer a frame that cannot be used."""
        self.put(connection, self.maker_for(connection.tenant).error(frame_id, unreadable))

    def audit(
        self,
        connection: PeerConnection,
        action: str,
        code: Code | None,
        frame_id: str | None = None,
    ) -> None:
        session, principal = connection.session, connection.principal
        self.events.append(
            SessionAudited(
                NO_SESSION if session is None else session.session_id,
                connection.tenant,
                connection.worker,
                action,
                None if code is None else code.code,
                None if principal is None else principal.subject,
                frame_id,
            )
        )

    def count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1
