"""A server that streams chat answers as those of language models do, token by token, as far as the test lets it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.e2e.loopback import listening

__all__ = ["ModelServer", "serving_model"]


class ModelServer:
    """`tokens` are sent one at a time: each but the first waits for `go_on`."""

    def __init__(self) -> None:
        self.tokens = ["Hello", ", ", "world", "!"]
        self.go_on = threading.Semaphore(0)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.status = 200
        self.cut_after: int | None = None
        self.url = ""

    def open(self) -> None:
        """Nothing waits any more."""
        for _ in range(1000):
            self.go_on.release()


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


@contextmanager
def serving_model() -> Iterator[ModelServer]:
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            model.asked.append(json.loads(body))
            model.keys.append(self.headers.get("Authorization"))
            if model.status != 200:
                self._refuse()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):
                self._stream()

        def _refuse(self) -> None:
            said = json.dumps({"error": {"message": "the server said no"}}).encode()
            self.send_response(model.status)
            self.send_header("Content-Length", str(len(said)))
            self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(said)

        def _stream(self) -> None:
            for number, token in enumerate(model.tokens):
                if number:
                    model.go_on.acquire(timeout=60)
                if model.cut_after == number:
                    self.close_connection = True
                    return
                self._send({"choices": [{"delta": {"role": "assistant", "content": token}}]})
            self._send({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            self._send({"choices": [], "usage": {"total_tokens": len(model.tokens)}})
            self._write(b"data: [DONE]\n\n")
            self._write(b"")

        def _send(self, body: dict[str, Any]) -> None:
            self._write(_event({"model": "tiny-1", **body}))

        def _write(self, piece: bytes) -> None:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as url:
        model.url = f"{url}v1"
        try:
            yield model
        finally:
            model.open()
