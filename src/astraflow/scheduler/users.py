"""Users: made, changed and deleted by an admin, who also sets their passwords.

What a user is logged in with ends with the right to it: a disabled or deleted user loses all sessions and tokens,
another role ends the sessions and the tokens that may do more than it, another password ends the sessions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.security.bearer import CredentialKind, TokenRecord
from astraflow.core.security.policy import Role, grants_of
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.scheduler.passwords import NO_PASSWORD, Passwords
from astraflow.store.rows import UserRow
from astraflow.store.store import Store


class OidcPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has logged in at an issuer. `names`: the user has the first that is free or theirs."""

    issuer: str
    names: tuple[str, ...]
    shown: str
    """Who it is, for people."""


class UserUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What is to change of a user; None stays."""

    role: Role | None = None
    is_disabled: bool | None = None
    password: str | None = None


class Users:
    """What the API asks about users."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        passwords: Passwords,
        current: Current,
        clock: Clock,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._passwords = passwords
        self._current = current
        self._clock = clock

    async def create(
        self, tenant: str, name: str, role: Role, password: str, *, by: str
    ) -> UserRow:
        """Raises: Conflict: there is one of this name."""
        password_hash = await self._passwords.hash(password)
        now = self._clock.wall_ms()
        row = UserRow(
            tenant=tenant,
            name=name,
            role=role.value,
            password_hash=password_hash,
            created_at=now,
            created_by=by,
            updated_at=now,
        )
        if not await self._store.create_user(self._current.claim, row):
            raise errors.Conflict(errors.USER_CONFLICT, f"there is a user of this name: {name}")
        self._audit(tenant, by, "user.create", name)
        return row

    async def admit(self, tenant: str, person: OidcPerson, role: Role) -> UserRow:
        """The user of somebody who has logged in at an issuer, with the role that the issuer's groups give now; made at
        the first login. It has no password.

        Raises: Conflict: both names that the person can have are taken.
        """
        for name in person.names:
            user = await self._of_issuer(tenant, name, person, role)
            if user.issuer != person.issuer:
                continue
            if user.role == role.value or user.is_disabled:
                return user
            return await self.change(tenant, name, UserUpdate(role=role), by=person.shown)
        raise errors.Conflict(errors.USER_CONFLICT, f"there is a user of this name: {name}")

    async def _of_issuer(self, tenant: str, name: str, person: OidcPerson, role: Role) -> UserRow:
        """The user of this name, who may be somebody else; made if there is none."""
        now = self._clock.wall_ms()
        made = UserRow(
            tenant=tenant,
            name=name,
            role=role.value,
            password_hash=NO_PASSWORD,
            created_at=now,
            created_by=person.shown,
            updated_at=now,
            issuer=person.issuer,
        )
        known = await self._store.find_user(tenant, name)
        if known is None and await self._store.create_user(self._current.claim, made):
            self._audit(tenant, person.shown, "user.create", name)
            return made
        known = known or await self.get(tenant, name)
        if known.issuer or known.password_hash != NO_PASSWORD:
            return known
        # It is older than this column: of the only issuer that there was.
        taken = await self._store.change_user(
            self._current.claim, tenant, name, if_hash=NO_PASSWORD, issuer=person.issuer
        )
        return taken or known

    async def get(self, tenant: str, name: str) -> UserRow:
        """Raises: NotFound."""
        row = await self._store.find_user(tenant, name)
        if row is None:
            raise _missing(name)
        return row

    async def search(self, tenant: str, *, limit: int, after: str) -> list[UserRow]:
        return await self._store.list_users(tenant, limit=limit, after=after)

    async def change(self, tenant: str, name: str, update: UserUpdate, *, by: str) -> UserRow:
        """Raises: NotFound."""
        changes: dict[str, Any] = {"updated_at": self._clock.wall_ms()}
        if update.role is not None:
            changes["role"] = update.role.value
        if update.is_disabled is not None:
            changes["is_disabled"] = update.is_disabled
        if update.password is not None:
            changes["password_hash"] = await self._passwords.hash(update.password)
        before = await self.get(tenant, name)
        row = await self._store.change_user(self._current.claim, tenant, name, **changes)
        if row is None:
            raise _missing(name)
        await self._credentials.revoke(self._ended(before, row, update), by)
        self._audit(tenant, by, "user.change", name)
        return row

    async def delete(self, tenant: str, name: str, *, by: str) -> None:
        """Raises: NotFound."""
        if not await self._store.delete_user(self._current.claim, tenant, name):
            raise _missing(name)
        await self._credentials.revoke(self._credentials.known.of_user(tenant, name), by)
        self._audit(tenant, by, "user.delete", name)

    def _ended(self, before: UserRow, after: UserRow, update: UserUpdate) -> list[TokenRecord]:
        """What the user loses by a change."""
        held = self._credentials.known.of_user(after.tenant, after.name)
        if after.is_disabled:
            return held
        granted = grants_of(Role(after.role))
        ends_sessions = update.password is not None or before.role != after.role
        return [
            one
            for one in held
            if one.role not in granted or (ends_sessions and one.kind is not CredentialKind.API)
        ]

    def _audit(self, tenant: str, by: str, what: str, name: str) -> None:
        self._current.execute(KeepAudit(tenant=tenant, by=by, what=what, subject=name))


def _missing(name: str) -> errors.NotFound:
    return errors.NotFound(errors.USER_NOT_FOUND, f"no such user: {name[:64]}")
