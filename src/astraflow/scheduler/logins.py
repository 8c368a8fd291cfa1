"""Logging in: with a name and a password, or with a link that works once.

Rule 1: an unknown user, a wrong password, a disabled user and a suspended tenant get the same answer at the same cost.
Rule 2: attempts are limited for each user and for each address. Where a user has logged in before has its own limit.
Rule 3: a login makes a session for a browser (a cookie), or a token for a program. Nothing that lasts stands in a URL:
        a link holds a code that works once, for a few minutes.
"""

from __future__ import annotations

import logging
import math
import re
from typing import Final, Literal

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.errors import Code
from astraflow.core.security.bearer import CredentialKind, TokenRecord
from astraflow.core.security.policy import SITE_TENANT, Role
from astraflow.core.security.rates import KeyedRateLimit
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.scheduler.passwords import Passwords
from astraflow.scheduler.tokens import DEFAULT_TTL_S, Tokens
from astraflow.store.rows import TokenRow, UserRow
from astraflow.store.store import Store

_NAME: Final = re.compile(r"[ -~]{1,128}")
"""What may be the name of a user or a tenant; anything else is not even looked for."""
LINK_S: Final = 600
USER_BURST: Final = 10
USER_PER_SECOND: Final = 1 / 6
ADDRESS_BURST: Final = 60
ADDRESS_PER_SECOND: Final = 1.0
MAX_PLACES: Final = 10_000
"""Addresses that users have logged in from; the oldest is forgotten first."""
UNKNOWN_USER: Final = "(unknown user)"
"""No user can have this name."""
_log: Final = logging.getLogger(__name__)


