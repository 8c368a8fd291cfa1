"""The pages and states that pictures are taken of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, Route

__all__ = [
    "SIZE",
    "Scene",
    "all_scenes",
    "empty_scenes",
    "offline_scenes",
    "release",
    "viewer_scenes",
]

SIZE: Any = {"width": 1440, "height": 900}
NARROW: Any = {"width": 1000, "height": 700}
UNKNOWN = "00000000-0000-4000-8000-000000000000"

Ids = Mapping[str, str]
Act = Callable[[Page], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """A page in a state."""

    name: str
    path: str
    act: Act = lambda _: None
    before: Act = lambda _: None
    size: Any = None


def click(role: Any, *names: str) -> Act:
    """One after the other, each by the beginning of its name."""

    def act(page: Page) -> None:
        for name in names:
            page.get_by_role(role, name=re.compile(f"^{re.escape(name)}")).first.click()

    return act


def click_text(text: str) -> Act:
    return lambda page: page.get_by_text(text, exact=True).first.click()


def each(*acts: Act) -> Act:
    def act(page: Page) -> None:
        for one in acts:
            one(page)

    return act


HELD: list[Route] = []
"""Requests that wait for their answer."""


def never(pattern: str) -> Act:
    """Answers that do not come until `release`: the page stays in its state of loading."""

    def hold(route: Route) -> None:
        HELD.append(route)

    # Not `HELD.append` itself: Playwright sets an attribute on what it is given.
    return lambda page: page.route(pattern, hold)


def release() -> None:
    while HELD:
        HELD.pop().abort()


def failing(pattern: str) -> Act:
    body = '{"title": "the store cannot be reached", "status": 503, "code": "E.STORE.UNAVAILABLE"}'

    def refuse(route: Route) -> None:
        route.fulfill(status=503, body=body, content_type="application/problem+json")

    return lambda page: page.route(pattern, refuse)


def nothing(pattern: str) -> Act:
    """Lists without rows, also if there are some."""
    body = '{"items": [], "nextCursor": null}'

    def answer(route: Route) -> None:
        route.fulfill(body=body, content_type="application/json")

    return lambda page: page.route(pattern, answer)


def until_alert(page: Page) -> None:
    """A request is tried twice before its error is shown."""
    page.get_by_role("alert").first.wait_for()


def menu(button: str, item: str) -> Act:
    return each(click("button", button), click("menuitem", item))


def empty_scenes() -> Iterator[Scene]:
    for section in ("workflows", "runs", "triggers", "approvals"):
        yield Scene(f"{section}-empty", f"/{section}")
    yield Scene("workers-empty", "/workers", before=nothing("**/api/v1/workers*"))
    yield Scene("secrets-empty", "/settings?tab=secrets")
    yield Scene("editor-empty", "/workflows/new")
    yield Scene("login-known", "/login")


def list_scenes() -> Iterator[Scene]:
    sections = ("workflows", "runs", "approvals", "triggers", "workers", "packages")
    for section in sections:
        yield Scene(section, f"/{section}")
        yield Scene(f"{section}-loading", f"/{section}", before=never(f"**/api/v1/{section}**"))
        broken = failing(f"**/api/v1/{section}**")
        yield Scene(f"{section}-error", f"/{section}", act=until_alert, before=broken)
    yield Scene("runs-no-match", "/runs?text=nothing-like-it")
    yield Scene("runs-selected", "/runs", act=click("checkbox", "Select"))
    yield Scene("runs-narrow", "/runs", size=NARROW)
    yield Scene("not-found", "/runs/compare/nothing/like/it")


def operation_scenes() -> Iterator[Scene]:
    yield Scene("worker", "/workers", act=click("button", "worker-1"))
    yield Scene("worker-drain", "/workers", act=click("button", "worker-1", "Drain"))
    yield Scene("worker-start", "/workers", act=click("button", "How to start"))
    yield Scene("trigger", "/triggers", act=click("button", "push"))
    package = "/packages?package=llm"
    for tab in ("Versions", "Workers", "Rollouts", "Used in"):
        name = tab.lower().replace(" ", "-")
        yield Scene(f"package-{name}", package, act=click("tab", tab))
    yield Scene("packages-narrow", "/packages", size=NARROW)
    for tab in ("you", "secrets", "tokens", "users", "pools", "audit", "shortcuts", "about"):
        yield Scene(f"settings-{tab}", f"/settings?tab={tab}")
    for tab, button in (
        ("secrets", "Add a secret"),
        ("tokens", "Make a token"),
        ("users", "Add a user"),
    ):
        yield Scene(f"settings-{tab}-add", f"/settings?tab={tab}", act=click("button", button))
    yield Scene("palette", "/runs", act=click("button", "Find or do something"))
    yield Scene("tour", "/runs", act=click("button", "Get started"))
    yield Scene("user-menu", "/runs", act=click("button", "Logged in as"))


def editor_scenes(workflows: Ids, runs: Ids) -> Iterator[Scene]:
    for name, workflow_id in workflows.items():
        yield Scene(f"editor-{name}", f"/workflows/{workflow_id}")
    first = f"/workflows/{workflows['invoice']}"
    select = click_text("Add up")
    shown = f"{first}?run={runs['invoice']}"
    yield Scene("editor-step", first, act=select)
    for tab in ("Input", "Output", "Info"):
        yield Scene(f"editor-step-{tab.lower()}", shown, act=each(select, inspect(tab)))
    yield Scene("editor-step-settings", first, act=each(select, inspect("Retry")))
    yield Scene("editor-quick-add", first, act=quick_add)
    yield Scene("editor-connect", first, act=each(select, lambda page: page.keyboard.press("c")))
    yield Scene("editor-menu", first, act=open_menu)
    yield Scene("editor-run-dialog", first, act=menu("More ways to run", "Run with inputs"))
    yield Scene("editor-versions", first, act=menu("More", "Versions"))
    yield Scene("editor-shortcuts", first, act=lambda page: page.keyboard.press("?"))
    yield Scene(
        "editor-problems", f"/workflows/{workflows['broken']}", act=click("tab", "Problems")
    )
    yield Scene("editor-compare", f"/workflows/{workflows['retry']}?compare=1..2")
    yield Scene("editor-json", first, act=lambda page: page.keyboard.press("Alt+Shift+j"))
    yield Scene("editor-narrow", first, size=NARROW)
    yield Scene("editor-older-version", f"{first}?version=1")
    yield Scene("editor-missing", f"/workflows/{UNKNOWN}")
    yield Scene("editor-loading", first, before=never(f"**/api/v1{first}**"))
    broken = failing(f"**/api/v1{first}**")
    yield Scene("editor-error", first, act=until_alert, before=broken)
    yield Scene(
        "editor-dock-logs", f"/workflows/{workflows['hello']}?run={runs['hello']}", act=dock
    )


def inspect(text: str) -> Act:
    def act(page: Page) -> None:
        inspector = page.get_by_role("complementary", name="Inspector")
        inspector.get_by_text(text, exact=True).first.click()

    return act


def quick_add(page: Page) -> None:
    page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})
    page.keyboard.press("n")


def open_menu(page: Page) -> None:
    page.get_by_text("Add up").first.click(button="right")


def dock(page: Page) -> None:
    page.keyboard.press("l")


def run_scenes(runs: Ids) -> Iterator[Scene]:
    for name, run_id in runs.items():
        yield Scene(f"run-{name}", f"/runs/{run_id}")
    first = f"/runs/{runs['invoice']}"
    for tab in ("timeline", "steps", "events", "data", "artifacts"):
        yield Scene(f"run-{tab}", f"{first}?tab={tab}")
    yield Scene("run-crowd-timeline", f"/runs/{runs['crowd']}?tab=timeline")
    yield Scene("run-retry-timeline", f"/runs/{runs['retry']}?tab=timeline")
    broken = f"/runs/{runs['rerun']}"
    yield Scene("run-failed-step", broken, act=click_text("Check"))
    yield Scene(
        "run-rerun-from", broken, act=each(click_text("Check"), click("button", "Re-run from here"))
    )
    yield Scene("run-rerun-dialog", first, act=menu("More actions", "Re-run with changes"))
    yield Scene("run-compare-pick", first, act=menu("More actions", "Compare with"))
    yield Scene("run-compare", f"/runs/compare?first={runs['invoice']}&second={runs['invoice-2']}")
    yield Scene("run-cancel", f"/runs/{runs['approval']}", act=click("button", "Cancel run"))
    for tab in ("Output", "Input", "History"):
        act = each(click_text("Add up"), click("tab", tab))
        yield Scene(f"run-step-{tab.lower()}", first, act=act)
    yield Scene("run-missing", f"/runs/{UNKNOWN}")
    yield Scene("run-narrow", first, size=NARROW)


def best_scenes(workflows: Ids, runs: Ids) -> Iterator[Scene]:
    """Those that the README shows (`docs/pictures/web-*.png`)."""
    step = click_text("Write a speech")
    yield Scene("web-editor", f"/workflows/{workflows['hello']}?run={runs['hello']}", act=step)
    yield Scene("web-run", f"/runs/{runs['hello']}", act=read_speech)
    yield Scene("web-packages", "/packages?package=crawlerx_playwright")


def read_speech(page: Page) -> None:
    page.get_by_text("Type the speech", exact=True).first.click()
    page.get_by_role("tab", name="Stream").click()
    page.get_by_role("button", name="Show all steps").click()


def all_scenes(workflows: Ids, runs: Ids) -> Iterator[Scene]:
    """Of a server with something on it."""
    yield from list_scenes()
    yield from operation_scenes()
    yield from editor_scenes(workflows, runs)
    yield from run_scenes(runs)
    yield from best_scenes(workflows, runs)


def viewer_scenes(workflows: Ids, runs: Ids) -> Iterator[Scene]:
    """As somebody sees them who may not change anything."""
    first = f"/workflows/{workflows['invoice']}"
    yield Scene("editor-read-only", first)
    yield Scene("editor-read-only-step", first, act=click_text("Add up"))
    yield Scene("run-read-only", f"/runs/{runs['approval']}")


def offline_scenes(workflows: Ids, runs: Ids) -> Iterator[Scene]:
    yield Scene("runs-offline", "/runs")
    yield Scene("editor-offline", f"/workflows/{workflows['invoice']}")
    yield Scene("run-offline", f"/runs/{runs['invoice']}")
