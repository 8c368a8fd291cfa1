"""Every section opens without a barrier for those who use a keyboard or a screen reader."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

SECTIONS = ("/workflows", "/runs", "/approvals", "/triggers", "/workers", "/packages", "/settings")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sections_have_no_serious_barrier(person: Person, scheme: Literal["light", "dark"]) -> None:
    person.page.emulate_media(color_scheme=scheme)
    for path in SECTIONS:
        person.go(path)
        expect(person.page.get_by_role("heading", level=1)).to_be_visible()
        expect(person.page.get_by_text("Live", exact=True)).to_be_visible()
        assert person.violations() == [], path


STRANGE = {
    "/settings?tab=nothing": "Settings",
    "/runs?status=nothing&time=nothing": "Runs",
    "/workers?status=nothing": "Workers",
    "/triggers?trigger=nothing": "Triggers",
}


def test_an_address_with_values_that_do_not_exist_opens_its_page(person: Person) -> None:
    page = person.page
    for path, heading in STRANGE.items():
        person.go(path)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
    person.go("/settings?tab=nothing")
    expect(page.get_by_role("tab", name="You")).to_have_attribute("aria-selected", "true")
    person.provoke(404)
    person.go("/packages?package=nothing")
    expect(page.get_by_role("alert")).to_contain_text("nothing")
