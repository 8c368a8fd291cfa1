"""An issuer that a test makes say anything: real HTTP on loopback, real signatures. It checks PKCE as RFC 7636 asks."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class HostileIssuer:
    """`claims` changes what it says, `sign` how it signs; `answers` are raw answers by path; `trickles`
    is a path whose answer comes a byte at a time, for as long as somebody reads."""

    def __init__(self) -> None:
        self.url = ""
        self.key: RSAKey | ECKey = RSAKey.generate_key(2048, {"kid": "first"}, auto_kid=True)
        self.asked: list[dict[str, str]] = []
        self.reset()

    def reset(self) -> None:
        self.claims: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.described: dict[str, Any] = {}
        self.trickles = ""

    def authorize(self, url: str) -> tuple[str, str]:
        """What a browser is sent back with: code and state. The code says what the token needs."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["code_challenge_method"] == "S256"
        assert query["response_type"] == "code"
        return b64(json.dumps(query).encode()), query["state"]

    def signed(self, claims: dict[str, Any]) -> str:
        alg = "ES256" if isinstance(self.key, ECKey) else "RS256"
        return jwt.encode({"alg": alg, "kid": self.key.kid}, claims, self.key)

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/openid-configuration":
            return _json(
                {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                    **self.described,
                }
            )
        if path == "/keys":
            return _json(dict(KeySet([self.key]).as_dict(private=False)))
        if path == "/token":
            return self._token(form)
        return 404, {}, b""

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(form)
        query = json.loads(base64.urlsafe_b64decode(form["code"] + "=="))
        challenge = b64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if challenge != query["code_challenge"] or form["redirect_uri"] != query["redirect_uri"]:
            return _json({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": query["client_id"],
            "sub": "mallory",
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
            "groups": ["ops"],
            **self.claims,
        }
        return _json({"token_type": "Bearer", "access_token": "x", "id_token": self.sign(claims)})


def _json(value: Any, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-type": "application/json"}, json.dumps(value).encode()


@contextmanager
def hostile_issuer() -> Iterator[HostileIssuer]:
    issuer = HostileIssuer()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(raw).items()})

        def _answer(self, form: dict[str, str]) -> None:
            status, headers, body = issuer.answer(urlsplit(self.path).path, form)
            self.send_response(status)
            if issuer.trickles == urlsplit(self.path).path:
                self._trickle()
                return
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _trickle(self) -> None:
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            with suppress(OSError):
                while not ended.wait(0.05):
                    self.wfile.write(b" ")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
