"""WebSocket frames, cut from a stream of bytes (RFC 6455 §5), and what is sent: heads, and whole frames of a client.

Rule 1: what the standard does not allow is refused: reserved bits and opcodes, a continuation of nothing, a message
        inside of another, a mask where none may be or none where one must be.
Rule 2: a size is refused as soon as it is announced; nothing is gathered for it.
Rule 3: `next` gives one frame at a time, so that its caller decides how many of a noisy peer are handled in a turn.
"""

from __future__ import annotations

from typing import Final

from astraflow.core.compilation import mypyc_attr
from astraflow.core.protocol import limits
from astraflow.core.protocol.codec import BadFrame

TEXT: Final = 0x1
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA
NOTHING: Final = 0x0
"""A frame that asks for nothing: a part of a message, of which more is to come."""

_BINARY: Final = 0x2
_CONTINUATION: Final = 0x0
_FIN: Final = 0x80
_RESERVED: Final = 0x70
_OPCODE: Final = 0x0F
_MASKED: Final = 0x80
_LENGTH: Final = 0x7F
_SHORT: Final = 126
_MEDIUM: Final = 1 << 16
_WHOLE_TEXT: Final = _FIN | TEXT
_NO_CODE: Final = 1005
_KEEP_BYTES: Final = 1 << 16
_LONG: Final = 512
_EVERY: Final = int.from_bytes(range(256), "big")
_TABLES: Final = [
    (_EVERY ^ int.from_bytes(bytes([key]) * 256, "big")).to_bytes(256, "big") for key in range(256)
]

Frame = tuple[int, bytes]


def text_head(size: int) -> bytes:
    """The head of one unmasked text frame."""
    if size < _SHORT:
        return bytes((_WHOLE_TEXT, size))
    if size < _MEDIUM:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


def masked_text(text: bytes, key: bytes) -> bytes:
    """One text frame of a client, RFC 6455 §5.2 and §5.3. `key`: four bytes, new for every frame."""
    size = len(text)
    if size < _SHORT:
        head = bytes((_WHOLE_TEXT, _MASKED | size))
    elif size < _MEDIUM:
        head = b"\x81\xfe" + size.to_bytes(2, "big")
    else:
        head = b"\x81\xff" + size.to_bytes(8, "big")
    stream = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return head + key + (int.from_bytes(text, "big") ^ stream).to_bytes(size, "big")


def close_bytes(code: int) -> bytes:
    """An unmasked close frame."""
    return bytes((_FIN | CLOSE, 2)) + code.to_bytes(2, "big")


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameReader:
    """The reading side of one connection. `limit`: the bytes that a message may have; it may be raised."""

    __slots__ = ("_at", "_buffer", "_is_masked", "_parts", "_parts_bytes", "_parts_count", "limit")

    def __init__(self, limit: int, *, is_masked: bool) -> None:
        self.limit = limit
        self._is_masked = _MASKED if is_masked else 0
        self._buffer = bytearray()
        self._at = 0
        self._parts: list[bytes] | None = None
        self._parts_bytes = 0
        self._parts_count = 0

    def feed(self, raw: bytes) -> None:
        if self._at >= _KEEP_BYTES or self._at == len(self._buffer):
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += raw

    def take_rest(self) -> bytes:
        """What has arrived after the last whole message, as it came. Call it between messages, and read no more."""
        assert self._parts is None, "a message has begun"
        rest = bytes(self._buffer[self._at :])
        self._buffer.clear()
        self._at = 0
        return rest

    def next(self) -> Frame | None:
        """The next frame, a whole message or a control frame; None until more has arrived.

        A close frame is given with its code as two bytes.

        Raises:
            BadFrame: the peer does not keep to the standard, or to the limits; read no more of it.
        """
        buffer, at = self._buffer, self._at
        left = len(buffer) - at
        if left < 2:
            return None
        first, second = buffer[at], buffer[at + 1]
        size = second & _LENGTH
        head = 2
        if size >= _SHORT:
            head = 4 if size == _SHORT else 10
            if left < head:
                return None
            size = int.from_bytes(buffer[at + 2 : at + head], "big")
        if first != _WHOLE_TEXT or self._parts is not None:
            self._check(first, size)
        if second & _MASKED != self._is_masked:
            raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "masked and unmasked frames are mixed up")
        if size + self._parts_bytes > self.limit:
            raise BadFrame(limits.CLOSE_TOO_BIG, f"the message is larger than {self.limit} bytes")
        if self._is_masked:
            head += 4
        end = at + head + size
        if left < head + size:
            return None
        self._at = end
        if not size:
            payload = b""
        elif self._is_masked:
            payload = _unmask(buffer[end - size : end], buffer[at + head - 4 : at + head], size)
        else:
            payload = bytes(buffer[end - size : end])
        if first == _WHOLE_TEXT:
            return TEXT, payload
        return self._place(first, payload)

    def _check(self, first: int, size: int) -> None:
        """What the first byte, and where it stands, have against them."""
        opcode = first & _OPCODE
        problem = None
        if first & _RESERVED:
            problem = "a reserved bit is set"
        elif opcode in (CLOSE, PING, PONG):
            if size >= _SHORT or not first & _FIN:
                problem = "a control frame in fragments, or of more than 125 bytes"
        elif opcode == _CONTINUATION:
            if self._parts is None:
                problem = "a continuation of nothing"
            elif self._parts_count >= limits.MAX_FRAGMENTS:
                raise BadFrame(limits.CLOSE_POLICY, "a message in too many fragments")
        elif opcode == _BINARY:
            problem = "a binary message"
        elif opcode != TEXT:
            problem = "a reserved opcode"
        elif self._parts is not None:
            problem = "a message inside of another"
        if problem is not None:
            raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, problem)

    def _place(self, first: int, payload: bytes) -> Frame:
        """A control frame, or a part of a message."""
        opcode = first & _OPCODE
        if opcode == CLOSE:
            if len(payload) == 1:
                raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "half a close code")
            return CLOSE, payload[:2] or _NO_CODE.to_bytes(2, "big")
        if opcode in (PING, PONG):
            return opcode, payload
        if self._parts is None:
            self._parts = []
        self._parts_count += 1
        if payload:
            self._parts.append(payload)
            self._parts_bytes += len(payload)
        if not first & _FIN:
            return NOTHING, b""
        whole = b"".join(self._parts)
        self._parts, self._parts_bytes, self._parts_count = None, 0, 0
        return TEXT, whole


def _unmask(payload: bytearray, key: bytearray, size: int) -> bytes:
    """Undo RFC 6455 §5.3. As one number when it is short; else by tables, which take a nanosecond for a byte."""
    if size < _LONG:
        stream = int.from_bytes((key * (size // 4 + 1))[:size], "big")
        return (int.from_bytes(payload, "big") ^ stream).to_bytes(size, "big")
    for place in range(4):
        payload[place::4] = payload[place::4].translate(_TABLES[key[place]])
    return bytes(payload)
