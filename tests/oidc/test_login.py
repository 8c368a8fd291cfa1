"""The whole way with a real issuer."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.oidc.browser import CALLBACK, LOGIN, Browser, refused
from tests.oidc.issuer import Issuer, issuing, settings
from tests.processes.system import System, running


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with issuing(tmp_path_factory.mktemp("issuer")) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("site"), environ=settings(issuer)) as system:
        yield system


@pytest.fixture
def browser(site: System) -> Iterator[Browser]:
    browser = Browser(site)
    yield browser
    browser.close()


def audited(site: System, by: str) -> list[tuple[str, str | None]]:
    items = site.rest.get("audit", limit=200)["items"]
    return [(one["action"], one.get("code")) for one in items if one["who"] == by]


def test_somebody_with_a_group_gets_a_session(
    issuer: Issuer, site: System, browser: Browser
) -> None:
    assert 'href="/api/v1/auth/oidc/login"' in browser.http.get(f"{site.url}/login").text
    answer = browser.log_in(issuer.person("alice", "others", "ops"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    session = browser.session()
    assert (session["subject"], session["role"]) == ("oidc-alice", "operator")
    site.until(lambda: ("login", None) in audited(site, "oidc-alice"), "the row of the login")
    cookies = answer.headers.get_list("set-cookie")
    assert any("astra_session=" in one and "HttpOnly" in one for one in cookies)
    [user] = [one for one in site.rest.get("users")["items"] if one["name"] == "oidc-alice"]
    assert user["createdBy"] == "oidc:alice@example.com"
    password = {"user": "oidc-alice", "password": "!", "tenant": "default"}
    assert httpx.post(f"{site.url}/api/v1/auth/login", json=password).status_code == 401
    headers = {"x-csrf-token": session["csrfToken"]}
    logout = browser.http.post(f"{site.url}/api/v1/auth/logout", json={}, headers=headers)
    assert logout.status_code == 204
    assert browser.session() is None


def test_the_groups_of_the_last_login_count(issuer: Issuer, site: System, browser: Browser) -> None:
    other = Browser(site)
    browser.log_in(issuer.person("bob", "ops"))
    other.log_in(issuer.person("bob", "lookers"))
    assert other.session()["role"] == "viewer"
    assert browser.session() is None, "the session with more rights has ended"
    refused(other.log_in(issuer.person("bob")), 403, "E.AUTH.NO_GROUP")
    other.close()


def test_without_a_group_there_is_a_page_and_an_audit_row(
    issuer: Issuer, site: System, browser: Browser
) -> None:
    page = refused(browser.log_in(issuer.person("carol", "others")), 403, "E.AUTH.NO_GROUP")
    assert "none of your groups" in page
    assert browser.session() is None
    site.until(lambda: ("login", "E.AUTH.NO_GROUP") in audited(site, "oidc-carol"), "its row")
    nowhere = refused(browser.log_in(issuer.person("dora", "elsewhere")), 403, "E.AUTH.NO_GROUP")
    assert "a tenant that does not exist" in nowhere


def test_a_disabled_user_stays_out(issuer: Issuer, site: System, browser: Browser) -> None:
    browser.log_in(issuer.person("erin", "ops"))
    off = site.rest.http.patch("/api/v1/users/oidc-erin", json={"disabled": True})
    assert off.status_code == 200, off.text
    assert browser.session() is None
    refused(browser.log_in("erin"), 401, "E.AUTH.BAD_LOGIN")
    site.until(lambda: ("login", "E.AUTH.BAD_LOGIN") in audited(site, "oidc-erin"), "its row")


def test_a_callback_that_this_browser_did_not_begin_is_refused(
    issuer: Issuer, site: System, browser: Browser
) -> None:
    issuer.person("frank", "ops")
    stranger = Browser(site)
    callback = browser.consent(browser.begin(), "frank")
    query = parse_qs(urlsplit(callback).query)
    code, [state] = query["code"][0], query["state"]
    base = site.url + CALLBACK
    refused(stranger.http.get(callback), 401, "E.AUTH.OIDC_REFUSED")
    stranger.begin()
    for wrong in (
        {"code": code},
        {"code": code, "state": "forged"},
        {"code": code, "state": state},
        {"state": state},
        {"error": "access_denied", "state": state},
        {},
    ):
        refused(stranger.http.get(base, params=wrong), 401, "E.AUTH.OIDC_REFUSED")
    assert stranger.session() is None
    stranger.close()


def test_a_state_and_a_code_work_once(issuer: Issuer, site: System, browser: Browser) -> None:
    issuer.person("grace", "ops")
    callback = browser.consent(browser.begin(), "grace")
    kept = browser.http.cookies["astra_oidc"]
    assert browser.http.get(callback).status_code == 303
    assert "astra_oidc" not in browser.http.cookies
    headers = {"cookie": f"astra_oidc={kept}"}
    refused(httpx.get(callback, headers=headers), 401, "E.AUTH.OIDC_REFUSED")
    code = parse_qs(urlsplit(callback).query)["code"][0]
    fresh = Browser(site)
    state = parse_qs(urlsplit(fresh.begin()).query)["state"][0]
    again = fresh.http.get(site.url + CALLBACK, params={"code": code, "state": state})
    refused(again, 401, "E.AUTH.OIDC_REFUSED")
    fresh.close()


def test_the_code_of_another_login_has_another_nonce(
    issuer: Issuer, site: System, browser: Browser
) -> None:
    """Somebody puts the code of their own login into the callback of another's browser."""
    attacker = Browser(site)
    stolen = attacker.consent(attacker.begin(), issuer.person("heidi", "ops"))
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    state = parse_qs(urlsplit(browser.begin()).query)["state"][0]
    injected = browser.http.get(site.url + CALLBACK, params={"code": code, "state": state})
    refused(injected, 401, "E.AUTH.OIDC_REFUSED")
    assert browser.session() is None
    attacker.close()


