"""Every section opens without a barrier for those who use a keyboard or a screen reader."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

SECTIONS = ("/workflows", "/runs", "/workers", "/packages", "/settings")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sections_have_no_serious_barrier(person: Person, scheme: Literal["light", "dark"]) -> None:
    person.page.emulate_media(color_scheme=scheme)
    for path in SECTIONS:
        person.go(path)
        expect(person.page.get_by_role("heading", level=1)).to_be_visible()
        expect(person.page.get_by_text("Live", exact=True)).to_be_visible()
        assert person.violations() == [], path
