from __future__ import annotations

from typing import Any

from astraflow.core.workflow import Manifest, StaticCatalog
from astraflow.core.workflow.package_uses import PackageUses, parse_wanted
from tests.tables import each_row
from tests.unit.core.workflow.drafts import definition, manifest, node


def package(name: str, version: str, *types: str) -> Manifest:
    return manifest(name=name, version=version, nodes=[{"type": one} for one in types])


CATALOG = StaticCatalog(
    [
        package("text", "1.9", "text.upper", "text.old"),
        package("text", "1.10", "text.upper"),
        package("other", "1.0", "text.shared"),
        package("third", "1.0", "text.shared"),
    ]
)


def uses(wanted: str, *nodes: dict[str, Any], **fields: Any) -> bool:
    parsed = parse_wanted(wanted)
    assert parsed is not None
    return PackageUses(parsed, CATALOG).is_used_in(definition(nodes, **fields).raw)


def named(name: str, version: str | None = None) -> dict[str, Any]:
    return {"name": name, **({"version": version} if version else {})}


def test_a_node_that_names_the_package_uses_it_whatever_the_catalog_knows() -> None:
    assert uses("text", node(1, "text.upper", package=named("text")))
    assert uses("gone", node(1, "gone.away", package=named("gone", "3.0")))
    assert uses("gone@3", node(1, "gone.away", package=named("gone", "3.0")))
    assert not uses("gone@3.1", node(1, "gone.away", package=named("gone", "3.0")))
    assert not uses("gone@3", node(1, "gone.away", package=named("gone")))
    assert not uses("text", node(1, "text.upper", package=named("text2")))


def test_a_node_without_a_package_uses_the_only_provider_of_its_type() -> None:
    assert uses("text", node(1, "text.old"))
    assert not uses("other", node(1, "text.old"))
    assert not uses("other", node(1, "text.shared"))
    assert not uses("text", node(1, "no.such"))


def test_a_node_without_a_version_uses_the_one_that_a_run_would_get() -> None:
    assert uses("text@1.10.0", node(1, "text.upper"))
    assert not uses("text@1.9", node(1, "text.upper"))
    assert uses("text@1.9", node(1, "text.old", package=named("text")))
    assert uses("text@1.9", node(1, "text.upper", package=named("text", "1.9.0")))


def test_hints_decide_about_the_version_as_in_a_run() -> None:
    hints = {"browser": {"workerHints": {"package": "text", "minVersion": "1.11"}}}
    assert not uses("text@1.10", node(1, "text.upper"), runtimes=hints)
    assert not uses("text@1.10", node(1, "text.upper", workerHints={"minVersion": "2"}))


def test_nodes_inside_of_containers_and_middlewares_count() -> None:
    inside = node(2, "text.upper", parent=node(1)["id"])
    assert uses("text", node(1, "core.container"), inside)
    wrapped = node(1, "core.noop", middlewares=[node(2)["id"]])
    assert uses("text", wrapped, node(2, "text.upper"))


@each_row(
    ("text", "is_fine"),
    [
        ("text", True),
        ("text@1.0", True),
        ("text@1.0rc1", True),
        ("", False),
        ("@1.0", False),
        ("text@", False),
        ("text@new", False),
        ("text@1@2", False),
        ("Not A Name", False),
    ],
)
def test_what_is_asked_for_is_a_name_with_or_without_a_version(text: str, is_fine: bool) -> None:
    assert (parse_wanted(text) is not None) is is_fine
