"""An OpenID Connect issuer as the scheduler asks it: its description, its keys, a token for a code.

Answers are bounded (`bounded_requests.py`). The keys are fetched again when a token
is signed with one that is not known: issuers change their keys.
"""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from astraflow.clock import Clock
from astraflow.config import Secret
from astraflow.config.rules import is_private_url
from astraflow.core import errors
from astraflow.core.security.oidc import OidcFlow, claims_problem
from astraflow.lean_httpx import httpx
from astraflow.scheduler.bounded_requests import NoAnswer, bounded_request

ALGORITHMS: Final = ("RS256", "ES256")
"""Never what the token asks for: `none` and those with a shared secret are no proof."""
DESCRIPTION_S: Final = 3_600.0
_log: Final = logging.getLogger(__name__)


class IssuerDescription(msgspec.Struct, frozen=True):
    """What we use of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] = msgspec.field(
        default_factory=lambda: ["client_secret_basic"]
    )


class _TokenAnswer(msgspec.Struct, frozen=True):
    id_token: str


class OidcIssuer:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        url: str,
        client_id: str,
        secret: Secret | None,
        scopes: tuple[str, ...],
        redirect_uri: str,
        clock: Clock,
    ) -> None:
        self._url = url.rstrip("/")
        self._client_id = client_id
        self._secret = secret
        self._scopes = scopes
        self._redirect_uri = redirect_uri
        self._clock = clock
        self._description: IssuerDescription | None = None
        self._described_at = 0.0
        self._keys: KeySet | None = None

    async def login_url(self, flow: OidcFlow) -> str:
        """Where the browser goes to log in. Raises: Unavailable."""
        described = await self._describe()
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self._scopes),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in described.authorization_endpoint else "?"
        return f"{described.authorization_endpoint}{joint}{urlencode(query)}"

    async def claims(self, flow: OidcFlow, code: str, issuer: str) -> dict[str, Any]:
        """What the issuer says about the person. `issuer`: as the callback names it, or empty.

        Raises:
            Unavailable: the issuer does not answer.
            Refused: it does not accept the code, or its token is not one of this login.
        """
        described = await self._describe()
        if issuer and issuer != described.issuer:
            raise _refused("the callback is of another issuer")
        token = await self._exchange(described, flow, code)
        claims = await self._verified(described, token)
        problem = claims_problem(
            claims,
            issuer=described.issuer,
            client_id=self._client_id,
            nonce=flow.nonce,
            wall=self._clock.wall_ms() / 1000,
        )
        if problem is not None:
            raise _refused(problem)
        return claims

    async def _describe(self) -> IssuerDescription:
        now = self._clock.now()
        if self._description is not None and now < self._described_at + DESCRIPTION_S:
            return self._description
        status, raw = await _ask("GET", f"{self._url}/.well-known/openid-configuration")
        if status != httpx.codes.OK:
            raise _away(f"its description has status {status}")
        try:
            described = msgspec.json.decode(raw, type=IssuerDescription)
        except msgspec.DecodeError as error:
            raise _away(f"its description cannot be read: {error}") from error
        if described.issuer.rstrip("/") != self._url:
            raise _away(f"it calls itself {described.issuer[:200]}")
        asked = (described.authorization_endpoint, described.token_endpoint, described.jwks_uri)
        if not all(is_private_url(one) for one in asked):
            raise _away("it names an address without TLS")
        self._description, self._described_at = described, now
        return described

    async def _exchange(self, described: IssuerDescription, flow: OidcFlow, code: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "client_id": self._client_id,
            "code_verifier": flow.verifier,
        }
        auth: httpx.BasicAuth | None = None
        if self._secret is not None:
            if "client_secret_basic" in described.token_endpoint_auth_methods_supported:
                # RFC 6749 §2.3.1: both are encoded before they are joined.
                auth = httpx.BasicAuth(
                    quote(self._client_id, safe=""), quote(self._secret.reveal(), safe="")
                )
            else:
                form["client_secret"] = self._secret.reveal()
        status, raw = await _ask("POST", described.token_endpoint, data=form, auth=auth)
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise _away(f"its token endpoint has status {status}")
        if status != httpx.codes.OK:
            raise _refused(f"the issuer does not accept the code, with status {status}")
        try:
            return msgspec.json.decode(raw, type=_TokenAnswer).id_token
        except msgspec.DecodeError as error:
            raise _refused("the issuer gave no ID token") from error

    async def _verified(self, described: IssuerDescription, token: str) -> dict[str, Any]:
        """The claims of a token that the issuer has signed. Raises: Refused; Unavailable."""
        if self._keys is not None:
            claims = _decoded(token, self._keys)
            if claims is not None:
                return claims
        self._keys = await _fetch_keys(described.jwks_uri)
        claims = _decoded(token, self._keys)
        if claims is None:
            raise _refused("the token is not signed by the issuer")
        return claims


def _decoded(token: str, keys: KeySet) -> dict[str, Any] | None:
    try:
        return dict(jwt.decode(token, keys, algorithms=ALGORITHMS).claims)
    except (JoseError, ValueError, TypeError) as error:
        _log.info("an ID token was not accepted: %s", error)
        return None


async def _fetch_keys(url: str) -> KeySet:
    status, raw = await _ask("GET", url)
    if status != httpx.codes.OK:
        raise _away(f"its keys have status {status}")
    try:
        return KeySet.import_key_set(msgspec.json.decode(raw))
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise _away("its keys cannot be read") from error


async def _ask(method: str, url: str, **content: Any) -> tuple[int, bytes]:
    """Status and body. Raises: Unavailable."""
    try:
        return await bounded_request(method, url, **content)
    except NoAnswer as error:
        raise _away(f"{urlsplit(url).netloc} {error}") from error


def _away(why: str) -> errors.Unavailable:
    return errors.Unavailable(
        errors.AUTH_OIDC_UNAVAILABLE, f"the issuer of logins cannot be used: {why}"
    )


def _refused(why: str) -> errors.Refused:
    return errors.Refused(errors.AUTH_OIDC_REFUSED, why)
