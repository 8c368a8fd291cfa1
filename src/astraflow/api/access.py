"""Authentication and authorization of requests.

1. 401 for no token or a bad one, always with the same response; 403 for a role that the route does not allow. What
   belongs to another tenant is not decided here: it is not found later.
2. The `Host` of a request must be one of ours: a page of another site whose name was made to resolve to this machine
   must not talk to it (DNS rebinding).
3. A browser has a cookie instead of a token. What it changes needs the CSRF token of the session, too.
4. A response that takes long is cut off when its credential is revoked or expires.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from typing import Final

from astraflow.api.asgi import AsgiApp, Receive, Scope, Send
from astraflow.api.cookies import CSRF_HEADER, csrf_of, is_same_origin, session_text
from astraflow.api.responses import DROP, PIECE_BYTES, Response
from astraflow.config import SchedulerSettings
from astraflow.core import errors
from astraflow.core.errors import Code, Refused
from astraflow.core.security.bearer import CredentialKind, TokenRecord
from astraflow.core.security.policy import SITE_TENANT, Access, Role
from astraflow.scheduler.credentials import Credentials

UNAUTHENTICATED: Final = (
    "send a valid token as Authorization: Bearer <token>, or use a signed URL that has not expired"
)
"""One message for all reasons: nothing tells an expired token from one that never was."""

_Headers = Iterable[tuple[bytes, bytes]]
_LOOPBACK_NAMES: Final = frozenset({"localhost"})
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


class Forbidden(Refused):
    """The credential is valid, but its role is not allowed to do this."""

    def __init__(self, bearer: TokenRecord) -> None:
        super().__init__(
            errors.AUTH_FORBIDDEN, f"the role of the token does not allow this: {bearer.role}"
        )
        self.bearer = bearer


def acting_tenant(bearer: TokenRecord, wanted: str | None) -> str:
    """The tenant that an admin acts on: the own one, or for an admin of the site any.

    Raises: Forbidden.
    """
    if wanted is None or wanted == bearer.tenant:
        return bearer.tenant
    if bearer.role is not Role.ADMIN or bearer.tenant != SITE_TENANT:
        raise Forbidden(bearer)
    return wanted


class Gate:
    """Lets requests in, or raises why not."""

    def __init__(self, credentials: Credentials, settings: SchedulerSettings) -> None:
        self._credentials = credentials
        self._public_url = settings.public_url
        self._names = {name.lower() for name in settings.allowed_hosts} | _LOOPBACK_NAMES
        if settings.host not in _ANY:
            self._names.add(settings.host.lower())
        # A server that is bound to every address takes every address as its name: an address cannot be rebound.
        self._takes_addresses = not settings.is_loopback

    def admit(self, access: Access, method: str, headers: _Headers) -> TokenRecord | None:
        """The credential of a request; None if its route is public, or a signed URL has to open it.

        Raises:
            Forbidden: the role of the credential is not allowed to use the route.
            Refused: with 401.
        """
        if access.is_public or access.is_task:
            return None
        given = [value for name, value in headers if name == b"authorization"]
        session = None if given else session_text(headers)
        if access.is_signed and not given and session is None:
            return None
        bearer = (
            self._authenticate(given)
            if session is None
            else self._session(session, method, headers)
        )
        if not access.allows(bearer.role) or (access.is_site and bearer.tenant != SITE_TENANT):
            raise Forbidden(bearer)
        return bearer

    def _session(self, text: str, method: str, headers: _Headers) -> TokenRecord:
        """Whose cookie it is. What changes something must come from a page of ours that knows the CSRF token."""
        wall = self._credentials.wall
        found = self._credentials.known.verify(text, wall, CredentialKind.SESSION)
        if isinstance(found, Code):
            raise Refused(found, UNAUTHENTICATED)
        if method not in ("GET", "HEAD"):
            told = [value for name, value in headers if name == CSRF_HEADER]
            is_told = len(told) == 1 and hmac.compare_digest(told[0], csrf_of(text).encode())
            if not is_told or not is_same_origin(headers, self._public_url):
                raise Refused(errors.AUTH_CSRF, errors.AUTH_CSRF.says)
        return found

    def _authenticate(self, given: list[bytes]) -> TokenRecord:
        found: TokenRecord | Code = errors.AUTH_INVALID_TOKEN
        if len(given) == 1:
            scheme, _, token = given[0].decode("latin-1").partition(" ")
            token = token.strip()
            if scheme.lower() == "bearer" and token:
                found = self._credentials.known.verify(token, self._credentials.wall)
        if isinstance(found, Code):
            raise Refused(found, UNAUTHENTICATED)
        return found

    def watched(self, bearer: TokenRecord, response: AsgiApp) -> AsgiApp:
        """A response that ends when the credential does, if it may take long."""
        if type(response) is Response and len(response.body) <= PIECE_BYTES:
            return response
        return _Watched(self._credentials, bearer, response)

    def knows_host(self, headers: _Headers) -> bool:
        """Whether the `Host` of a request is one of ours."""
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


class _Watched:
    """A stream or a download, which is cut off when its credential is over. A stream says why."""

    __slots__ = ("_bearer", "_credentials", "_response")

    def __init__(self, credentials: Credentials, bearer: TokenRecord, response: AsgiApp) -> None:
        self._credentials = credentials
        self._bearer = bearer
        self._response = response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        drop = (scope.get("extensions") or {}).get(DROP)
        if drop is None:
            await self._response(scope, receive, send)
            return
        last = getattr(self._response, "farewell", b"")
        with self._credentials.watch(self._bearer, lambda: drop(last)):
            await self._response(scope, receive, send)


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
