"""Log in at an OpenID Connect issuer. A browser comes here by itself, so that refusals are pages."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, Final

from astraflow.api.asgi import AsgiApp
from astraflow.api.cookies import cookie_text, set_cookie
from astraflow.api.login_page import POLICY, refusal_page
from astraflow.api.login_routes import AUTH, HTML, address_of, is_secure
from astraflow.api.requests import Request
from astraflow.api.responses import Response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.users import OidcCallback
from astraflow.core.security.oidc import FLOW_TTL_S
from astraflow.core.security.policy import PUBLIC

OIDC: Final = f"{AUTH}/oidc"
COOKIE: Final = "astra_oidc"
_log: Final = logging.getLogger(__name__)
_REFUSALS: Final = {
    401: Reply("It is not the end of a login that this browser began: a page.", None, "text/html"),
    403: Reply("The person may not log in here: a page.", None, "text/html"),
    503: Reply("The issuer does not answer: a page.", None, "text/html"),
}


class OidcEndpoints(Endpoints):
    """The endpoints under `/api/v1/auth/oidc`."""

    @route("GET", f"{OIDC}/login", PUBLIC, "beginOidcLogin",
           "send a browser to the OpenID Connect issuer", tag="access",
           replies={302: Reply("To the issuer.", headers={"Location": "The issuer."}),
                    503: _REFUSALS[503]})  # fmt: skip
    async def begin(self, request: Request[NoQuery]) -> AsgiApp:
        try:
            url, text = await self._scheduler.oidc.begin(address_of(request))
        except errors.Unavailable as error:
            return self._refused(request, error)
        headers = [(b"location", url.encode("latin-1")), self._cookie(request, text, FLOW_TTL_S)]
        return Response(b"", HTTPStatus.FOUND, headers=headers)

    @route("GET", f"{OIDC}/callback", PUBLIC, "endOidcLogin",
           "log a browser in that comes back from the OpenID Connect issuer", tag="access",
           query=OidcCallback,
           replies={303: Reply("Logged in, to `/login`.", headers={"Location": "The page."}),
                    **_REFUSALS})  # fmt: skip
    async def end(self, request: Request[OidcCallback]) -> AsgiApp:
        given = request.query
        cookie = cookie_text(request.scope["headers"], COOKIE) or ""
        try:
            row, text = await self._scheduler.oidc.end(cookie, given, address_of(request))
        except (errors.Refused, errors.Unavailable) as error:
            return self._refused(request, error)
        assert row.expires_at is not None
        age_s = round((row.expires_at - row.created_at) / 1000)
        session = set_cookie(text, age_s, is_secure=self._is_secure(request))
        headers = [(b"location", b"/login"), session, self._cookie(request, "", 0)]
        return Response(b"", HTTPStatus.SEE_OTHER, headers=headers)

    def _refused(self, request: Request[Any], error: errors.AstraflowError) -> Response:
        code = error.code
        _log.info("a login at the issuer failed: %s", error.message, extra={"code": code.code})
        # Why a token is no good is nothing for who sent it.
        message = code.says if code is errors.AUTH_OIDC_REFUSED else error.message
        headers = [(b"content-security-policy", POLICY), self._cookie(request, "", 0)]
        body = refusal_page(message, code.code)
        return Response(body, code.http, HTML, headers)

    def _cookie(self, request: Request[Any], text: str, age_s: int) -> tuple[bytes, bytes]:
        return set_cookie(text, age_s, is_secure=self._is_secure(request), name=COOKIE, path=OIDC)

    def _is_secure(self, request: Request[Any]) -> bool:
        return is_secure(request, self._services.settings.public_url)
