"""python -m tests.browser.screenshots FOLDER [--only TEXT]

Pictures of every page and state, in light and dark, for looking at them.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import Error as PlaywrightError

from benchmarks.canvas import workflow as crowd
from tests.browser.browsers import launched
from tests.browser.person import Person
from tests.browser.scenes import (
    SIZE,
    Scene,
    all_scenes,
    empty_scenes,
    offline_scenes,
    release,
    viewer_scenes,
)
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
    "rerun",
    "approval",
    "triggers",
    "playwright-smoke",
)
NOT_RUN = ("playwright-smoke",)
PASSWORD = "a password for pictures"
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
OFFLINE = re.compile("^Offline since")
QUIET_MS = 600
"""After the last request: fonts and transitions."""
ACT_MS = 10_000
"""A scene that cannot be acted is reported; the others are taken."""


class Studio:
    """Takes pictures of one server."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        self.failures: list[str] = []

    def take(self, person: Person, scenes: Iterator[Scene]) -> None:
        state, url = person.context.storage_state(), person.server.url
        for scene in scenes:
            for scheme in SCHEMES:
                with self._context(state, scheme, scene.size or SIZE) as context:
                    self._one(context.new_page(), url, scene, scheme)

    @contextmanager
    def _context(self, state: Any, scheme: Any, size: Any) -> Iterator[BrowserContext]:
        context = self._browser.new_context(storage_state=state, viewport=size, color_scheme=scheme)
        context.set_default_timeout(ACT_MS)
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
        try:
            scene.act(page)
        except PlaywrightError as error:
            self.failures.append(f"{scene.name}-{scheme}: {error.message.splitlines()[0]}")
        page.wait_for_timeout(QUIET_MS)
        page.screenshot(path=self._folder / f"{scene.name}-{scheme}.png")
        release()


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
        workflows[name] = save(person, json.loads(example(name)))
        if name not in NOT_RUN:
            runs[name] = start(person, workflows[name])
    large = crowd()
    workflows["crowd"] = save(person, large)
    runs["crowd"] = person.submit(large)
    for run_id in runs.values():
        settle(person, run_id)
    runs["invoice-2"] = start(person, workflows["invoice"], {"currency": "NOK"})
    workflows["broken"] = break_it(person, json.loads(example("invoice")))
    twice = json.loads(example("retry"))
    twice["nodes"][0]["label"] = "Fails three times"
    twice["nodes"] = twice["nodes"][:1]
    twice["edges"] = []
    person.call("PUT", f"/api/v1/workflows/{workflows['retry']}", twice)
    person.call("PUT", "/api/v1/secrets/openai-key", {"value": "a value", "packages": ["llm"]})
    for name, role in (("ada", "admin"), ("grace", "editor"), ("vera", "viewer")):
        person.call("POST", "/api/v1/users", {"name": name, "password": PASSWORD, "role": role})
    return workflows, runs


def save(person: Person, document: dict[str, Any]) -> str:
    return str(person.call("POST", "/api/v1/workflows", document)["id"])


def start(person: Person, workflow_id: str, inputs: dict[str, Any] | None = None) -> str:
    body = {"workflowId": workflow_id, "inputs": inputs or {}}
    return str(person.call("POST", "/api/v1/runs", body)["runId"])


def break_it(person: Person, document: dict[str, Any]) -> str:
    """A draft with problems."""
    workflow_id = "6b0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f77"
    document = {**document, "id": workflow_id, "metadata": {"name": "With problems"}}
    document["nodes"][1]["type"] = "core.http"
    document["nodes"][2]["parameters"] = {"template": "=results.nothing"}
    person.call("PUT", f"/api/v1/workflows/{workflow_id}/draft", document)
    return workflow_id


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
            studio.take(person, chosen(all_scenes(workflows, runs)))
            viewer = Person(server, browser.new_context(viewport=SIZE))
            viewer.log_in_as("vera", PASSWORD)
            studio.take(viewer, chosen(viewer_scenes(workflows, runs)))
            studio.take_offline(person, chosen(offline_scenes(workflows, runs)))
    print(f"{len(list(given.folder.glob('*.png')))} pictures in {given.folder}")
    for failure in studio.failures:
        print(failure)
    return 1 if studio.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
