"""What a person does with the app: logs in, goes somewhere, and looks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, expect

from tests.processes.command_line import Up
from tests.processes.waiting import WAIT_S

__all__ = ["Person"]

expect.set_options(timeout=WAIT_S * 1000)

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
AWAY = "net::ERR_"
"""A server that a test stops: the browser tells of each request that it does not answer."""


class Person:
    """One browser profile with one server; `page` is its first tab."""

    def __init__(self, server: Up, context: BrowserContext) -> None:
        self.server = server
        self.context = context
        self.complaints: list[str] = []
        self._refusals: tuple[int, ...] = ()
        context.on("console", self._listen)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.set_default_timeout(WAIT_S * 1000)
        self.page: Page = context.new_page()

    def log_in(self) -> None:
        """By the link that is printed."""
        self.page.goto(self.server.process.line(lambda one: "/login#" in one).split()[-1])
        expect(self.page.get_by_text("Live", exact=True)).to_be_visible()

    def log_in_as(self, name: str, password: str) -> None:
        """On the page to log in with, which is there because the app was told that nobody is."""
        self.provoke(401)
        self.page.goto(f"{self.server.url}/login")
        self.page.get_by_label("User").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_text("Live", exact=True)).to_be_visible()

    def go(self, path: str) -> None:
        self.page.goto(f"{self.server.url}{path}")

    def submit(self, workflow: dict[str, Any], **more: Any) -> str:
        """Start a run over the API with this browser's login; its id."""
        answer = self.call("POST", "/api/v1/runs", {"workflow": workflow, **more})
        return str(answer["runId"])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request as the app makes it."""
        script = """async ([method, path, body]) => {
          const session = await (await fetch('/api/v1/auth/session')).json();
          const headers = {'content-type': 'application/json', 'x-csrf-token': session.csrfToken};
          const answer = await fetch(path, {method, headers, body: body === null ? undefined : JSON.stringify(body)});
          return [answer.status, await answer.text()];
        }"""
        status, text = self.page.evaluate(script, [method, path, body])
        assert status < 300, (status, text)
        return json.loads(text) if text else None

    def violations(self) -> list[str]:
        """What axe finds on the page that is a serious or critical barrier."""
        # Evaluated over DevTools, which the content security policy of the page does not bind.
        self.page.evaluate(axe_source())
        found = self.page.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
        )
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def provoke(self, *statuses: int) -> None:
        """The browser may complain about answers with these statuses from here on: the test makes them happen."""
        self._refusals += statuses

    def _listen(self, message: ConsoleMessage) -> None:
        url = message.location.get("url", "")
        # What a person has half typed has errors, and the scheduler says so.
        is_draft = url.endswith("/workflows/validate") and _answered(message, 422)
        is_expected = AWAY in message.text or any(_answered(message, one) for one in self._refusals)
        if message.type in ("error", "warning") and not is_draft and not is_expected:
            self.complaints.append(f"{message.text} {url}")


def _answered(message: ConsoleMessage, status: int) -> bool:
    return f"responded with a status of {status} " in message.text


@cache
def axe_source() -> str:
    return AXE.read_text()
