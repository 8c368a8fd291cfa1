"""Requests to services of others (an issuer of logins, a key service), which may hang, trickle or never end.

The whole answer has one deadline, not each piece of it, and a limit of bytes. No redirect is followed: what we send is
for the address of the settings alone. A compressed answer is refused: a few bytes of it can be any number.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from astraflow.lean_httpx import httpx

DEADLINE_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1024 * 1024


class NoAnswer(Exception):
    """There is no answer that can be used. Its text goes on behind the name of the service."""


async def bounded_request(method: str, url: str, **content: Any) -> tuple[int, bytes]:
    """Status and body. `content`: what `httpx` takes. Raises: NoAnswer."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await _request(method, url, content)
    except TimeoutError as error:
        raise NoAnswer(f"does not answer within {DEADLINE_S:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswer(f"does not answer ({type(error).__name__})") from error


async def _request(method: str, url: str, content: dict[str, Any]) -> tuple[int, bytes]:
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    content["headers"] = {**headers, **content.get("headers", {})}
    async with (
        httpx.AsyncClient(timeout=DEADLINE_S, follow_redirects=False) as http,
        http.stream(method, url, **content) as response,
    ):
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise NoAnswer("gives a compressed answer")
        raw = bytearray()
        async for piece in response.aiter_raw():
            raw += piece
            if len(raw) > MAX_ANSWER_BYTES:
                raise NoAnswer("gives an answer that is too long")
        return response.status_code, bytes(raw)
