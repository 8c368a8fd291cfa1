"""The web app in a real Chromium: it starts under its own content security policy, and remembers its theme."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.chromium import BrowserPage, browsing
from tests.processes.command_line import Up, up
from tests.processes.waiting import until

BROKEN = """
new Promise((resolve) => {
  const found = [];
  const note = (one) => found.push(one.body.blockedURL + ' ' + one.body.effectiveDirective);
  new ReportingObserver((reports) => reports.forEach(note), {types: ['csp-violation'], buffered: true}).observe();
  setTimeout(() => resolve(found), 100);
})
"""
"""What the policy has stopped on this page, since it was loaded."""


def scheme(page: BrowserPage) -> str:
    return str(page.run("document.documentElement.getAttribute('data-mantine-color-scheme')"))


def click(page: BrowserPage, label: str) -> None:
    found = f"document.querySelector('[aria-label=\"{label}\"]')"
    until(lambda: page.run(f"{found} !== null"), f"the control {label!r}")
    page.run(f"{found}.click()")


def log_in(page: BrowserPage, server: Up) -> None:
    """As a person does: by the link that is printed."""
    page.go(server.process.line(lambda one: "/login#" in one).split()[-1])
    page.until_shown("No workflows yet")


def test_the_app_starts_under_its_policy_and_remembers_its_theme(tmp_path: Path) -> None:
    with up(tmp_path, "--workers", "0") as server, browsing(tmp_path / "profile") as page:
        log_in(page, server)
        assert page.url == f"{server.url}/workflows"
        page.until_shown("Live")
        for label, shown in (
            ("Runs", "No runs yet"),
            (
                "Workers",
                f"astra worker --scheduler-url {server.url.replace('http', 'ws', 1)}/ws/worker",
            ),
            ("Packages", "crawlerx_playwright"),
            ("Settings", "bootstrap"),
        ):
            click(page, label)
            page.until_shown(shown)
        assert page.run("getComputedStyle(document.body).fontFamily").startswith('"Inter Variable"')
        assert page.run("document.fonts.check('13px \"Inter Variable\"')")
        assert page.run(BROKEN) == []
        assert scheme(page) == "light"
        click(page, "Switch to the dark theme")
        until(lambda: scheme(page) == "dark", "the dark theme")
        page.go(f"{server.url}/runs")
        page.until_shown("No runs yet")
        assert scheme(page) == "dark", "it is kept, and set before the first paint"
        page.go(f"{server.url}/runs/one/two/three/four")
        page.until_shown("There is no such page")
        assert page.run(BROKEN) == []


def test_who_is_not_logged_in_is_shown_the_way(tmp_path: Path) -> None:
    with up(tmp_path, "--workers", "0") as server, browsing(tmp_path / "profile") as page:
        page.go(f"{server.url}/runs")
        page.until_shown("You are not logged in")
        page.run("document.querySelector('a[href=\"/login\"]').click()")
        page.until_shown("Password")


def test_a_style_without_the_nonce_and_an_inline_script_are_stopped(tmp_path: Path) -> None:
    """What keeps an injected text from doing anything."""
    inject = """
    const style = document.createElement('style'); style.textContent = 'body { outline: 9px solid red }';
    document.head.append(style);
    const script = document.createElement('script'); script.textContent = 'window.injected = 1';
    document.head.append(script);
    [getComputedStyle(document.body).outlineWidth, typeof window.injected]
    """
    with up(tmp_path, "--workers", "0") as server, browsing(tmp_path / "profile") as page:
        page.go(f"{server.url}/workflows")
        page.until_shown("You are not logged in")
        width, kind = page.run(inject)
        assert (width != "9px", kind) == (True, "undefined")
        until(lambda: len(page.run(BROKEN)) == 2, "two reports of what was stopped")
