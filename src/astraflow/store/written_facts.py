"""Up to which version facts are written in a store (`core.facts_version`), as a value of its site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import astraflow
from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.facts_version import FACTS_VERSION, FIRST_FACTS

WRITTEN_FACTS: Final = "facts_version"
RAISED_BY: Final = "facts_version_by"
"""The value that says which release has raised the other one."""
MAX_DIGITS: Final = 18
FACTS_VALUES: Final = [WRITTEN_FACTS, RAISED_BY]


def stated_facts(site: Mapping[str, str]) -> int:
    """Up to which version facts are written, whether or not this release reads them; `site`: its values.

    Raises:
        StoreError: the value is no number.
    """
    text = site.get(WRITTEN_FACTS, str(FIRST_FACTS))
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise StoreError(
            errors.STORE_CORRUPT, f"the value {WRITTEN_FACTS} of the site is no number: {text!r}"
        )
    return int(text)


def written_facts(site: Mapping[str, str], where: str = "") -> int:
    """The same. Raises: StoreError, if this release does not read them; `where`: the end of its message."""
    written = stated_facts(site)
    if written > FACTS_VERSION:
        raise StoreError(
            errors.STORE_NEWER,
            f"astraflow {site.get(RAISED_BY, 'of a later release')} wrote the store with facts of version {written}, "
            f"this is {astraflow.__version__} and reads them up to version {FACTS_VERSION}{where}",
        )
    return written