class Logins:
    """What the API asks to log somebody in or out."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        tokens: Tokens,
        passwords: Passwords,
        current: Current,
        clock: Clock,
        *,
        session_ttl_s: int,
        session_idle_s: int,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._tokens = tokens
        self._passwords = passwords
        self._current = current
        self._clock = clock
        self._session_ttl_s = session_ttl_s
        self._session_idle_s = session_idle_s
        self._of_user = KeyedRateLimit(USER_PER_SECOND, USER_BURST)
        self._of_address = KeyedRateLimit(ADDRESS_PER_SECOND, ADDRESS_BURST)
        self._places: dict[tuple[str, str, str], None] = {}

    async def check(self, tenant: str, name: str, password: str, address: str) -> UserRow:
        """The user, if the password is right.

        Raises:
            Refused: it is not, or there is no such user who may log in.
            Unavailable: there were too many attempts.
        """
        self._limit(tenant, name, address)
        is_name = _NAME.fullmatch(name) is not None and _NAME.fullmatch(tenant) is not None
        user = await self._store.find_user(tenant, name) if is_name else None
        is_right = await self._passwords.matches(
            password, None if user is None else user.password_hash
        )
        is_suspended = self._credentials.known.is_suspended(tenant)
        if user is None or not is_right or user.is_disabled or is_suspended:
            self._audit_failure(tenant, user)
            raise _bad_login()
        self._of_user.refill(self._limited(tenant, name, address))
        self._remember(tenant, name, address)
        return await self._hash_anew(user, password)

    def _limit(self, tenant: str, name: str, address: str) -> None:
        now = self._clock.now()
        of_address = self._of_address.take(address, now)
        of_user = self._of_user.take(self._limited(tenant, name, address), now)
        _refuse_flood(max(of_address, of_user))

    def _limited(self, tenant: str, name: str, address: str) -> tuple[str, ...]:
        """What attempts are counted for: a user; from where the user has logged in before apart, so that others who
        guess do not keep the user out."""
        place = (tenant, name, address)
        return place if place in self._places else (tenant, name)

    def _remember(self, tenant: str, name: str, address: str) -> None:
        place = (tenant, name, address)
        self._places.pop(place, None)
        self._places[place] = None
        if len(self._places) > MAX_PLACES:
            del self._places[next(iter(self._places))]

    def _audit_failure(self, tenant: str, user: UserRow | None) -> None:
        """Of an unknown user without the name: people type passwords into the wrong field. Of a tenant that was made up
        in the audit of the site."""
        if user is not None:
            self._audit(user.tenant, user.name, "login", errors.AUTH_BAD_LOGIN)
            return
        is_tenant = self._current.engine.ask.tenant(tenant) is not None
        where = tenant if is_tenant else SITE_TENANT
        self._audit(where, UNKNOWN_USER, "login", errors.AUTH_BAD_LOGIN)

    async def _hash_anew(self, user: UserRow, password: str) -> UserRow:
        """The hash with the parameters of now: only at a login is the password known."""
        if not self._passwords.is_outdated(user.password_hash):
            return user
        try:
            fresh = await self._passwords.hash(password)
            changed = await self._store.change_user(
                self._current.claim,
                user.tenant,
                user.name,
                if_hash=user.password_hash,
                password_hash=fresh,
            )
        except errors.Unavailable as error:  # the next login does it
            _log.warning("a password could not be hashed anew: %s", error.message)
            return user
        return changed or user

    def limit_address(self, address: str) -> None:
        """Count an attempt to log in elsewhere. Raises: Unavailable, if there were too many."""
        _refuse_flood(self._of_address.take(address, self._clock.now()))

    def is_suspended(self, tenant: str) -> bool:
        return self._credentials.known.is_suspended(tenant)

    async def open_session(self, user: UserRow) -> tuple[TokenRow, str]:
        """A session for the browser of a user; returns its row and the text of the cookie."""
        opened = await self._open(user.tenant, user.name, user.name, Role(user.role))
        await self._confirm(user, opened[0])
        return opened

    async def make_token(
        self, user: UserRow, label: str, ttl_s: int | Literal["default"]
    ) -> tuple[TokenRow, str]:
        """A token for a program of a user, as `astra login` asks for."""
        lifetime_s = DEFAULT_TTL_S if ttl_s == "default" else ttl_s
        row, text = self._tokens.make(
            tenant=user.tenant,
            role=Role(user.role),
            subject=user.name,
            user=user.name,
            label=label,
            by=user.name,
            expires_at=self._clock.wall_ms() + lifetime_s * 1000,
        )
        await self._credentials.put(row)
        await self._confirm(user, row)
        self._audit(user.tenant, user.name, "login", about=row.token_id)
        return row, text

    async def _confirm(self, user: UserRow, made: TokenRow) -> None:
        """The user may have been changed while the password was checked. Raises: Refused."""
        now = await self._store.find_user(user.tenant, user.name)
        is_same = (
            now is not None
            and not now.is_disabled
            and (now.role, now.password_hash) == (user.role, user.password_hash)
        )
        if not is_same:
            known = self._credentials.known.family(user.tenant, made.family)
            await self._credentials.revoke(known, user.name)
            raise _bad_login()

    async def make_link(self, bearer: TokenRecord) -> tuple[TokenRow, str]:
        """A code that logs whoever has it in as the asker, once."""
        row, code = self._tokens.make(
            tenant=bearer.tenant,
            role=bearer.role,
            subject=bearer.subject,
            user=bearer.user,
            label="",
            by=bearer.subject,
            expires_at=self._clock.wall_ms() + LINK_S * 1000,
            kind=CredentialKind.LINK,
        )
        await self._credentials.put(row)
        self._audit(bearer.tenant, bearer.subject, "login.link", about=row.token_id)
        return row, code

    async def redeem_link(self, code: str, address: str) -> tuple[TokenRow, str]:
        """The session that a link opens. Raises: Refused: it is over, was used, or never was."""
        _refuse_flood(self._of_address.take(address, self._clock.now()))
        known = self._credentials.known
        found = known.verify(code, self._credentials.wall, CredentialKind.LINK)
        # Of two who come with the same code, the store lets one in.
        if isinstance(found, Code) or not await self._credentials.revoke([found], found.subject):
            raise errors.Refused(errors.AUTH_INVALID_TOKEN, "the link has expired or was used")
        return await self._open(found.tenant, found.subject, found.user, found.role)

    async def log_out(self, bearer: TokenRecord) -> None:
        """End the session or the token that it is asked with. One of the settings stays."""
        if bearer.token_id:
            await self._credentials.revoke([bearer], bearer.subject)
            self._audit(bearer.tenant, bearer.subject, "logout", about=bearer.token_id)

    async def _open(
        self, tenant: str, subject: str, user: str | None, role: Role
    ) -> tuple[TokenRow, str]:
        row, text = self._tokens.make(
            tenant=tenant,
            role=role,
            subject=subject,
            user=user,
            label="browser",
            by=subject,
            expires_at=self._clock.wall_ms() + self._session_ttl_s * 1000,
            kind=CredentialKind.SESSION,
            idle_ms=self._session_idle_s * 1000,
        )
        await self._credentials.put(row)
        self._audit(tenant, subject, "login", about=row.token_id)
        return row, text

    def _audit(
        self, tenant: str, who: str, what: str, code: Code | None = None, about: str = ""
    ) -> None:
        said = None if code is None else code.code
        self._current.execute(KeepAudit(tenant=tenant, by=who, what=what, subject=about, code=said))


def _refuse_flood(wait_s: float) -> None:
    """Raises: Unavailable, if there is something to wait for."""
    if wait_s > 0:
        raise errors.Unavailable(
            errors.AUTH_TOO_MANY,
            "too many attempts to log in",
            detail={"retryAfterSeconds": math.ceil(wait_s)},
        )


def _bad_login() -> errors.Refused:
    return errors.Refused(errors.AUTH_BAD_LOGIN, errors.AUTH_BAD_LOGIN.says)
