"""`core.http`: one HTTP request, by the standard library."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import Any

from astraflow_sdk import ConfigurationError, InfrastructureError, NodeError, node

__all__ = ["request"]

TIMEOUT_S = 60.0
"""Of connecting and of each read, if the node gives none."""
BODY_BYTES = 2 * 1024 * 1024
"""The largest answer. A larger one belongs into a file, which is not what this node makes."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_SCHEMES = frozenset({"http", "https"})


class _TooLarge(NodeError):
    default_code = "E.RUNNER.LIMIT"


class _TimedOut(NodeError):
    category = "TIMEOUT"
    default_code = "E.TIMEOUT"


class _SameSchemes(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        _check_url(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@node("core.http")
def request(
    url: str = "",
    method: str = "GET",
    headers: Mapping[str, Any] | None = None,
    body: Any = None,
    timeoutSeconds: float | None = None,
) -> dict[str, Any]:
    """Send a request. An answer with an error status is an answer: look at `status`."""
    asked = _request(url, method, headers or {}, body)
    timeout_s = TIMEOUT_S if timeoutSeconds is None else float(timeoutSeconds)
    if not timeout_s > 0:
        raise ConfigurationError(f"timeoutSeconds must be greater than 0: {timeoutSeconds!r}")
    opener = urllib.request.build_opener(_SameSchemes)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            return _answer(answer.status, answer.headers, answer.read(BODY_BYTES + 1))
    except urllib.error.HTTPError as problem:
        with problem:
            return _answer(problem.code, problem.headers, problem.read(BODY_BYTES + 1))
    except TimeoutError as problem:
        raise _TimedOut(f"{asked.host} did not answer within {timeout_s} s") from problem
    except urllib.error.URLError as problem:
        if isinstance(problem.reason, TimeoutError):
            raise _TimedOut(f"{asked.host} did not answer within {timeout_s} s") from problem
        raise InfrastructureError(f"{asked.host} cannot be reached: {problem.reason}") from problem
    except (OSError, http.client.HTTPException) as problem:
        said = str(problem) or type(problem).__name__
        raise InfrastructureError(f"{asked.host} broke off: {said}") from problem


def _request(
    url: str, method: str, headers: Mapping[str, Any], body: Any
) -> urllib.request.Request:
    if method not in _METHODS:
        raise ConfigurationError(f"method must be one of {', '.join(sorted(_METHODS))}: {method!r}")
    _check_url(url)
    sent = {str(name): str(value) for name, value in headers.items()}
    content: bytes | None = None
    if isinstance(body, str):
        content = body.encode()
    elif body is not None:
        content = json.dumps(body, ensure_ascii=False).encode()
        if not any(name.lower() == "content-type" for name in sent):
            sent["Content-Type"] = "application/json"
    try:
        return urllib.request.Request(url, content, sent, method=method)  # noqa: S310  (checked above)
    except ValueError as problem:
        raise ConfigurationError(f"this is no URL: {url!r}") from problem


def _check_url(url: object) -> None:
    parts = urllib.parse.urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme.lower() not in _SCHEMES or not parts.hostname:
        raise ConfigurationError(
            f"the URL must begin with http:// or https:// and name a host: {url!r}"
        )


def _answer(status: int, headers: Message, content: bytes) -> dict[str, Any]:
    if len(content) > BODY_BYTES:
        raise _TooLarge(f"the answer is larger than {BODY_BYTES} bytes", retryable=False)
    named = {name.lower(): value for name, value in headers.items()}
    charset = headers.get_content_charset() or "utf-8"
    try:
        text = content.decode(charset, "replace")
    except LookupError:
        text = content.decode("utf-8", "replace")
    kind = headers.get_content_type()
    body: Any = text
    if kind == "application/json" or kind.endswith("+json"):
        try:
            body = json.loads(text, parse_constant=_refuse)
        except ValueError:
            body = text  # it is what came; whoever reads it decides
    return {"status": status, "headers": named, "body": body}


def _refuse(constant: str) -> None:
    raise ValueError(constant)
