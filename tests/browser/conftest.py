"""A Chromium for the tests of a module, and a server with a page of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.browsers import launched
from tests.browser.editing import Editing
from tests.browser.person import Person
from tests.processes.command_line import up


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """For one module: as long as it is open the driver has an event loop, beside which no other test can have one."""
    with launched() as browser:
        yield browser


@pytest.fixture
def person(chromium: Browser, tmp_path: Path) -> Iterator[Person]:
    """Somebody who has started `astra up` with a worker, and has logged in by the link that it printed."""
    with up(tmp_path, "--workers", "1") as server:
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        somebody = Person(server, context)
        somebody.log_in()
        yield somebody
        context.close()
        assert somebody.complaints == [], "the console of the browser"


@pytest.fixture
def page(person: Person) -> Page:
    return person.page


@pytest.fixture
def editing(person: Person) -> Editing:
    return Editing(person)
