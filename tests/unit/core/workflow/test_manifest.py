from __future__ import annotations

from astraflow.core.workflow import decode_manifest
from astraflow.core.workflow.manifest import ManifestResources, ResourceDefaults
from tests.unit.core.workflow.drafts import EXAMPLES, manifest

FILE = {"path": "resources/x", "type": "download"}


def test_both_forms_of_resources_are_read() -> None:
    assert [row.path for row in manifest(resources=[FILE]).body.resource_files()] == ["resources/x"]
    form = manifest(resources={"defaults": {"inlineThresholdBytes": 9}, "files": [FILE]}).body
    assert [row.path for row in form.resource_files()] == ["resources/x"]
    assert isinstance(form.resources, ManifestResources)
    assert form.resources.defaults == ResourceDefaults(inline_threshold_bytes=9)
    assert manifest().body.resource_files() == []


def test_the_manifest_of_the_seed_is_read() -> None:
    raw = (EXAMPLES / "manifest" / "playwright.json").read_bytes()
    seed = decode_manifest(raw)
    assert (seed.name, seed.version) == ("playwright", "2025.10.0")
    assert seed.body.adapters[0].idempotency == "per_request"
    assert seed.body.nodes[0].runtimes["playwright"].handler == "open_page"
    assert seed.body.hooks is not None
    assert seed.body.hooks.install == ["scripts/install_extra.sh"]


def test_unknown_fields_of_a_manifest_survive() -> None:
    assert manifest(vendor={"a": [1]}).document()["vendor"] == {"a": [1]}
