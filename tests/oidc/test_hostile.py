"""Tokens and answers that no honest issuer gives, over real HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import ECKey, RSAKey

from tests.oidc.browser import CALLBACK, LOGIN, Browser, refused
from tests.oidc.hostile import HostileIssuer, b64, hostile_issuer
from tests.processes.system import System, running


@pytest.fixture(scope="module")
def shared() -> Iterator[HostileIssuer]:
    with hostile_issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, shared: HostileIssuer) -> Iterator[System]:
    environ = {
        "ASTRA_SCHEDULER_OIDC_ISSUER_URL": shared.url,
        "ASTRA_SCHEDULER_OIDC_CLIENT_ID": "astra",
        "ASTRA_SCHEDULER_OIDC_ROLES": "ops=operator",
    }
    with running(tmp_path_factory.mktemp("site"), environ=environ) as system:
        yield system


@pytest.fixture
def issuer(shared: HostileIssuer) -> HostileIssuer:
    shared.reset()
    return shared


@pytest.fixture
def browser(site: System) -> Iterator[Browser]:
    browser = Browser(site)
    yield browser
    browser.close()


def log_in(browser: Browser, issuer: HostileIssuer, **more: str) -> httpx.Response:
    code, state = issuer.authorize(browser.begin())
    given = {"code": code, "state": state, **more}
    return browser.http.get(browser.site.url + CALLBACK, params=given)


def raw_token(claims: dict[str, Any], head: dict[str, Any], key: bytes = b"") -> str:
    signed = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
    mac = hmac.digest(key, signed.encode(), hashlib.sha256) if key else b""
    return f"{signed}.{b64(mac)}"


def test_an_honest_token_is_accepted(issuer: HostileIssuer, browser: Browser) -> None:
    more = {"iss": issuer.url, "session_state": "x", "scope": "openid"}
    assert log_in(browser, issuer, **more).status_code == 303
    assert browser.session()["subject"] == "oidc-mallory"
    assert issuer.asked[-1]["client_id"] == "astra"
    assert "client_secret" not in issuer.asked[-1]


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": ["astra", "another"]},
        {"iss": "http://127.0.0.1:1"},
        {"exp": int(time.time()) - 120},
        {"iat": int(time.time()) + 3_600},
        {"nonce": "another"},
        {"nonce": None},
        {"sub": ""},
    ],
)
def test_a_token_of_another_login_is_refused(
    issuer: HostileIssuer, browser: Browser, claims: dict[str, Any]
) -> None:
    issuer.claims = claims
    refused(log_in(browser, issuer), 401, "E.AUTH.OIDC_REFUSED")
    assert browser.session() is None


def _public_pem(issuer: HostileIssuer) -> bytes:
    return issuer.key.as_pem(private=False)


FORGERIES: dict[str, Callable[[HostileIssuer, dict[str, Any]], str]] = {
    "none": lambda _, claims: raw_token(claims, {"alg": "none"}),
    "none with a key": lambda issuer, claims: raw_token(
        claims, {"alg": "none", "kid": issuer.key.kid}
    ),
    "HS256 with the public key": lambda issuer, claims: raw_token(
        claims, {"alg": "HS256", "kid": issuer.key.kid}, _public_pem(issuer)
    ),
    "a key of its own": lambda issuer, claims: _own_key(issuer, claims),
    "no token": lambda *_: "abc",
    "empty": lambda *_: "",
}


def _own_key(issuer: HostileIssuer, claims: dict[str, Any]) -> str:
    other = HostileIssuer()
    other.key = RSAKey.generate_key(2048, {"kid": issuer.key.kid or ""})
    return other.signed(claims)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_token_is_refused(issuer: HostileIssuer, browser: Browser, name: str) -> None:
    issuer.sign = lambda claims: FORGERIES[name](issuer, claims)
    refused(log_in(browser, issuer), 401, "E.AUTH.OIDC_REFUSED")
    assert browser.session() is None


def test_a_key_that_is_new_is_fetched(issuer: HostileIssuer, browser: Browser) -> None:
    assert log_in(browser, issuer).status_code == 303
    issuer.key = ECKey.generate_key("P-256", {"kid": "second"})
    assert log_in(browser, issuer).status_code == 303
    issuer.key = RSAKey.generate_key(2048, {"kid": "second"})
    assert log_in(browser, issuer).status_code == 303, "the same id, another key"


def test_a_callback_of_another_issuer_is_refused(issuer: HostileIssuer, browser: Browser) -> None:
    answer = log_in(browser, issuer, iss="https://other.example")
    refused(answer, 401, "E.AUTH.OIDC_REFUSED")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("/token", 503, "E.AUTH.OIDC_UNAVAILABLE"), ("/token", 302, "E.AUTH.OIDC_REFUSED")],
)
def test_an_answer_without_a_token(
    issuer: HostileIssuer, browser: Browser, path: str, status: int, code: str
) -> None:
    issuer.answers[path] = (status, {"location": f"{issuer.url}/keys"}, b"{}")
    refused(log_in(browser, issuer), 503 if status == 503 else 401, code)


def test_keys_that_cannot_be_read(issuer: HostileIssuer, browser: Browser) -> None:
    issuer.key = RSAKey.generate_key(2048, {"kid": "third"})
    for status, body in ((200, b"no json"), (200, b"{}"), (200, b'{"keys": []}'), (302, b"")):
        issuer.answers["/keys"] = (status, {"location": "http://127.0.0.1:1/"}, body)
        refused(log_in(browser, issuer), 503, "E.AUTH.OIDC_UNAVAILABLE")
    issuer.answers["/keys"] = (200, {}, b"[" + b"1," * 1_000_000 + b"1]")
    refused(log_in(browser, issuer), 503, "E.AUTH.OIDC_UNAVAILABLE")
    issuer.reset()
    assert log_in(browser, issuer).status_code == 303


def test_an_issuer_that_answers_a_byte_at_a_time_holds_nobody_up(
    site: System, issuer: HostileIssuer, browser: Browser
) -> None:
    issuer.trickles = "/token"
    page = refused(log_in(browser, issuer), 503, "E.AUTH.OIDC_UNAVAILABLE")
    assert "does not answer within 10 s" in page
    assert site.rest.get("me")["role"] == "admin"


def test_a_description_that_cannot_be_used(tmp_path: Path, issuer: HostileIssuer) -> None:
    environ = {
        "ASTRA_SCHEDULER_OIDC_ISSUER_URL": f"{issuer.url}/",
        "ASTRA_SCHEDULER_OIDC_CLIENT_ID": "astra",
        "ASTRA_SCHEDULER_OIDC_ROLES": "ops=default:viewer",
    }
    with running(tmp_path, environ=environ) as system:
        http = system.rest.http
        for described in (
            {"issuer": "https://other.example"},
            {"token_endpoint": "http://other.example/token"},
            {"jwks_uri": "file:///etc/passwd"},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"jwks_uri": 7},
        ):
            issuer.described = described
            refused(http.get(LOGIN), 503, "E.AUTH.OIDC_UNAVAILABLE")
        issuer.answers["/.well-known/openid-configuration"] = (302, {"location": "/keys"}, b"")
        refused(http.get(LOGIN), 503, "E.AUTH.OIDC_UNAVAILABLE")
        issuer.reset()
        browser = Browser(system)
        assert log_in(browser, issuer).status_code == 303
        assert browser.session()["role"] == "viewer"
        browser.close()
