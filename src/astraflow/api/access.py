"""Who gets in: the one place where a request's token and its action meet the table (`security.policy`).

1. An action is "METHOD /path/{template}". One without a row is refused to everybody.
2. 401 for no token or a bad one, with one answer for all; 403 for a role that may not. What belongs to another
   tenant is not seen here: it is not found later.
3. The name that the client called us by (`Host`) must be ours: a page of another name that a browser resolved to this
   machine must not talk to it (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from astraflow.clock import Clock
from astraflow.config import SchedulerSettings
from astraflow.core import errors
from astraflow.core.errors import Code, Refused
from astraflow.core.security.bearer import ApiTokens, TokenRecord
from astraflow.core.security.policy import PUBLIC, SIGNED, allows

__all__ = ["NOT_LET_IN", "Doorkeeper", "Forbidden", "host_name"]

NOT_LET_IN: Final = (
    "give a valid token as Authorization: Bearer <token>, or a link that is still valid"
)
"""One answer for all who are not let in."""

_Raw = Iterable[tuple[bytes, bytes]]
_LOOPBACK_NAMES: Final = frozenset({"localhost"})
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


class Forbidden(Refused):
    """A good credential whose role may not do this."""

    def __init__(self, bearer: TokenRecord) -> None:
        super().__init__(
            errors.AUTH_FORBIDDEN, f"the role of the token may not do this: {bearer.role}"
        )
        self.bearer = bearer


class Doorkeeper:
    """Lets requests in, or raises why not."""

    def __init__(self, tokens: ApiTokens, clock: Clock, settings: SchedulerSettings) -> None:
        self._tokens = tokens
        self._clock = clock
        self._names = {name.lower() for name in settings.allowed_hosts} | _LOOPBACK_NAMES
        if settings.host not in _ANY:
            self._names.add(settings.host.lower())
        # Bound to every address, any of this machine's addresses is a right name: an address cannot be rebound.
        self._takes_addresses = not settings.is_loopback

    def admit(self, action: str, headers: _Raw) -> TokenRecord | None:
        """The credential that may take this action; None if it needs none, or has its own proof: a signed link.

        Raises:
            Forbidden: its role may not do this.
            Refused: with 401.
        """
        if action in PUBLIC:
            return None
        if action in SIGNED and not any(name == b"authorization" for name, _ in headers):
            return None
        bearer = self._authenticate(headers)
        if not allows(bearer.role, action):
            raise Forbidden(bearer)
        return bearer

    def _authenticate(self, headers: _Raw) -> TokenRecord:
        given = [value for name, value in headers if name == b"authorization"]
        answer: TokenRecord | Code = errors.AUTH_INVALID_TOKEN
        if len(given) == 1:
            scheme, _, token = given[0].decode("latin-1").partition(" ")
            token = token.strip()
            if scheme.lower() == "bearer" and token:
                answer = self._tokens.verify(token, self._clock.wall_ms() / 1000)
        if isinstance(answer, Code):
            raise Refused(answer, NOT_LET_IN)
        return answer

    def knows_host(self, headers: _Raw) -> bool:
        """Whether a request was sent to a name of ours."""
        given = [value for name, value in headers if name == b"host"]
        if len(given) != 1:
            return False
        name = host_name(given[0].decode("latin-1"))
        if name is None:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._takes_addresses


def host_name(header: str) -> str | None:
    """The name in a `Host` header, without the port; None if it is malformed."""
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        name, _, port = header.partition(":")
    if not name or (port and not port.isdigit()):
        return None
    return name.lower()
