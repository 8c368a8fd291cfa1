"""The session protocol: frames, codec, windows, and the session machines of both peers.

The two peers are `worker_session.WorkerSession` and `gateway.Gateway`. Their events share names
(`Delivered`, `Acked`, …), so take those from the module of the peer.
"""

from __future__ import annotations

from astraflow.core.protocol.codec import BadFrame, Unsendable, check_outgoing, decode, encode
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.events import GatewaySettings, Principal
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.session_states import SessionState
from astraflow.core.protocol.window import Ack, QueueFull, ReceiveWindow, SendWindow
from astraflow.core.protocol.wire import AckInfo, AttemptRef, Envelope, Sender, Unreadable
from astraflow.core.protocol.worker_events import Credential, SessionSettings, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession

__all__ = [
    "Ack",
    "AckInfo",
    "AttemptRef",
    "BadFrame",
    "Credential",
    "Envelope",
    "Gateway",
    "GatewaySettings",
    "NoSession",
    "Principal",
    "QueueFull",
    "ReceiveWindow",
    "SendWindow",
    "Sender",
    "SessionSettings",
    "SessionState",
    "Unreadable",
    "Unsendable",
    "WorkerIdentity",
    "WorkerSession",
    "check_outgoing",
    "decode",
    "encode",
]