def test_the_issuer_is_away_and_comes_back_with_other_keys(tmp_path: Path) -> None:
    with (
        issuing(tmp_path / "issuer") as issuer,
        running(tmp_path, environ=settings(issuer)) as site,
        closing(Browser(site)) as browser,
    ):
        browser.log_in(issuer.person("ivan", "ops"))
        callback = browser.consent(browser.begin(), "ivan")
        issuer.process.kill()
        refused(browser.http.get(callback), 503, "E.AUTH.OIDC_UNAVAILABLE")
        site.restart()
        page = refused(browser.http.get(site.url + LOGIN), 503, "E.AUTH.OIDC_UNAVAILABLE")
        assert "does not answer" in page
        issuer.start()
        assert browser.log_in(issuer.person("ivan", "ops")).status_code == 303
        issuer.process.kill()  # its keys are those of its process
        issuer.start()
        assert browser.log_in(issuer.person("ivan", "lookers")).status_code == 303
        assert browser.session()["role"] == "viewer"


def test_the_same_subject_of_another_issuer_is_somebody_else(tmp_path: Path) -> None:
    with (
        issuing(tmp_path / "one") as one,
        issuing(tmp_path / "two") as two,
        running(tmp_path / "site", environ=settings(one)) as site,
        closing(Browser(site)) as browser,
    ):
        body = {"name": "oidc-judy", "password": "correct horse", "role": "admin"}
        site.rest.post("users", body, wanted=201)
        assert browser.log_in(one.person("ivan", "ops")).status_code == 303
        assert browser.session()["subject"] == "oidc-ivan"
        # A user with a password is nobody of the issuer, whatever the name.
        assert browser.log_in(one.person("judy", "lookers")).status_code == 303
        judy = browser.session()
        assert judy["subject"].startswith("oidc-sha256-") and judy["role"] == "viewer"
        # A user from before the issuer was kept is that of the issuer that is asked next.
        assert browser.log_in(one.person("olga", "ops")).status_code == 303
        site.scheduler.send(signal.SIGTERM)
        site.scheduler.wait()
        with closing(sqlite3.connect(site.data / "astraflow.db")) as database, database:
            database.execute("UPDATE users SET issuer = '' WHERE name = 'oidc-olga'")
        site.scheduler.start(**settings(two))
        site.until_ready()
        assert browser.log_in(two.person("olga", "lookers")).status_code == 303
        assert browser.session()["subject"] == "oidc-olga"
        assert browser.log_in(two.person("ivan", "lookers")).status_code == 303
        ivan = browser.session()["subject"]
        assert ivan.startswith("oidc-sha256-")
        assert browser.log_in(two.person("ivan", "lookers")).status_code == 303
        assert browser.session()["subject"] == ivan
        users = {user["name"]: user for user in site.rest.get("users")["items"]}
        assert len(users) == 5
        assert users["oidc-judy"].get("issuer") is None
        issuers = [users[name]["issuer"] for name in ("oidc-ivan", ivan, "oidc-olga")]
        assert issuers == [one.url, two.url, two.url]
        assert (users["oidc-ivan"]["role"], users[ivan]["role"]) == ("operator", "viewer")


def test_without_an_issuer_there_is_no_such_login(tmp_path: Path) -> None:
    with running(tmp_path) as system:
        assert system.rest.status(LOGIN) == 404
        assert system.rest.status(f"{CALLBACK}?code=a&state=b") == 404
        assert "/oidc/login" not in system.rest.http.get("/login").text
