"""Whose a request is: a look at it before anybody has checked whether it may do what it asks.

What is found here only says where the request is answered. Whoever answers it checks the credential; a request that
names a tenant without a right to it is refused there, as it would be here.

Rule 1: what carries its own grant (a signed URL, the token of a task, the address of a signal or a webhook) belongs to
        the tenant of the grant.
Rule 2: everything else belongs to the tenant of its credential; an admin of the site may name another one.
Rule 3: a login belongs to the tenant that it names.
Rule 4: what belongs to nobody that is known belongs to the site: there it is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.api.cookies import session_text
from astraflow.api.unchecked import grant_body, query_value
from astraflow.core import errors
from astraflow.core.ids import RunId
from astraflow.core.security.bearer import digest_of
from astraflow.core.security.policy import SITE_TENANT
from astraflow.core.security.rates import KeyedRateLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.api.asgi import Scope
    from astraflow.clock import Clock
    from astraflow.core.security.bearer import ApiTokens
    from astraflow.core.security.keys import KeyRing
    from astraflow.store.cluster import StoredCluster

MAX_KNOWN: Final = 10_000
"""Tokens and addresses whose tenant is remembered. It never changes."""
LOOKUPS_PER_S: Final = 100.0
"""Addresses of webhooks that are looked up; one that is known needs none."""
_API: Final = "/api/v1"
_TASKS: Final = ("/v1/tasks/", f"{_API}/tasks/")
_NAMED_IN_BODY: Final = frozenset(
    {f"{_API}/auth/login", f"{_API}/auth/token", f"{_API}/tokens", f"{_API}/tenants"}
)
_LINK: Final = f"{_API}/auth/link"


class _Named(msgspec.Struct):
    """What may name a tenant in a body; of the wrong type it names none."""

    tenant: Any = None
    code: Any = None


_decode: Final = msgspec.json.Decoder(_Named).decode


class TenantFinder:
    """Use from one loop."""

    def __init__(self, cluster: StoredCluster, ring: KeyRing, clock: Clock) -> None:
        self._cluster = cluster
        self._ring = ring
        self._clock = clock
        self._lookups = KeyedRateLimit(LOOKUPS_PER_S, LOOKUPS_PER_S)
        self._known: OrderedDict[bytes, str] = OrderedDict()

    @staticmethod
    def reads_body(scope: Scope) -> bool:
        """Whether the body of a request may say whose it is."""
        path = scope["path"].rstrip("/")
        return scope["method"] == "POST" and (path in _NAMED_IN_BODY or path == _LINK)

    async def find(self, scope: Scope, body: bytes = b"") -> str:
        """Raises: StoreError."""
        granted = await self._granted(scope)
        if granted is not None:
            return granted
        named = _named_in(body) if self.reads_body(scope) else _Named()
        path = scope["path"].rstrip("/")
        if path == _LINK:
            return await self._of_text(named.code) or SITE_TENANT
        if path.startswith(f"{_API}/auth/") and isinstance(named.tenant, str):
            return named.tenant
        own = await self._of_credential(scope)
        if own != SITE_TENANT:
            return own
        return self._acting(scope, path, named) or own

    def _acting(self, scope: Scope, path: str, named: _Named) -> str | None:
        """The tenant that an admin of the site acts on."""
        if isinstance(named.tenant, str):
            return named.tenant
        prefix = f"{_API}/tenants/"
        if path.startswith(prefix):
            return path.removeprefix(prefix).partition("/")[0]
        return query_value(scope, "tenant")

    # -- credentials ------------------------------------------------------------------------

    async def _of_credential(self, scope: Scope) -> str:
        return await self._of_text(_credential(scope)) or SITE_TENANT

    async def is_new_to(self, known: ApiTokens, scope: Scope) -> bool:
        """Whether a request has a stored credential that this scheduler does not know yet. Raises: StoreError."""
        text = _credential(scope)
        if text is None or await self._of_text(text) is None:
            return False
        return not known.knows(digest_of(text))

    async def _of_text(self, text: object) -> str | None:
        """The tenant of a stored credential."""
        if not isinstance(text, str):
            return None
        try:
            digest = digest_of(text)
        except errors.Refused:
            return None
        return await self._remembered(digest, self._cluster.tenant_of_token, digest)

    # -- grants -----------------------------------------------------------------------------

    async def _granted(self, scope: Scope) -> str | None:
        path = scope["path"]
        if path.startswith(_TASKS):
            return self._of_task(scope)
        if path.startswith(f"{_API}/uploads/"):
            return _tenant_in(grant_body(path.removeprefix(f"{_API}/uploads/")))
        if path.startswith(f"{_API}/signals/"):
            run_id = path.removeprefix(f"{_API}/signals/").partition("/")[0]
            return await self._remembered(
                run_id.encode(), self._cluster.tenant_of_run, RunId(run_id)
            )
        if path.startswith(f"{_API}/hooks/"):
            hook_id = path.removeprefix(f"{_API}/hooks/").partition("/")[0]
            key = hook_id.encode()
            if key not in self._known and self._lookups.take("hooks", self._clock.now()) > 0:
                return None  # somebody tries addresses: they are not found at the site
            return await self._remembered(key, self._cluster.tenant_of_hook, hook_id)
        token = None if _credential(scope) is not None else query_value(scope, "token")
        return None if token is None else _tenant_in(grant_body(token))

    def _of_task(self, scope: Scope) -> str | None:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        body = self._ring.verify(_bearer(given[0]) or "") if given else None
        return None if body is None else _tenant_in(body)

    async def _remembered(self, key: bytes, ask: Callable[[Any], Any], value: object) -> str | None:
        known = self._known.get(key)
        if known is not None:
            return known
        found: str | None = await ask(value)
        if found is not None:
            self._known[key] = found
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return found


def _credential(scope: Scope) -> str | None:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    return _bearer(given[0]) if len(given) == 1 else session_text(scope["headers"])


def _bearer(header: bytes) -> str | None:
    scheme, _, token = header.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _named_in(body: bytes) -> _Named:
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _Named()


def _tenant_in(body: bytes) -> str | None:
    tenant = _named_in(body).tenant
    return tenant if isinstance(tenant, str) else None
