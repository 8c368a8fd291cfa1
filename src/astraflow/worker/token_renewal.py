"""The token of a worker: renewed before it expires, and kept in the data folder for the next boot.

1. The token that the worker is given opens the first session. Its successor is kept in a file that its owner alone may
   read, with the digest of the one that was given: another token in the settings wins over the file.
2. A token is renewed when half of its life is over. The scheduler tells how long it has, so that the clocks of the two
   machines do not matter. A token that never expires is left as it is.
3. A token that is refused is not renewed. The worker goes back to the one that it was given, in case that one is good.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from astraflow.core.contract.system import Me
from astraflow.core.contract.tokens import NewToken
from astraflow.worker.addresses import Origin
from astraflow.worker.plain_requests import NotReached, plain_request

TOKEN_FILE: Final = "worker_token.json"  # noqa: S105 - the name of a file
FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 30.0
LEAST_WAIT_S: Final = 0.5

_log: Final = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class _Kept(msgspec.Struct, frozen=True):
    token: str
    given_sha256: str


class Refusal(Exception):
    """The scheduler does not take the token, or does not renew it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the scheduler responded with {status}")
        self.status = status


class WorkerToken:
    """The token that is used now."""

    def __init__(self, folder: Path, given: str | None) -> None:
        """`given`: the token of the settings, if there is one."""
        self._place = folder / TOKEN_FILE
        self._given = given
        self.text = self._read() or given or ""

    @property
    def is_given(self) -> bool:
        return self.text == self._given

    def replace(self, text: str) -> None:
        """Use a successor, and keep it for the next boot. Raises: OSError."""
        self.text = text
        kept = _Kept(text, _digest(self._given))
        fresh = self._place.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(kept) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self._place)

    def go_back(self) -> bool:
        """Use the token that was given; False if there is no other than the one in use."""
        self._place.unlink(missing_ok=True)
        if self._given is None or self.is_given:
            return False
        self.text = self._given
        return True

    def _read(self) -> str | None:
        try:
            kept = msgspec.json.decode(self._place.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        is_of_given = self._given is None or kept.given_sha256 == _digest(self._given)
        return kept.token if is_of_given else None


class TokenRenewal:
    """Renews the token of a worker for as long as `run` runs."""

    def __init__(
        self,
        token: WorkerToken,
        origin: Origin,
        present: Callable[[str], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`present` shows the scheduler another token."""
        self._token = token
        self._origin = origin
        self._present = present
        self._tls = tls

    async def run(self) -> None:
        """Returns when there is nothing to renew any more."""
        if not self._token.text:
            return
        try:
            while True:
                left_s = (await self._patiently(self._ask)).expires_in_seconds
                if left_s is None:
                    return
                await asyncio.sleep(max(LEAST_WAIT_S, left_s / 2))
                renewed = await self._patiently(self._renew)
                self._keep(renewed.token)
        except Refusal as refusal:
            if refusal.status != HTTPStatus.UNAUTHORIZED:
                _log.warning("the token of the worker is not renewed: %s", refusal)
            elif self._token.go_back():
                _log.warning("the renewed token is refused; using the one of the settings")
                self._present(self._token.text)
                await self.run()
            else:
                _log.warning("the token of the worker is refused, and is not renewed any more")

    def _keep(self, text: str) -> None:
        try:
            self._token.replace(text)
        except OSError as error:
            _log.warning("the renewed token cannot be kept for the next boot: %s", error)
        self._present(text)
        _log.info("the token of the worker was renewed")

    async def _patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask until the scheduler answers. Raises: Refusal."""
        wait_s = FIRST_RETRY_S
        while True:
            with suppress(NotReached, msgspec.DecodeError, _Busy):
                return await ask()
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_RETRY_S)

    async def _ask(self) -> Me:
        return msgspec.json.decode(await self._body("GET", "/api/v1/me"), type=Me)

    async def _renew(self) -> NewToken:
        return msgspec.json.decode(await self._body("POST", "/api/v1/tokens/renew"), type=NewToken)

    async def _body(self, method: str, path: str) -> bytes:
        headers = {"authorization": f"Bearer {self._token.text}"}
        url = f"{self._origin().rstrip('/')}{path}"
        status, body = await plain_request(method, url, headers, self._tls)
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _Busy
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise Refusal(status)
        return body


class _Busy(Exception):
    """The scheduler cannot answer now."""


def _digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()
