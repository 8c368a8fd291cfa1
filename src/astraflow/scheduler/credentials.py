"""The credentials that count now, and what is open under them.

1. The stored tokens are read when a claim begins, and each change is stored before it counts. Who takes over reads them
   again, so that nothing that was revoked comes back.
2. What a credential opened ends with it: the sessions of workers, event streams, downloads. A revocation ends them at
   once, an expiry within `ENFORCE_EVERY_S` (PROTOCOL §2: "within a second").
3. When a token was used last is kept in memory and written from time to time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol.events import Principal
from astraflow.core.security.bearer import ApiTokens, CredentialKind, TokenRecord
from astraflow.core.security.policy import Role
from astraflow.scheduler.current import Current
from astraflow.store.rows import TokenRow
from astraflow.store.store import Store

ENFORCE_EVERY_S: Final = 0.5
REFRESH_S: Final = 0.5
WRITE_USES_EVERY_S: Final = 60.0
"""How coarse `lastUsedAt` is."""

_log: Final = logging.getLogger(__name__)


class Credentials:
    """Stores, revokes and watches credentials. Use from the scheduler's loop."""

    def __init__(self, store: Store, current: Current, clock: Clock, known: ApiTokens) -> None:
        self.known = known
        self._store = store
        self._current = current
        self._clock = clock
        self._refreshed_at = float("-inf")
        self._refresh: asyncio.Task[None] | None = None
        self._put_later: set[str] = set()  # tokens that were put since the last read began
        self._open: dict[object, tuple[TokenRecord, Callable[[], None]]] = {}

    @property
    def wall(self) -> float:
        return self._clock.wall_ms() / 1000

    async def load(self) -> None:
        """Read what is stored. Raises: StoreError."""
        rows = await self._store.good_tokens(self._clock.wall_ms())
        self.known.replace_stored(map(_record_of, rows))
        await self.read_suspensions()

    async def read_suspensions(self) -> None:
        """Read which tenants are suspended; `enforce` ends what is open. Raises: StoreError."""
        for tenant in await self._store.all_tenants():
            self.set_suspended(tenant.tenant, tenant.is_suspended)

    async def refresh(self) -> None:
        """Read what other schedulers have stored or revoked until now, and end what is open under what is revoked. All
        who ask within `REFRESH_S` wait for one read: a caller with a bad token asks as often as it likes.

        Raises: StoreError.
        """
        if self._refresh is None:
            self._refresh = asyncio.create_task(self._refresh_later())
        await asyncio.shield(self._refresh)

    async def _refresh_later(self) -> None:
        await asyncio.sleep(max(0.0, self._refreshed_at + REFRESH_S - self._clock.now()))
        self._refresh = None  # who asks from now on may know of something later
        self._refreshed_at = self._clock.now()
        self._put_later.clear()
        rows = await self._store.good_tokens(self._clock.wall_ms())
        self.known.merge_stored(map(_record_of, rows), self._put_later)
        self.enforce()

    def set_suspended(self, tenant: str, is_suspended: bool) -> None:
        """Whether the credentials of a tenant count; `enforce` ends what is open."""
        if is_suspended:
            self.known.suspend(tenant)
        else:
            self.known.resume(tenant)

    async def put(self, row: TokenRow) -> TokenRecord:
        """Store a new credential; it counts from now on. Raises: Unavailable, StoreError."""
        await self._store.put_token(self._current.claim, row)
        record = _record_of(row)
        self.known.put(record)
        self._put_later.add(record.token_id)
        return record

    async def revoke(self, records: Iterable[TokenRecord], by: str) -> int:
        """Revoke stored credentials, and end what is open under them; how many were good until now."""
        ids = [record.token_id for record in records]
        if not ids:
            return 0
        claim = self._current.claim
        revoked = await self._store.revoke_tokens(claim, ids, self._clock.wall_ms(), by)
        for token_id in ids:
            self.known.remove(token_id)
        self.enforce()
        return revoked

    @contextmanager
    def watch(self, record: TokenRecord, end: Callable[[], None]) -> Iterator[None]:
        """Something is open under a credential; `end` ends it, if the credential ends first."""
        key = object()
        self._open[key] = (record, end)
        try:
            yield
        finally:
            self._open.pop(key, None)

    @property
    def has_open(self) -> bool:
        """Whether something is open under a credential here."""
        return bool(self._open)

    def enforce(self) -> None:
        """End what is open under credentials that are over."""
        wall = self.wall
        self._end_open(wall)
        if self._current.is_serving:
            self._current.writer.revoke(lambda principal: self._is_over(principal, wall))

    def _end_open(self, wall: float) -> None:
        for key, (record, end) in list(self._open.items()):
            if not self.known.is_good(record, wall):
                del self._open[key]
                end()

    def _is_over(self, principal: Principal, wall: float) -> bool:
        if self.known.is_suspended(principal.tenant):
            return True
        if principal.credential:
            return not self.known.is_good_id(principal.credential, wall)
        return principal.expires_at is not None and wall >= principal.expires_at

    async def tend(self) -> None:
        """Enforce expiry, and write when tokens were used."""
        wrote_at = self._clock.now()
        while True:
            await asyncio.sleep(ENFORCE_EVERY_S)
            self._expire()
            if self._clock.now() - wrote_at >= WRITE_USES_EVERY_S:
                wrote_at = self._clock.now()
                await self._write_uses()

    def _expire(self) -> None:
        wall = self.wall
        expired = self.known.expired(wall)
        for record, _ in self._open.values():
            if self.known.is_good(record, wall):
                self.known.touch(record, wall)
        for record in expired:
            self.known.remove(record.token_id)
        if expired:
            self.enforce()
        else:
            self._end_open(wall)

    async def _write_uses(self) -> None:
        used = {token_id: int(at * 1000) for token_id, at in self.known.take_used().items()}
        if not used:
            return
        try:
            await self._store.touch_tokens(self._current.claim, used)
        except errors.AstraflowError as error:
            _log.warning("the uses of tokens could not be written: %s", error.message)


def _record_of(row: TokenRow) -> TokenRecord:
    return TokenRecord(
        row.digest,
        row.tenant,
        row.subject,
        Role(row.role),
        None if row.expires_at is None else row.expires_at / 1000,
        row.revoked_at is not None,
        row.token_id,
        CredentialKind(row.kind),
        row.user_name,
        row.family,
        row.created_at / 1000,
        0.0 if row.used_at is None else row.used_at / 1000,
        None if row.idle_ms is None else row.idle_ms / 1000,
    )
