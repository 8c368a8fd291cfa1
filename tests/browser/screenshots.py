"""python -m tests.browser.screenshots FOLDER [--only TEXT]

Pictures of every page and state, in light and dark, for looking at them.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, Route

from benchmarks.canvas import workflow as crowd
from tests.browser.browsers import launched
from tests.browser.person import Person
from tests.processes.command_line import up
from tests.processes.waiting import until

ROOT = Path(__file__).parents[2]
EXAMPLES = (
    "hello",
    "invoice",
    "conditions",
    "container",
    "map",
    "middleware",
    "error-port",
    "retry",
    "approval",
    "triggers",
)
PASSWORD = "a password for pictures"
SIZE: Any = {"width": 1440, "height": 900}
NARROW: Any = {"width": 1000, "height": 700}
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")

OFFLINE = re.compile("Reconnecting|Offline")
QUIET_MS = 600
"""After the last request: fonts and transitions."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A page in a state."""

    name: str
    path: str
    act: Callable[[Page], None] = lambda _: None
    before: Callable[[Page], None] = lambda _: None
    size: Any = None


def click(role: Any, name: str | re.Pattern[str]) -> Callable[[Page], None]:
    return lambda page: page.get_by_role(role, name=name).first.click()


def press(*keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def never(pattern: str) -> Callable[[Page], None]:
    """Answers that do not come: the page stays in its state of loading."""

    def hold(_: Route) -> None:
        return

    def before(page: Page) -> None:
        page.route(pattern, hold)

    return before


def failing(pattern: str) -> Callable[[Page], None]:
    body = '{"title": "the store cannot be reached", "status": 503, "code": "E.STORE.UNAVAILABLE"}'

    def refuse(route: Route) -> None:
        route.fulfill(status=503, body=body, content_type="application/problem+json")

    def before(page: Page) -> None:
        page.route(pattern, refuse)

    return before


def until_alert(page: Page) -> None:
    """A request is tried twice before its error is shown."""
    page.get_by_role("alert").first.wait_for()


def empty_scenes() -> Iterator[Scene]:
    for section in ("workflows", "runs", "triggers", "workers"):
        yield Scene(f"{section}-empty", f"/{section}")
    yield Scene("secrets-empty", "/settings?tab=secrets")
    yield Scene("editor-empty", "/workflows/new")
    yield Scene("login-known", "/login")


def list_scenes() -> Iterator[Scene]:
    for section in ("workflows", "runs", "triggers", "workers", "packages"):
        yield Scene(section, f"/{section}")
    yield Scene("workflows-loading", "/workflows", before=never("**/api/v1/workflows**"))
    yield Scene("runs-loading", "/runs", before=never("**/api/v1/runs**"))
    for section in ("runs", "workers", "packages", "triggers"):
        broken = failing(f"**/api/v1/{section}**")
        yield Scene(f"{section}-error", f"/{section}", act=until_alert, before=broken)
    yield Scene("runs-no-match", "/runs?text=nothing-like-it")
    yield Scene("worker", "/workers", act=click("button", "worker-1"))
    yield Scene("packages-narrow", "/packages", size=NARROW)
    for tab in ("you", "secrets", "tokens", "users", "pools", "audit", "shortcuts", "about"):
        yield Scene(f"settings-{tab}", f"/settings?tab={tab}")
    yield Scene("palette", "/runs", act=click("button", re.compile("Find or do something")))


def workflow_scenes(workflows: dict[str, str]) -> Iterator[Scene]:
    for name, workflow_id in workflows.items():
        path = f"/workflows/{workflow_id}"
        yield Scene(f"editor-{name}", path)
    first = f"/workflows/{workflows['invoice']}"
    yield Scene("editor-step", first, act=lambda page: page.get_by_text("Add up").first.click())
    yield Scene("editor-quick-add", first, act=lambda page: quick_add(page))
    yield Scene("editor-narrow", first, size=NARROW)
    yield Scene("editor-older-version", f"{first}?version=1")


def quick_add(page: Page) -> None:
    page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})
    page.keyboard.press("n")


def offline_scenes(workflows: dict[str, str], runs: dict[str, str]) -> Iterator[Scene]:
    yield Scene("runs-offline", "/runs")
    yield Scene("editor-offline", f"/workflows/{workflows['invoice']}")
    yield Scene("run-offline", f"/runs/{runs['invoice']}")


def run_scenes(runs: dict[str, str]) -> Iterator[Scene]:
    for name, run_id in runs.items():
        yield Scene(f"run-{name}", f"/runs/{run_id}")
    for tab in ("timeline", "steps", "events", "io", "artifacts"):
        yield Scene(f"run-{tab}", f"/runs/{runs['invoice']}?tab={tab}")
    yield Scene("run-crowd-timeline", f"/runs/{runs['crowd']}?tab=timeline")


def best_scenes(workflows: dict[str, str], runs: dict[str, str]) -> Iterator[Scene]:
    """Those that the README shows (`docs/pictures/web-*.png`)."""
    step = click_text("Write a speech")
    yield Scene("web-editor", f"/workflows/{workflows['hello']}?run={runs['hello']}", act=step)
    yield Scene("web-run", f"/runs/{runs['hello']}", act=read_speech)
    yield Scene("web-packages", "/packages?package=crawlerx_playwright")


