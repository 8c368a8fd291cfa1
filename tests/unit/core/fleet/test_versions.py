"""Published and active versions."""

from __future__ import annotations

from astraflow.core.fleet.versions import (
    EVERY_TENANT,
    ActiveVersionRecord,
    PublishedVersion,
    VersionActivated,
    VersionTable,
)

SHA = "ab" * 32


def test_a_version_is_found_in_any_spelling_and_only_by_its_tenant() -> None:
    table = VersionTable()
    published = PublishedVersion("acme", "text", "2.0", SHA)
    table.publish(published)
    assert table.find("acme", "text", "v2.0.0") is published
    assert table.find("acme", "text", "2.1") is None
    assert table.find("acme", "text", "no version") is None
    assert table.find("other", "text", "2.0") is None


def test_a_tenants_own_version_comes_before_that_of_the_installation() -> None:
    table = VersionTable()
    shipped = PublishedVersion(EVERY_TENANT, "text", "2.0", SHA)
    table.publish(shipped)
    assert table.find("acme", "text", "2.0") is shipped
    own = PublishedVersion("acme", "text", "2.0", SHA, is_yanked=True)
    table.publish(own)
    assert table.find("acme", "text", "2.0") is own
    assert table.find("other", "text", "2.0") is shipped


def test_the_version_before_the_active_one_is_remembered() -> None:
    table = VersionTable()
    assert table.active("acme", "text") is None
    first = table.apply(VersionActivated("acme", 1, "text", "1.0", "ann"))
    assert first == ActiveVersionRecord("acme", "text", "1.0", None, 1, "ann")
    second = table.apply(VersionActivated("acme", 2, "text", "2.0", "bob"))
    assert second.previous == "1.0"
    assert list(table) == [table.active("acme", "text")] == [second]
