"""API tokens: made, listed, revoked and renewed.

Rule 1: nobody makes a token that may do more than their own, or lives longer than the token that they ask with.
Rule 2: an admin sees and revokes all tokens of the tenant, others those of their own subject.
Rule 3: the token of a worker is renewed by the worker. The old one stays good until it expires: the worker may not have
        got its successor. They are one family, which is revoked as a whole.
"""

from __future__ import annotations

import secrets
from typing import Final, Literal

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.ids import IdSource
from astraflow.core.security.bearer import CredentialKind, TokenRecord, digest_of, token_text
from astraflow.core.security.policy import SITE_TENANT, Role, grants_of
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.store.rows import TokenRow
from astraflow.store.store import Store

TOKEN_BYTES: Final = 32
DEFAULT_TTL_S: Final = 30 * 24 * 3600
DEFAULT_WORKER_TTL_S: Final = 24 * 3600
MAX_FAMILY: Final = 1_000
"""Good tokens that are renewed from one: workers that were started with the same token, a few for each."""

PROGRAM_SUBJECTS: Final = {Role.WORKER: "workers", Role.METRICS: "metrics"}
"""The subject of a program's token that a user makes without naming one: it outlives the user."""
SITE_ADMIN_SUBJECT: Final = "site-admin"
"""The subject of a token that an admin of the site makes for another tenant without naming one."""


class TokenTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A token that somebody asks for. `ttl_s` None: for ever; "default": as long as is usual."""

    tenant: str
    role: Role
    subject: str | None = None
    label: str = ""
    ttl_s: int | Literal["default"] | None = "default"


class Tokens:
    """What the API asks about tokens."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        current: Current,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._current = current
        self._clock = clock
        self._ids = ids

    async def create(self, bearer: TokenRecord, terms: TokenTerms) -> tuple[TokenRow, str]:
        """Make a token; returns it with its text, which nobody sees again.

        Raises: Refused: the asker may not make this token.
        """
        subject = self._check(bearer, terms)
        now = self._clock.wall_ms()
        row, text = self.make(
            tenant=terms.tenant,
            role=terms.role,
            subject=subject,
            user=await self._user(terms, subject),
            label=terms.label,
            by=bearer.subject,
            expires_at=_expiry(bearer, terms, now),
        )
        await self._credentials.put(row)
        self._audit(bearer, terms.tenant, "token.create", row.token_id)
        return row, text

    def make(
        self,
        *,
        tenant: str,
        role: Role,
        subject: str,
        user: str | None,
        label: str,
        by: str,
        expires_at: int | None,
        kind: CredentialKind = CredentialKind.API,
        family: str = "",
        idle_ms: int | None = None,
    ) -> tuple[TokenRow, str]:
        """The row of a new credential, and its text. Nothing is stored."""
        text = token_text(secrets.token_bytes(TOKEN_BYTES))
        token_id = self._ids.new()
        row = TokenRow(
            token_id=token_id,
            tenant=tenant,
            kind=kind.value,
            digest=digest_of(text),
            subject=subject,
            user_name=user,
            role=role.value,
            label=label,
            family=family or token_id,
            created_at=self._clock.wall_ms(),
            created_by=by,
            expires_at=expires_at,
            idle_ms=idle_ms,
        )
        return row, text

    async def renew(self, bearer: TokenRecord) -> tuple[TokenRow, str]:
        """A successor of a worker's token, which lives as long as it did.

        Raises: Conflict: it does not expire, or too many were renewed from the same token.
        """
        if not bearer.token_id or bearer.expires_at is None:
            raise errors.Conflict(
                errors.TOKEN_NOT_RENEWABLE, "the token does not expire, so it needs no successor"
            )
        family = self._credentials.known.family(bearer.tenant, bearer.family)
        if len(family) >= MAX_FAMILY:
            raise errors.Conflict(
                errors.TOKEN_NOT_RENEWABLE,
                f"as many tokens as may be are renewed from one: {MAX_FAMILY}",
            )
        lifetime_ms = round((bearer.expires_at - bearer.created_at) * 1000)
        row, text = self.make(
            tenant=bearer.tenant,
            role=bearer.role,
            subject=bearer.subject,
            user=bearer.user,
            label="",
            by=bearer.subject,
            expires_at=self._clock.wall_ms() + lifetime_ms,
            family=bearer.family,
        )
        parent = await self._store.find_token(bearer.tenant, bearer.family)
        if parent is not None:
            row = msgspec.structs.replace(row, label=parent.label)
        await self._credentials.put(row)
        self._audit(bearer, bearer.tenant, "token.renew", row.token_id)
        return row, text

    async def search(
        self, bearer: TokenRecord, *, limit: int, before: tuple[int, str] | None
    ) -> list[TokenRow]:
        """The tokens that the asker may see, newest first."""
        subject = None if bearer.role is Role.ADMIN else bearer.subject
        return await self._store.list_tokens(
            bearer.tenant, limit=limit, before=before, subject=subject
        )

    async def revoke(self, bearer: TokenRecord, token_id: str) -> None:
        """Revoke a token and its family, and end what is open under them. Repeating it changes nothing.

        Raises: NotFound: there is none that the asker may see.
        """
        row = await self._store.find_token(bearer.tenant, token_id)
        if row is None or row.kind == "link" or not _may_see(bearer, row):
            raise errors.NotFound(errors.TOKEN_NOT_FOUND, f"no such token: {token_id[:64]}")
        family = self._credentials.known.family(bearer.tenant, row.family)
        if await self._credentials.revoke(family, bearer.subject):
            self._audit(bearer, bearer.tenant, "token.revoke", token_id)

    async def _user(self, terms: TokenTerms, subject: str) -> str | None:
        """The user whom the token stands for, if the subject is one. A program's stands for no user."""
        if terms.role in PROGRAM_SUBJECTS:
            return None
        found = await self._store.find_user(terms.tenant, subject)
        return None if found is None else found.name

    def _check(self, bearer: TokenRecord, terms: TokenTerms) -> str:
        """The subject of the token, if the asker may make it."""
        if terms.role not in grants_of(bearer.role):
            raise _forbidden(f"a token of role {bearer.role} cannot make one of role {terms.role}")
        is_admin = bearer.role is Role.ADMIN
        if terms.tenant != bearer.tenant and not (is_admin and bearer.tenant == SITE_TENANT):
            raise _forbidden("only an admin of the site makes tokens of another tenant")
        if terms.role is Role.METRICS and terms.tenant != SITE_TENANT:
            raise _forbidden(f"only the tenant {SITE_TENANT} has tokens of role {terms.role}")
        is_home = terms.tenant == bearer.tenant
        own = bearer.subject if is_home else SITE_ADMIN_SUBJECT
        if terms.role in PROGRAM_SUBJECTS and not (is_home and bearer.user is None):
            own = PROGRAM_SUBJECTS[terms.role]
        subject = own if terms.subject is None else terms.subject
        if subject != bearer.subject and not is_admin:
            raise _forbidden("only an admin makes tokens of another subject")
        return subject

    def _audit(self, bearer: TokenRecord, tenant: str, what: str, about: str) -> None:
        self._current.execute(KeepAudit(tenant=tenant, by=bearer.subject, what=what, subject=about))


def _may_see(bearer: TokenRecord, row: TokenRow) -> bool:
    return bearer.role is Role.ADMIN or row.subject == bearer.subject


def _expiry(bearer: TokenRecord, terms: TokenTerms, now: int) -> int | None:
    """When the token expires, in milliseconds. Raises: Refused."""
    usual = DEFAULT_WORKER_TTL_S if terms.role is Role.WORKER else DEFAULT_TTL_S
    is_bound = bearer.kind is CredentialKind.API and bearer.expires_at is not None
    last = round((bearer.expires_at or 0) * 1000) if is_bound else None
    if terms.ttl_s == "default":
        by_default = now + usual * 1000
        return by_default if last is None else min(by_default, last)
    expires_at = None if terms.ttl_s is None else now + terms.ttl_s * 1000
    if last is not None and (expires_at is None or expires_at > last):
        raise errors.Refused(
            errors.REQUEST_INVALID,
            "the token would live longer than the one that it is made with",
            pointer="/ttlSeconds",
        )
    return expires_at


def _forbidden(message: str) -> errors.Refused:
    return errors.Refused(errors.AUTH_FORBIDDEN, message)
