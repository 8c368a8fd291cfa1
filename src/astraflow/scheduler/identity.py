"""The services about who may get in, composed: credentials, tokens, users, logins, tenants."""

from __future__ import annotations

from astraflow.core.security.bearer import ApiTokens
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.scheduler.logins import Logins
from astraflow.scheduler.oidc_logins import OidcLogins
from astraflow.scheduler.passwords import Passwords
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.tenants import Tenants
from astraflow.scheduler.tokens import Tokens
from astraflow.scheduler.users import Users


class IdentityServices:
    """Made once for a scheduler. `known`: the tokens of the settings."""

    def __init__(self, parts: Parts, current: Current, known: ApiTokens) -> None:
        store, clock = parts.store, parts.clock
        passwords = Passwords()
        self.credentials = Credentials(store, current, clock, known)
        self.tokens = Tokens(store, self.credentials, current, clock, parts.ids)
        self.users = Users(store, self.credentials, passwords, current, clock)
        self.logins = Logins(
            store,
            self.credentials,
            self.tokens,
            passwords,
            current,
            clock,
            session_ttl_s=parts.session_ttl_s,
            session_idle_s=parts.session_idle_s,
        )
        self.tenants = Tenants(
            store, current, self.credentials, clock, requests_per_second=parts.requests_per_second
        )
        self.oidc = OidcLogins(parts.oidc, self.users, self.logins, self.tenants, current, clock)
