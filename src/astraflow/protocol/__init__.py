"""The session protocol: frames, codec, windows, and the session machines of both peers."""

from __future__ import annotations

from astraflow.protocol.codec import BadFrame, Unsendable, check_outgoing, decode, encode
from astraflow.protocol.window import Ack, QueueFull, ReceiveWindow, SendWindow
from astraflow.protocol.wire import AckInfo, AttemptRef, Envelope, Sender, Unreadable

__all__ = [
    "Ack",
    "AckInfo",
    "AttemptRef",
    "BadFrame",
    "Envelope",
    "QueueFull",
    "ReceiveWindow",
    "SendWindow",
    "Sender",
    "Unreadable",
    "Unsendable",
    "check_outgoing",
    "decode",
    "encode",
]
