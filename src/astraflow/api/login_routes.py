"""Log in and out: sessions of browsers, tokens for programs, links that work once."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.cookies import csrf_of, is_same_origin, session_text, set_cookie
from astraflow.api.login_page import PAGE, PAGE_WITH_OIDC, POLICY
from astraflow.api.requests import Request, decode_strict
from astraflow.api.responses import NO_CONTENT, Response, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.api.token_routes import new_token
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.tokens import NewToken
from astraflow.core.contract.users import (
    BrowserSession,
    LinkRequest,
    LoginLink,
    LoginRequest,
    PasswordChange,
    TokenLoginRequest,
)
from astraflow.core.security.policy import OWN, PUBLIC, Role
from astraflow.core.timestamps import iso
from astraflow.scheduler.users import UserUpdate
from astraflow.store.rows import TokenRow, UserRow

AUTH: Final = "/api/v1/auth"
HTML: Final = b"text/html; charset=utf-8"
_login: Final = msgspec.json.Decoder(LoginRequest)
_token_login: Final = msgspec.json.Decoder(TokenLoginRequest)
_link: Final = msgspec.json.Decoder(LinkRequest)
_password: Final = msgspec.json.Decoder(PasswordChange)
_COOKIE: Final = {"Set-Cookie": "The session, which scripts cannot read."}


class LoginEndpoints(Endpoints):
    """The endpoints under `/api/v1/auth`, and the page that uses them."""

    @route(
        "POST",
        f"{AUTH}/login",
        PUBLIC,
        "login",
        "log a browser in with a name and a password",
        tag="access",
        text="Attempts are limited for each user and each address (429 with `Retry-After`).",
        body=LoginRequest,
        replies={200: Reply("The session.", BrowserSession, headers=_COOKIE)},
    )
    async def login(self, request: Request[NoQuery]) -> AsgiApp:
        self._refuse_other_sites(request)
        wanted = decode_strict(await request.json_body(), _login)
        user = await self._check(request, wanted)
        return self._opened(request, *await self._scheduler.logins.open_session(user))

    @route(
        "POST",
        f"{AUTH}/token",
        PUBLIC,
        "loginForToken",
        "get a token for a program with a name and a password",
        tag="access",
        text="Attempts are limited as for `login`.",
        body=TokenLoginRequest,
        replies={201: Reply("The token.", NewToken)},
    )
    async def token(self, request: Request[NoQuery]) -> AsgiApp:
        self._refuse_other_sites(request)
        wanted = decode_strict(await request.json_body(), _token_login)
        user = await self._check(request, wanted)
        made = await self._scheduler.logins.make_token(
            user, wanted.label, wanted.ttl_seconds or "default"
        )
        return json_response(new_token(*made), 201)

    @route(
        "POST",
        f"{AUTH}/link",
        PUBLIC,
        "redeemLink",
        "log a browser in with the code of a login link, once",
        tag="access",
        body=LinkRequest,
        replies={200: Reply("The session.", BrowserSession, headers=_COOKIE)},
    )
    async def redeem(self, request: Request[NoQuery]) -> AsgiApp:
        self._refuse_other_sites(request)
        wanted = decode_strict(await request.json_body(), _link)
        opened = await self._scheduler.logins.redeem_link(wanted.code, address_of(request))
        return self._opened(request, *opened)

    @route("POST", f"{AUTH}/links", OWN, "createLink", "make a login link for yourself",
           tag="access", replies={201: Reply("The link, which works once.", LoginLink)})  # fmt: skip
    async def create_link(self, request: Request[NoQuery]) -> AsgiApp:
        row, code = await self._scheduler.logins.make_link(request.bearer)
        assert row.expires_at is not None
        link = LoginLink(path=f"/login#{code}", expires_at=iso(row.expires_at))
        return json_response(link, 201)

    @route("GET", f"{AUTH}/session", OWN, "getSession", "show who is logged in", tag="access",
           replies=BrowserSession)  # fmt: skip
    async def session(self, request: Request[NoQuery]) -> AsgiApp:
        bearer = request.bearer
        text = session_text(request.scope["headers"])
        is_cookie = text is not None and request.header(b"authorization") is None
        until = bearer.expires_at
        view = BrowserSession(
            tenant=bearer.tenant,
            subject=bearer.subject,
            role=bearer.role,
            expires_at=None if until is None else iso(int(until * 1000)),
            csrf_token=csrf_of(text) if is_cookie and text is not None else None,
        )
        return json_response(view)

    @route(
        "POST",
        f"{AUTH}/logout",
        OWN,
        "logout",
        "end the session or the token that this is asked with",
        tag="access",
        replies={204: Reply("It is over.", headers={"Set-Cookie": "Takes the cookie away."})},
    )
    async def logout(self, request: Request[NoQuery]) -> AsgiApp:
        await self._scheduler.logins.log_out(request.bearer)
        gone = set_cookie("", 0, is_secure=self._is_secure(request))
        return Response(b"", 204, headers=[gone])

    @route("POST", f"{AUTH}/password", OWN, "changePassword", "change your own password",
           tag="access", text="Ends all your sessions.", body=PasswordChange,
           replies={204: Reply("It is changed.")})  # fmt: skip
    async def change_password(self, request: Request[NoQuery]) -> AsgiApp:
        bearer = request.bearer
        if bearer.user is None:
            raise errors.NotFound(errors.USER_NOT_FOUND, "the credential is not that of a user")
        wanted = decode_strict(await request.json_body(), _password)
        await self._scheduler.logins.check(
            bearer.tenant, bearer.user, wanted.current, address_of(request)
        )
        update = UserUpdate(password=wanted.new)
        await self._scheduler.users.change(bearer.tenant, bearer.user, update, by=bearer.user)
        return NO_CONTENT

    @route("GET", "/login", PUBLIC, "getLoginPage", "the page to log in with", tag="system",
           replies={200: Reply("A page.", None, "text/html")})  # fmt: skip
    async def page(self, request: Request[NoQuery]) -> AsgiApp:
        page = PAGE_WITH_OIDC if self._scheduler.oidc.is_on else PAGE
        return Response(page, 200, HTML, [(b"content-security-policy", POLICY)])

    async def _check(self, request: Request[Any], wanted: LoginRequest) -> UserRow:
        name = wanted.user.strip().lower()
        return await self._scheduler.logins.check(
            wanted.tenant.strip(), name, wanted.password, address_of(request)
        )

    def _opened(self, request: Request[Any], row: TokenRow, text: str) -> Response:
        assert row.expires_at is not None
        view = BrowserSession(
            tenant=row.tenant,
            subject=row.subject,
            role=Role(row.role),
            expires_at=iso(row.expires_at),
            csrf_token=csrf_of(text),
        )
        age_s = round((row.expires_at - row.created_at) / 1000)
        cookie = set_cookie(text, age_s, is_secure=self._is_secure(request))
        return json_response(view, headers=[cookie])

    def _refuse_other_sites(self, request: Request[Any]) -> None:
        """A page of another site must not log a browser in as somebody else."""
        if not is_same_origin(request.scope["headers"], self._services.settings.public_url):
            raise errors.Refused(errors.AUTH_CSRF, errors.AUTH_CSRF.says)

    def _is_secure(self, request: Request[Any]) -> bool:
        return is_secure(request, self._services.settings.public_url)


def is_secure(request: Request[Any], public_url: str | None) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy before us."""
    is_proxied = public_url is not None and public_url.startswith("https://")
    return request.scope.get("scheme") == "https" or is_proxied


def address_of(request: Request[Any]) -> str:
    client = request.scope.get("client")
    return str(client[0]) if client else ""
