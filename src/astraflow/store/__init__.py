"""Durable state: the store protocol, and SQLite, PostgreSQL and memory behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors

if TYPE_CHECKING:
    from astraflow.store.store import Store

__all__ = ["is_shared", "open_store"]


def is_shared(url: str) -> bool:
    """Whether several schedulers can use the store at once."""
    return url.startswith(("postgresql://", "postgres://"))


def open_store(url: str, *, ttl_s: float | None = None) -> Store:
    """The store that a URL names; `await store.open()` is the caller's.

    `ttl_s`: how long the claim of an owner that does not answer keeps others out, where schedulers share a store.

    `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://:memory:`, `memory://`, `postgresql://…`

    Raises:
        Refused: no such kind of store, or no place in it.
    """
    scheme, _, place = url.partition("://")
    # Imported where needed: a store of one kind does not pay for the others.
    if url in ("memory://", "sqlite://:memory:", "sqlite:///:memory:"):
        from astraflow.store.memory import MemoryStore

        return MemoryStore()
    if scheme == "sqlite" and place.startswith("/") and len(place) > 1:
        from astraflow.store.sqlite import SqliteStore

        return SqliteStore(place[1:])
    if is_shared(url):
        from astraflow.store.postgres import PostgresStore

        return PostgresStore(url) if ttl_s is None else PostgresStore(url, ttl_s=ttl_s)
    # The URL may hold a password: only its scheme is told.
    raise errors.Refused(
        errors.CONFIG_INVALID,
        f"use sqlite:///PATH, postgresql://… or memory:// for the database, not: {scheme}",
        pointer="/database_url",
    )
