"""Looks for barriers wherever a person goes, and tells of all of them at the end."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import Locator, expect

from tests.browser.person import Person

__all__ = ["Barriers", "Scheme"]

Scheme = Literal["light", "dark"]


class Barriers:
    """What axe finds in one colour scheme, with the place where it is."""

    def __init__(self, person: Person, scheme: Scheme) -> None:
        self.person = person
        self.page = person.page
        self.found: list[str] = []
        # Colours are those of the end of a transition: nothing is looked at while it fades in.
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    def look(self, place: str) -> None:
        self.found.extend(f"{place}: {one}" for one in self.person.violations())

    def dialog(self, name: str, opener: Locator) -> Locator:
        """Open a dialog and look at it. It stays open."""
        opener.click()
        dialog = self.page.get_by_role("dialog", name=name)
        expect(dialog).to_be_visible()
        self.look(name)
        return dialog

    def dismissed(self, name: str, opener: Locator) -> None:
        """A dialog that closes with Escape after somebody has looked at it."""
        dialog = self.dialog(name, opener)
        self.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()

    def tabs(self, place: Locator, *names: str) -> None:
        """Every tab of a place, one after the other."""
        for name in names:
            place.get_by_role("tab", name=re.compile(f"^{name}")).click()
            expect(place.get_by_role("tabpanel", name=re.compile(f"^{name}"))).to_be_visible()
            self.look(f"tab {name}")