def read_speech(page: Page) -> None:
    page.get_by_text("Type the speech", exact=True).first.click()
    page.get_by_role("tab", name="Stream").click()
    page.get_by_role("button", name="Show all steps").click()


def click_text(text: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_text(text, exact=True).first.click()


class Studio:
    """Takes pictures of one server."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder

    def take(self, person: Person, scenes: Iterator[Scene]) -> None:
        state = person.context.storage_state()
        for scene in scenes:
            for scheme in SCHEMES:
                with self._context(state, scheme, scene.size or SIZE) as context:
                    self._one(context.new_page(), person.server.url, scene, scheme)

    @contextmanager
    def _context(self, state: Any, scheme: Any, size: Any) -> Iterator[BrowserContext]:
        context = self._browser.new_context(storage_state=state, viewport=size, color_scheme=scheme)
        try:
            yield context
        finally:
            context.close()

    def take_offline(self, person: Person, scenes: Iterator[Scene]) -> None:
        """Open all first: then the scheduler is gone."""
        state, opened = person.context.storage_state(), []
        for scene in scenes:
            for scheme in SCHEMES:
                context = self._browser.new_context(
                    storage_state=state, viewport=SIZE, color_scheme=scheme
                )
                page = context.new_page()
                page.goto(person.server.url + scene.path)
                page.get_by_text("Live", exact=True).wait_for()
                opened.append((page, f"{scene.name}-{scheme}.png"))
        person.server.end()
        for page, name in opened:
            page.get_by_text(OFFLINE).first.wait_for()
            page.screenshot(path=self._folder / name)
            page.context.close()

    def _one(self, page: Page, url: str, scene: Scene, scheme: str) -> None:
        scene.before(page)
        page.goto(url + scene.path)
        page.wait_for_timeout(QUIET_MS)
        scene.act(page)
        page.wait_for_timeout(QUIET_MS)
        page.screenshot(path=self._folder / f"{scene.name}-{scheme}.png")
        page.unroute_all(behavior="ignoreErrors")


def example(name: str) -> str:
    return (ROOT / "examples" / f"{name}.json").read_text()


def settle(person: Person, run_id: str) -> None:
    """Wait until a run has ended or waits for somebody."""

    def is_still() -> bool:
        run = person.call("GET", f"/api/v1/runs/{run_id}")
        waits = [node for node in run["nodes"] if node["status"] == "waiting"]
        return run["status"] not in ("queued", "running") or bool(waits)

    until(is_still, f"the end of {run_id}")


def furnish(person: Person) -> tuple[dict[str, str], dict[str, str]]:
    """Workflows and runs worth looking at; their ids by name."""
    workflows: dict[str, str] = {}
    runs: dict[str, str] = {}
    for name in EXAMPLES:
        document = json.loads(example(name))
        workflows[name] = person.call("POST", "/api/v1/workflows", document)["id"]
        runs[name] = person.call("POST", "/api/v1/runs", {"workflowId": workflows[name]})["runId"]
    large = crowd()
    workflows["crowd"] = person.call("POST", "/api/v1/workflows", large)["id"]
    runs["crowd"] = person.submit(large)
    for run_id in runs.values():
        settle(person, run_id)
    person.call("PUT", "/api/v1/secrets/openai-key", {"value": "a value", "packages": ["llm"]})
    for name, role in (("ada", "admin"), ("grace", "editor"), ("vera", "viewer")):
        person.call("POST", "/api/v1/users", {"name": name, "password": PASSWORD, "role": role})
    return workflows, runs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scenes whose name has this text")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)

    def chosen(scenes: Iterator[Scene]) -> Iterator[Scene]:
        return (scene for scene in scenes if given.only in scene.name)

    with tempfile.TemporaryDirectory() as place, launched() as browser:
        studio = Studio(browser, given.folder)
        with up(Path(place), "--workers", "1") as server:
            person = Person(server, browser.new_context(viewport=SIZE))
            person.log_in()
            studio.take(person, chosen(empty_scenes()))
            stranger = Person(server, browser.new_context())
            ways_in = (Scene("login", "/login"), Scene("not-logged-in", "/runs"))
            studio.take(stranger, chosen(iter(ways_in)))
            workflows, runs = furnish(person)
            studio.take(person, chosen(list_scenes()))
            studio.take(person, chosen(workflow_scenes(workflows)))
            studio.take(person, chosen(run_scenes(runs)))
            studio.take(person, chosen(best_scenes(workflows, runs)))
            viewer = Person(server, browser.new_context(viewport=SIZE))
            viewer.log_in_as("vera", PASSWORD)
            read_only = Scene("editor-read-only", f"/workflows/{workflows['invoice']}")
            studio.take(viewer, chosen(iter([read_only])))
            studio.take_offline(person, chosen(offline_scenes(workflows, runs)))
    print(f"{len(list(given.folder.glob('*.png')))} pictures in {given.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
