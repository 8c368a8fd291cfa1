"""The condition of a store, read without opening it."""

from __future__ import annotations

import msgspec

from astraflow.store.retention import Usage


class Condition(msgspec.Struct, frozen=True):
    """What is known of a store. `usage` is None while its schema, or its facts, are some that this version cannot
    read."""

    schema_version: int
    newest_version: int
    written_by: str
    usage: Usage | None
    owner: str | None = None
    """The scheduler whose claim is good, where schedulers share a store."""
    facts_version: int | None = None
    """Up to which version facts are written in it; None: its schema does not say, or says it in another way."""

    @property
    def is_newer(self) -> bool:
        """Whether a newer version wrote it, so that this one cannot read it."""
        return self.usage is None and self.schema_version >= self.newest_version
