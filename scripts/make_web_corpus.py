"""Write the fixtures that hold the validation in the browser to that of the scheduler.

The corpus has definitions, most of them wrong, with what the scheduler finds in each: drawn ones, and all examples of
`schemas/examples`. The catalog has the node types of the core and of the shipped packages, with the fields of
`GET /api/v1/catalog/nodes` that ports and rules are made from.

    python scripts/make_web_corpus.py           write them
    python scripts/make_web_corpus.py --check   fail if they are not what the scheduler says
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from astraflow.core.workflow import (  # noqa: E402
    CatalogEntry,
    InvalidDocument,
    Manifest,
    StaticCatalog,
    core_manifest,
    decode_definition,
    decode_manifest,
    validate,
)
from astraflow.core.workflow.schema_rules import given_by, wanted_by  # noqa: E402
from tests.conformance.drawn_definitions import draw_definition  # noqa: E402

FIXTURES: Final = ROOT / "web/tests/fixtures"
EXAMPLES: Final = ROOT / "schemas/examples"
DRAWN: Final = 300
"""Enough for each rule to be broken several times, and to be read in a tenth of a second."""
MANIFESTS: Final = sorted((ROOT / "packages").glob("*/manifest.json"))


def shipped() -> list[Manifest]:
    """Those of the core and of the packages that a fresh scheduler has; a template has no version yet."""
    raws = [path.read_bytes() for path in MANIFESTS]
    manifests = [decode_manifest(raw) for raw in raws if b'"schemaVersion"' in raw]
    return [core_manifest(), *(one for one in manifests if one.name != "core")]


def cases() -> Iterator[tuple[str, str]]:
    """Each definition as a text, with its name."""
    for path in sorted(EXAMPLES.glob("*/workflow/*.json")):
        yield f"{path.parent.parent.name}/{path.stem}", path.read_text()
    for path in sorted((EXAMPLES / "unfit").glob("*.json")):
        yield f"unfit/{path.stem}", path.read_text()
    for seed in range(DRAWN):
        yield f"drawn/{seed}", draw_definition(seed).decode()


def problems_of(text: str, catalog: StaticCatalog) -> list[list[str]]:
    try:
        found = validate(decode_definition(text.encode()), catalog)
    except InvalidDocument as refused:
        found = list(refused.problems)
    return [[one.pointer, one.code] for one in found]


def node_types(manifest: Manifest, catalog: StaticCatalog) -> Iterator[dict[str, Any]]:
    for node in manifest.document().get("nodes", []):
        found = catalog.find(node["type"], manifest.name)
        assert isinstance(found, CatalogEntry)
        ports = {**(found.ports.inputs or {})}, {**(found.ports.outputs or {})}
        inputs = {key: wanted_by(found.schemas.parameters, port) for key, port in ports[0].items()}
        outputs = {key: given_by(found.schemas.results, port) for key, port in ports[1].items()}
        yield {
            "type": node["type"],
            "package": {"name": manifest.name, "version": manifest.version},
            "label": node.get("label", node["type"]),
            "category": node.get("category", ""),
            "schema": node.get("schema", {}),
            "ui": node.get("ui", {}),
            "executedBy": node.get("executedBy"),
            "middleware": node.get("middleware", False),
            "portTypes": {
                "inputs": {key: sorted(types) for key, types in inputs.items() if types},
                "outputs": {key: sorted(types) for key, types in outputs.items() if types},
            },
        }


def made() -> dict[Path, bytes]:
    manifests = shipped()
    catalog = StaticCatalog(manifests)
    nodes: list[Any] = []
    for manifest in manifests:
        nodes += node_types(manifest, catalog)
    corpus = [
        {"name": name, "text": text, "problems": problems_of(text, catalog)}
        for name, text in cases()
    ]
    return {
        FIXTURES / "corpus.json": _lines(corpus),
        FIXTURES / "catalog.json": _lines(nodes),
    }


def _lines(rows: list[Any]) -> bytes:
    """One row on each line, so that a difference is small."""
    return b"[\n" + b",\n".join(msgspec.json.encode(row) for row in rows) + b"\n]\n"


def main(arguments: list[str]) -> int:
    wrong = 0
    for path, content in made().items():
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            print(f"{path.relative_to(ROOT)} is not what the scheduler says: make web-corpus")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
