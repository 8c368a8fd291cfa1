from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import CatalogEntry, InvalidDocument, Manifest, Miss, StaticCatalog
from tests.tables import each_row
from tests.unit.core.workflow.drafts import manifest


def package(name: str, version: str, *types: str, **fields: Any) -> Manifest:
    return manifest(name=name, version=version, nodes=[{"type": t} for t in types], **fields)


CATALOG = StaticCatalog(
    [
        package("text", "1.9", "text.upper", "text.old"),
        package("text", "1.10", "text.upper"),
        package("text", "2.0rc1", "text.upper", "text.new"),
        package("other", "1.0", "text.shared"),
        package("third", "1.0", "text.shared"),
    ]
)


def version_of(found: CatalogEntry | Miss) -> str:
    assert isinstance(found, CatalogEntry)
    return found.package_version


def test_without_a_version_the_newest_release_with_the_type_is_taken() -> None:
    assert version_of(CATALOG.find("text.upper", "text")) == "1.10"
    assert version_of(CATALOG.find("text.old", "text")) == "1.9"


def test_a_prerelease_is_taken_where_there_is_no_release_or_when_it_is_named() -> None:
    assert version_of(CATALOG.find("text.new", "text")) == "2.0rc1"
    assert version_of(CATALOG.find("text.upper", "text", "2.0rc1")) == "2.0rc1"


def test_a_version_is_found_in_any_spelling_and_pinned_in_the_published_one() -> None:
    assert version_of(CATALOG.find("text.upper", "text", "1.10.0")) == "1.10"


def test_without_a_package_the_only_provider_is_taken() -> None:
    found = CATALOG.find("text.upper")
    assert isinstance(found, CatalogEntry)
    assert found.package_name == "text"


def test_the_least_version_bounds_the_choice() -> None:
    assert version_of(CATALOG.find("text.upper", "text", None, "1.10")) == "1.10"
    assert version_of(CATALOG.find("text.upper", "text", None, "1.11")) == "2.0rc1"
    assert CATALOG.find("text.upper", "text", None, "3") is Miss.VERSION


@each_row(
    ("question", "answer"),
    [
        (("text.upper", "nope"), Miss.PACKAGE),
        (("text.upper", "text", "7.0"), Miss.VERSION),
        (("text.old", "text", "1.10"), Miss.TYPE),
        (("text.none", "text"), Miss.TYPE),
        (("text.none",), Miss.TYPE),
        (("text.shared",), Miss.AMBIGUOUS),
    ],
)
def test_a_miss_says_why(question: tuple[str, ...], answer: Miss) -> None:
    assert CATALOG.find(*question) is answer


def test_runtime_and_idempotency_come_from_the_adapter_that_runs_the_node() -> None:
    def adapter(name: str, runtime: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "runtime": runtime, "entrypoint": "example.x:Y", **fields}

    catalog = StaticCatalog(
        [
            manifest(
                adapters=[
                    adapter("a", "python", idempotency="per_request"),
                    adapter("b", "browser", capabilities=["ex.open"], idempotency="none"),
                ],
                nodes=[
                    {"type": "ex.open"},
                    {"type": "ex.run", "runtimes": {"python": {}}},
                    {"type": "ex.lost", "runtimes": {"ruby": {}}},
                    {"type": "ex.plain", "executedBy": "scheduler"},
                ],
            )
        ]
    )
    rows = [catalog.find(f"ex.{name}") for name in ("open", "run", "lost", "plain")]
    assert [
        (row.runtime, row.idempotency, row.executed_by_scheduler)
        for row in rows
        if isinstance(row, CatalogEntry)
    ] == [
        ("browser", "none", False),
        ("python", "per_request", False),
        ("ruby", "unstated", False),
        (None, "unstated", True),
    ]


def test_a_manifest_that_cannot_be_used_is_refused() -> None:
    bad = {"type": "ex.a", "ui": {"inputPorts": [{"key": "a", "binding": {"path": "x..y"}}]}}
    with pytest.raises(InvalidDocument) as refused:
        StaticCatalog([manifest(version="latest", nodes=[bad])])
    assert [row.pointer for row in refused.value.problems] == [
        "/version",
        "/nodes/0/ui/inputPorts/0/binding/path",
    ]
