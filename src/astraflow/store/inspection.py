"""The condition of a store, read without opening it."""

from __future__ import annotations

import msgspec

from astraflow.store.retention import Usage


class Condition(msgspec.Struct, frozen=True):
    """What is known of a store. `usage` is None while its schema is one that this version cannot read."""

    schema_version: int
    newest_version: int
    written_by: str
    usage: Usage | None
    owner: str | None = None
    """The scheduler whose claim is good, where schedulers share a store."""
