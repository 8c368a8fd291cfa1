"""What a dispatcher is, and what can come of a push."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from astraflow.core import errors
from astraflow.core.errors import Code
from astraflow.core.fleet.pools import PoolRecord

SECRET_HEADER: Final = "X-Astraflow-Pool-Secret"  # noqa: S105 - the name of a header
DISPATCH_ID_HEADER: Final = "X-Astraflow-Dispatch-Id"
"""Headers of a push: the shared secret of the pool, and what is the same for every delivery of an attempt."""


class Push(msgspec.Struct, frozen=True):
    """One attempt, ready to leave."""

    pool: PoolRecord
    dispatch_id: str
    envelope: bytes
    secret: str = ""
    traceparent: str | None = None


class PushFailed(Exception):
    """A push was not taken. `is_final`: the other side has refused it, and trying again does not help. `may_run`:
    nobody knows whether it arrived."""

    def __init__(
        self,
        message: str,
        *,
        code: Code = errors.DISPATCH_PUSH_REFUSED,
        is_final: bool = False,
        may_run: bool = False,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.is_final = is_final
        self.may_run = may_run
        self.retry_after_s = retry_after_s


def check_size(service: str, size: int, limit: int) -> None:
    """Raises: PushFailed, when a task is larger than its queue service takes: no other try would fit."""
    if size > limit:
        message = f"the task is too large for {service}: {size} bytes, at most {limit}"
        raise PushFailed(message, code=errors.DISPATCH_INVALID, is_final=True)


class Dispatcher(Protocol):
    """Delivers pushes, at least once."""

    async def push(self, push: Push) -> None:
        """Hand over one attempt. Raises: PushFailed."""

    async def close(self) -> None: ...

    def check(self, pool: PoolRecord) -> None:
        """Raises: Refused, when it could not deliver with these settings."""
