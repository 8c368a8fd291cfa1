"""The pipes to the worker: frames in and out, batched by turns of the event loop.

A frame is a length of four bytes (big endian) and that many bytes of UTF-8 JSON. All available input is read at once,
and all frames of a turn are sent in one write.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

FRAME_BYTES = 8 * 1024 * 1024
"""The largest frame, either way: a result of four MiB with all that comes with it."""
READ_BYTES = 64 * 1024
"""What a pipe holds. A larger buffer would be mapped and unmapped for every read."""

_LENGTH = struct.Struct(">I")

# NaN and Infinity are no JSON. Text is written as it is, so that half a character is found out here.
encode_json: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


class Channel:
    """Both pipes. `on_frame` gets each frame; `on_turn` is called before a write, to add what else there is."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        on_frame: Callable[[dict[str, Any]], None],
        on_turn: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_frame = on_frame
        self._on_turn = on_turn
        self._unread = bytearray()
        self._unsent: list[bytes] = []
        self._blocked = memoryview(b"")
        self._is_reading = False
        self._is_due = False
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._loop.add_reader(read_fd, self._read)

    @property
    def blocked_bytes(self) -> int:
        """How much the worker has not taken yet."""
        return len(self._blocked)

    def send(self, text: str) -> None:
        """Queue a frame, on the loop's thread."""
        raw = text.encode()
        self._unsent.append(_LENGTH.pack(len(raw)))
        self._unsent.append(raw)
        self.wake()

    def flush(self) -> None:
        """Write all that is queued, before the process ends."""
        os.set_blocking(self._write_fd, True)
        self._write_turn()

    def wake(self) -> None:
        """Have the turn written soon; from any thread."""
        if self._is_due or self._is_reading:
            return
        self._is_due = True
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._write_turn)
        else:
            self._loop.call_soon_threadsafe(self._write_turn)

    def _read(self) -> None:
        try:
            read = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not read:
            os._exit(0)  # the worker is gone: nobody waits for what is still running
        self._unread += read
        self._is_reading = True
        try:
            self._take_frames()
        finally:
            self._is_reading = False
        self._write_turn()

    def _take_frames(self) -> None:
        unread = self._unread
        at = 0
        while len(unread) - at >= 4:
            (length,) = _LENGTH.unpack_from(unread, at)
            if len(unread) - at - 4 < length:
                break
            self._on_frame(json.loads(unread[at + 4 : at + 4 + length]))
            at += 4 + length
        del unread[:at]

    def _write_turn(self) -> None:
        self._is_due = False
        self._on_turn()
        if not self._unsent or self._blocked:
            return
        joined = b"".join(self._unsent)
        self._unsent.clear()
        self._write(joined)

    def _write(self, joined: bytes | memoryview) -> None:
        try:
            written = os.write(self._write_fd, joined)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            os._exit(0)
        if written == len(joined):
            return
        # A view: a pipe takes little of a large frame at once, and the rest is not copied each time.
        self._blocked = memoryview(joined)[written:]
        self._loop.add_writer(self._write_fd, self._write_blocked)

    def _write_blocked(self) -> None:
        self._loop.remove_writer(self._write_fd)
        blocked, self._blocked = self._blocked, memoryview(b"")
        self._write(blocked)
        if not self._blocked:
            self._write_turn()
