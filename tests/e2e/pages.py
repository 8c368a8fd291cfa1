"""A small web site on loopback that remembers who asked for what."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.e2e.loopback import listening

__all__ = ["Pages", "serving"]

HOME = """<!doctype html><title>Home</title>
<h1>Welcome</h1><input id="user"><button id="login-button" onclick="go()">Log in</button>
<script>function go() { location = '/login?user=' + document.querySelector('#user').value }</script>"""
LOGIN = "<!doctype html><title>In</title><p id='who'>logged in</p>"


class Pages:
    """What was asked for, each with its cookie; `/gate` answers when it is opened."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.gate = threading.Event()
        self.url = ""

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def serving() -> Iterator[Pages]:
    pages = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append((self.path, self.headers.get("Cookie")))
            if self.path == "/gate":
                pages.gate.wait(60)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            if self.path == "/":
                self.send_header("Set-Cookie", f"visit={len(pages.asked)}; Path=/")
            self.end_headers()
            with suppress(BrokenPipeError):  # the one who asked may have been killed
                self.wfile.write((HOME if self.path == "/" else LOGIN).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as url:
        pages.url = url
        try:
            yield pages
        finally:
            pages.gate.set()
