"""What both clients know about HTTP: how it is opened, and what its responses and failures mean."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from astraflow import __version__
from astraflow.client.endpoint import Endpoint
from astraflow.client.requests import ApiReply, ApiRequest
from astraflow.client.responses import foreign, no_response, raise_problem, unreachable
from astraflow.client.retries import Outcome
from astraflow.client.stream import SILENCE_S, Cut
from astraflow.core import errors
from astraflow.lean_httpx import httpx

__all__ = [
    "EVENTS",
    "STREAM",
    "Failure",
    "failure_of",
    "httpx",
    "options",
    "read_response",
    "refuse_late",
    "refuse_stream",
    "stream_timeout",
    "why",
]

CONNECT_S: Final = 5.0
RESPONSE_S: Final = 30.0
"""The server responds with 503 to what it cannot do now, long before."""


EVENTS: Final = "/api/v1/events"
STREAM: Final = "/api/v1/stream"

Response = TypeVar("Response")


class Failure(NamedTuple):
    """A try without a result, and the error to raise if there is no other."""

    outcome: Outcome
    error: errors.AstraflowError
    after_s: float = 0.0


def options(endpoint: Endpoint) -> dict[str, Any]:
    """How to open a client of httpx."""
    address = urlsplit(endpoint.url)
    is_here = address.hostname in ("127.0.0.1", "::1", "localhost")
    headers = {"user-agent": f"astraflow/{__version__}"}
    if is_here:
        headers["accept-encoding"] = "identity"  # compressing takes longer than sending here
    if endpoint.token:
        headers["authorization"] = f"Bearer {endpoint.token}"
    return {
        "base_url": endpoint.url,
        "headers": headers,
        "timeout": httpx.Timeout(RESPONSE_S, connect=CONNECT_S),
        "trust_env": not is_here,  # no proxy between a machine and itself
        # Reading the certificates takes a tenth of a second. SSL_CERT_FILE counts on this machine, too.
        "verify": httpx.create_ssl_context() if address.scheme == "https" else False,
    }


def read_response(
    request: ApiRequest[Response], url: str, response: httpx.Response
) -> Response | Failure:
    """Raises: the error of the response, if sending the request again cannot help."""
    try:
        raise_problem(response.status_code, response.content)
        return request.read(ApiReply(response.content, response.headers))
    except errors.Unavailable as error:
        after = response.headers.get("retry-after", "")
        return Failure("busy", error, float(after) if after.isdecimal() else 0.0)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise foreign(url) from error


def failure_of(url: str, error: httpx.TransportError) -> Failure:
    """Raises: Refused, when it is the request that cannot be sent."""
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        raise errors.Refused(errors.REQUEST_INVALID, f"the request cannot be sent: {error}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Failure("refused", unreachable(url, why(error)))
    return Failure("unknown", no_response(url, why(error)))


def why(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError):
        return "the connection was refused" if "refused" in str(error).lower() else str(error)
    if isinstance(error, httpx.TimeoutException):
        return "timeout: no response in time"
    return str(error) or "the connection was lost"


def refuse_stream(status: int, body: bytes) -> None:
    """Raises: Cut, if it may work later; else the error of the response."""
    try:
        raise_problem(status, body)
    except errors.Unavailable as error:
        raise Cut(error.message) from error


def stream_timeout(now: float, until: float | None) -> httpx.Timeout:
    """A stream that is silent for too long is dead; one that is waited for until some moment is read no longer."""
    left_s = SILENCE_S if until is None else max(0.0, until - now)
    return httpx.Timeout(RESPONSE_S, connect=CONNECT_S, read=min(SILENCE_S, left_s + 0.001))


def refuse_late(run_id: str, now: float, until: float | None) -> None:
    """Raises: Unavailable, when `until` has passed."""
    if until is not None and now >= until:
        raise errors.Unavailable(errors.TIMEOUT, f"the run has not ended yet: {run_id}")
