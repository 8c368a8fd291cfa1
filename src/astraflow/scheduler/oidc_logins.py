"""Logging in at an OpenID Connect issuer: begun with a redirect, ended with a callback."""

from __future__ import annotations

import logging
import secrets
from typing import Any, Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.users import OidcCallback
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.security.oidc import (
    FLOW_TTL_S,
    OidcFlow,
    groups_of,
    other_user_name_of,
    user_name_of,
)
from astraflow.core.security.policy import SITE_TENANT
from astraflow.scheduler.current import Current
from astraflow.scheduler.logins import Logins
from astraflow.scheduler.oidc_terms import OidcTerms
from astraflow.scheduler.tenants import Tenants
from astraflow.scheduler.users import OidcPerson, Users
from astraflow.store.rows import TokenRow, UserRow

_log: Final = logging.getLogger(__name__)


class OidcLogins:
    """What the API asks. Without terms there is no such login."""

    def __init__(
        self,
        terms: OidcTerms | None,
        users: Users,
        logins: Logins,
        tenants: Tenants,
        current: Current,
        clock: Clock,
    ) -> None:
        self._configured = terms
        self._users = users
        self._logins = logins
        self._tenants = tenants
        self._current = current
        self._clock = clock

    @property
    def is_on(self) -> bool:
        return self._configured is not None

    async def begin(self, address: str) -> tuple[str, str]:
        """Where the browser goes, and the text of its cookie.

        Raises: Unavailable: the issuer is away, or there were too many attempts; Refused: it is not configured.
        """
        terms = self._terms()
        self._logins.limit_address(address)
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        flow = OidcFlow(state, nonce, verifier, int(self._wall()) + FLOW_TTL_S)
        return await terms.issuer.login_url(flow), terms.flows.sign(flow)

    async def end(self, cookie: str, given: OidcCallback, address: str) -> tuple[TokenRow, str]:
        """The session of the browser that comes back from the issuer; its row and the text of its cookie.

        Raises:
            Refused: it is not the end of a login that this browser began, or the person may not log in.
            Unavailable: the issuer is away, or there were too many attempts.
        """
        terms = self._terms()
        self._logins.limit_address(address)
        if given.error or not given.code:
            said = given.error[:200] or "no code"
            raise errors.Refused(errors.AUTH_OIDC_REFUSED, f"the issuer said: {said}")
        flow = terms.flows.take(cookie, given.state, self._wall())
        if flow is None:
            raise errors.Refused(
                errors.AUTH_OIDC_REFUSED, "this browser began no such login, or it was ended before"
            )
        claims = await terms.issuer.claims(flow, given.code, given.iss)
        person = _person_of(claims)
        name = person.names[0]
        granted = terms.roles.granted(groups_of(claims, terms.groups_claim))
        if granted is None:
            self._audit(SITE_TENANT, name, errors.AUTH_NO_GROUP)
            raise errors.Refused(errors.AUTH_NO_GROUP, errors.AUTH_NO_GROUP.says)
        tenant, role = granted
        await self._refuse_missing(tenant, name)
        user = await self._users.admit(tenant, person, role)
        self._refuse_barred(user)
        return await self._logins.open_session(user)

    async def _refuse_missing(self, tenant: str, name: str) -> None:
        if not await self._tenants.exists(tenant):
            self._audit(SITE_TENANT, name, errors.TENANT_NOT_FOUND)
            message = f"your group has a role in a tenant that does not exist: {tenant}"
            raise errors.Refused(errors.AUTH_NO_GROUP, message)

    def _refuse_barred(self, user: UserRow) -> None:
        if user.is_disabled or self._logins.is_suspended(user.tenant):
            self._audit(user.tenant, user.name, errors.AUTH_BAD_LOGIN)
            raise errors.Refused(errors.AUTH_BAD_LOGIN, "the user may not log in")

    def _audit(self, tenant: str, name: str, code: errors.Code) -> None:
        audit = KeepAudit(tenant=tenant, by=name, what="login", code=code.code)
        self._current.execute(audit)
        _log.info("a login was refused: %s", name, extra={"tenant": tenant, "code": code.code})

    def _terms(self) -> OidcTerms:
        if self._configured is None:
            raise errors.NotFound(errors.REQUEST_NO_ROUTE, "no issuer of logins is configured")
        return self._configured

    def _wall(self) -> float:
        return self._clock.wall_ms() / 1000


def _person_of(claims: dict[str, Any]) -> OidcPerson:
    subject, issuer = claims["sub"], claims["iss"]
    names = (user_name_of(subject), other_user_name_of(subject, issuer))
    return OidcPerson(issuer=issuer, names=names, shown=_shown(claims.get("email")))


def _shown(email: object) -> str:
    """Who made the user, for people: users of an issuer have names that say little."""
    is_fit = isinstance(email, str) and len(email) <= 128 and email.isprintable()
    return f"oidc:{email}" if is_fit else "oidc"
