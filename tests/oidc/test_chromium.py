"""The whole way with a real issuer in a real Chromium: page, cookies and redirects as a browser takes them."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.chromium import BrowserPage, browsing
from tests.oidc.issuer import Issuer, issuing, settings
from tests.processes.system import System, running
from tests.processes.waiting import until

STREAM = """new Promise((say) => {
  const events = new EventSource("/api/v1/events");
  events.onopen = () => { events.close(); say("open"); };
  events.onerror = () => { events.close(); say("refused"); };
})"""


def go_to_issuer(page: BrowserPage, site: System, issuer: Issuer) -> None:
    page.go(f"{site.url}/login")
    page.until_shown("Log in with single sign-on")
    page.run("document.getElementById('oidc').click()")
    until(lambda: page.url.startswith(issuer.url), "the page of the issuer")
    page.until_shown("Authorize Client")


def log_in(page: BrowserPage, sub: str) -> None:
    page.run(f"document.querySelector('input[name=sub]').value = '{sub}'")
    page.run("document.querySelector('form button').click()")


def test_somebody_logs_in_works_and_logs_out(tmp_path: Path) -> None:
    with (
        issuing(tmp_path / "issuer") as issuer,
        running(tmp_path / "site", environ=settings(issuer)) as site,
        browsing(tmp_path / "profile") as page,
    ):
        go_to_issuer(page, site, issuer)
        log_in(page, issuer.person("ada", "ops"))
        page.until_shown("Logged in as oidc-ada (operator) of tenant default")
        assert page.url == f"{site.url}/login", "no code is left in the address"
        assert page.run("document.cookie") == "", "no script can read a cookie"
        assert page.run(STREAM) == "open"
        page.run("document.getElementById('out').click()")
        page.until_shown("Log in with single sign-on")
        assert page.run(STREAM) == "refused"

        go_to_issuer(page, site, issuer)
        page.run("document.querySelector('button[value=deny]').click()")
        assert "E.AUTH.OIDC_REFUSED" in page.until_shown("Not logged in")
        go_to_issuer(page, site, issuer)
        log_in(page, issuer.person("eve", "nobodies"))
        assert "E.AUTH.NO_GROUP" in page.until_shown("Not logged in")
        assert page.run(STREAM) == "refused"
