"""A little key service, as the documentation describes one: it keeps keys and wraps with the newest."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["TOKEN", "Keeper", "key_service"]

TOKEN = "the token of the key service"


class Keeper:
    """What the service knows. `url` is where it listens."""

    def __init__(self) -> None:
        self.keys = {"v1": os.urandom(32)}
        self.active = "v1"
        self.asked: list[str] = []
        self.url = ""
        self.raw: bytes | None = None
        """An answer in the place of the right one."""

    def renew(self) -> None:
        self.active = f"v{len(self.keys) + 1}"
        self.keys[self.active] = os.urandom(32)

    def answer(self, path: str, body: dict[str, str]) -> dict[str, str] | None:
        self.asked.append(path)
        context = base64.b64decode(body["context"])
        if path == "/keys/wrap":
            nonce = os.urandom(12)
            clear = base64.b64decode(body["plaintext"])
            sealed = nonce + AESGCM(self.keys[self.active]).encrypt(nonce, clear, context)
            return {"keyId": self.active, "wrapped": base64.b64encode(sealed).decode()}
        sealed = base64.b64decode(body["wrapped"])
        try:
            clear = AESGCM(self.keys[body["keyId"]]).decrypt(sealed[:12], sealed[12:], context)
        except (InvalidTag, KeyError):
            return None
        return {"plaintext": base64.b64encode(clear).decode()}


@contextmanager
def key_service() -> Iterator[Keeper]:
    keeper = Keeper()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self.send_error(401)
                return
            answer = keeper.answer(self.path, body)
            if answer is None:
                self.send_error(422)
                return
            text = json.dumps(answer).encode() if keeper.raw is None else keeper.raw
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    keeper.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield keeper
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
