from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import Refused
from astraflow.store import open_store
from astraflow.store.memory import MemoryStore
from astraflow.store.postgres import PostgresStore
from astraflow.store.sqlite import SqliteStore
from tests.tables import each_row


@each_row(
    ("url", "kind"),
    [
        ("sqlite:///store.db", SqliteStore),
        ("sqlite:////var/lib/astraflow/store.db", SqliteStore),
        ("sqlite://:memory:", MemoryStore),
        ("memory://", MemoryStore),
        ("postgresql://user@host/name", PostgresStore),
        ("postgres:///name?host=/run/postgresql", PostgresStore),
    ],
)
def test_a_url_names_a_store(url: str, kind: type) -> None:
    assert type(open_store(url)) is kind


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///store.db", "store.db"),
        ("sqlite:////var/store.db", "/var/store.db"),
    ],
)
def test_three_slashes_are_a_relative_path_and_four_an_absolute_one(url: str, path: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    assert store.database.path == path


@each_row("url", ["", "mysql://u:secret@h/x", "sqlite://", "sqlite:///", "sqlite://store.db", "x"])
def test_any_other_url_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(Refused) as caught:
        open_store(url)
    assert caught.value.code is errors.CONFIG_INVALID
    assert caught.value.pointer == "/database_url"
    assert "secret" not in caught.value.message
