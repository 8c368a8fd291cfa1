"""What a person does in the editor."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.person import Person

__all__ = ["Editing"]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Editing:
    """The editor in one tab."""

    def __init__(self, person: Person, page: Page | None = None) -> None:
        self.person = person
        self.page = person.page if page is None else page

    def begin(self) -> None:
        """A new workflow with nothing in it."""
        self.page.goto(f"{self.person.server.url}/workflows/new")
        expect(self.page.get_by_role("button", name="Add a first step")).to_be_visible()

    def open(self, workflow_id: str, search: str = "") -> None:
        self.page.goto(f"{self.person.server.url}/workflows/{workflow_id}{search}")
        expect(self.page.get_by_role("toolbar", name="Workflow")).to_be_visible()

    @property
    def workflow_id(self) -> str:
        return self.page.url.split("/workflows/")[1].split("?")[0]

    @property
    def canvas(self) -> Locator:
        return self.page.get_by_role("application", name="Graph of the workflow")

    def step(self, label: str) -> Locator:
        return self.canvas.get_by_role("group", name=label, exact=True)

    def wires(self) -> Locator:
        return self.canvas.get_by_role("img", name=re.compile("^Edge from"))

    def type_in_palette(self, label: str) -> Locator:
        palette = self.page.get_by_role("navigation", name="Steps")
        return palette.get_by_role("option", name=label, exact=True).first

    def drag_in(self, label: str, x: int, y: int) -> None:
        """From the palette to a place of the canvas."""
        self.type_in_palette(label).drag_to(self.canvas, target_position={"x": x, "y": y})
        expect(self.step(label)).to_be_visible()

    def wire(self, source: str, output: str, target: str, entry: str) -> None:
        """With the mouse, from a port to a port."""
        start = self.port(source, output, "source")
        end = self.port(target, entry, "target")
        start.hover()
        self.page.mouse.down()
        end.hover()
        self.page.mouse.up()

    def port(self, step: str, port: str, side: str) -> Locator:
        # A port is a place to drag from; those who use a keyboard have "Connect to…".
        return self.step(step).locator(f".{side}[data-handleid='{port}']")

    def add_by_key(self, text: str) -> None:
        self.page.keyboard.press("n")
        expect(self.page.get_by_role("dialog", name="Add a step")).to_be_visible()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("dialog", name="Add a step")).to_be_hidden()

    def wait_until_saved(self) -> None:
        bar = self.page.get_by_role("toolbar", name="Workflow")
        expect(bar.get_by_role("status")).to_contain_text(re.compile("saved [0-9]"))

    def draft(self) -> str:
        """The answer of the scheduler, as text."""
        script = "async (id) => (await fetch(`/api/v1/workflows/${id}/draft`)).text()"
        return str(self.page.evaluate(script, self.workflow_id))

    def save_text(self, workflow_id: str, text: str) -> None:
        """Save a draft byte for byte."""
        script = """async ([id, text]) => {
          const session = await (await fetch('/api/v1/auth/session')).json();
          const headers = {'content-type': 'application/json', 'x-csrf-token': session.csrfToken};
          const answer = await fetch(`/api/v1/workflows/${id}/draft`, {method: 'PUT', headers, body: text});
          return answer.status;
        }"""
        assert self.page.evaluate(script, [workflow_id, text]) == 200
