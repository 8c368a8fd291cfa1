"""The callbacks of one attempt: POST with the newest token, retried while a retry can help, never redirected."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from astraflow_sdk.serverless.envelope import PushedTask

BACKOFF_MIN_S = 0.2
BACKOFF_MAX_S = 5.0
REQUEST_S = 10.0
ANSWER_BYTES = 1024 * 1024
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Answer:
    """What the scheduler said, and when the request was sent (monotonic)."""

    status: int
    body: Mapping[str, Any]
    sent_at: float


class Unreachable(Exception):
    """No answer came in time that says anything."""


class Callbacks:
    """Use from any thread. `is_over` tells that no further try is wanted."""

    def __init__(self, envelope: PushedTask, worker_id: str) -> None:
        self._envelope = envelope
        self._worker_id = worker_id
        self._token = envelope.token
        self._lock = threading.Lock()

    def post(
        self,
        what: str,
        body: Mapping[str, Any],
        until: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Report. Raises: Unreachable, when it is `until` (monotonic) and nobody has answered."""
        whole = {
            "attempt": self._envelope.attempt,
            "workerId": self._worker_id,
            **({"attemptId": self._envelope.attempt_id} if self._envelope.attempt_id else {}),
            **body,
        }
        raw = json.dumps(whole).encode()
        tries = 0
        while True:
            left_s = until - time.monotonic()
            if left_s <= 0 or is_over():
                raise Unreachable(what)
            sent_at = time.monotonic()
            try:
                status, answer = self._send(what, raw, min(REQUEST_S, left_s))
            except (OSError, http.client.HTTPException, ValueError):
                status, answer = 0, {}
            if status and status not in LATER:
                self._take_token(answer)
                return Answer(status, answer, sent_at)
            pause_s = min(BACKOFF_MAX_S, BACKOFF_MIN_S * 2.0 ** min(tries, 16))
            time.sleep(min(pause_s * (0.5 + random.random() / 2), max(0.0, left_s)))  # noqa: S311
            tries += 1

    def _send(self, what: str, raw: bytes, timeout_s: float) -> tuple[int, Mapping[str, Any]]:
        """One try on a connection of its own: an invocation may sleep for long between two."""
        parts = urlsplit(self._envelope.callback_base_url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        path = f"{parts.path}/v1/tasks/{quote(self._envelope.task_id, safe='')}/{what}"
        with self._lock:
            token = self._token
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, raw, headers)
            response = connection.getresponse()
            text = response.read(ANSWER_BYTES)
        finally:
            connection.close()
        answer = json.loads(text) if text else {}
        return response.status, answer if isinstance(answer, dict) else {}

    def _take_token(self, answer: Mapping[str, Any]) -> None:
        renewed = answer.get("taskToken")
        if isinstance(renewed, str) and renewed:
            with self._lock:
                self._token = renewed
