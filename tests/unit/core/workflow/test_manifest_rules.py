from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import decode_manifest, validate_manifest
from astraflow.core.workflow.manifest_rules import is_package_name
from tests.tables import each_row
from tests.unit.core.workflow.drafts import EXAMPLES, manifest

ADAPTER = {"name": "a", "runtime": "python", "entrypoint": "example.nodes:Adapter"}
DIGEST = "ab" * 32


def pointers(**fields: Any) -> list[str]:
    rows = validate_manifest(manifest(**fields))
    assert {row.code for row in rows} <= {"E.PKG.INVALID"}
    return [row.pointer for row in rows]


@each_row("name", ["core", "crawlerx_playwright", "a", "a-1", "a" * 64, "com10"])
def test_names_that_can_be_folders_everywhere_are_taken(name: str) -> None:
    assert is_package_name(name)


@each_row(
    "name", ["", "../x", "con", "com1", "lpt9", "A", "1a", "a/b", "a.b", "a" * 65, "ä", "a\n"]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_package_name(name)
    assert pointers(name=name) == ["/name"]


@pytest.mark.parametrize("name", ["playwright.json", "smallest.json", "resource_defaults.json"])
def test_a_sound_manifest_has_no_problem(name: str) -> None:
    raw = (EXAMPLES / "manifest" / name).read_bytes()
    assert validate_manifest(decode_manifest(raw)) == []


@each_row(
    ("fields", "expected"),
    [
        ({"version": "latest"}, "/version"),
        ({"schemaVersion": "2.0.0"}, "/schemaVersion"),
        ({"schemaVersion": "1.0"}, "/schemaVersion"),
        ({"description": "x" * 20_000}, "/description"),
        ({"permissions": ["net", ""]}, "/permissions/1"),
        ({"permissions": ["p"] * 1_025}, "/permissions"),
        ({"python": {"requires": "three"}}, "/python/requires"),
        ({"python": {"requires": ",".join([">=3.10"] * 40)}}, "/python/requires"),
        ({"python": {"dependencies": ["a==1"] * 513}}, "/python/dependencies"),
        ({"adapters": [ADAPTER] * 1_025}, "/adapters"),
        ({"adapters": [ADAPTER, ADAPTER]}, "/adapters/1/name"),
        ({"adapters": [{**ADAPTER, "name": ""}]}, "/adapters/0/name"),
        ({"adapters": [{**ADAPTER, "idempotency": "NONE"}]}, "/adapters/0/idempotency"),
        ({"adapters": [{**ADAPTER, "capabilities": ["ok", "a b"]}]}, "/adapters/0/capabilities/1"),
        (
            {"adapters": [{**ADAPTER, "capabilities": ["t"] * 2_049}]},
            "/adapters/0/capabilities",
        ),
        ({"nodes": [{"type": "x.y"}] * 2_049}, "/nodes"),
        ({"nodes": [{"type": "x.y"}, {"type": "x.y"}]}, "/nodes/1/type"),
        ({"nodes": [{"type": ""}]}, "/nodes/0/type"),
        ({"nodes": [{"type": "x.y", "label": "\u202e"}]}, "/nodes/0/label"),
        ({"nodes": [{"type": "x.y", "tags": [""]}]}, "/nodes/0/tags/0"),
        ({"nodes": [{"type": "x.y", "tags": ["t"] * 1_025}]}, "/nodes/0/tags"),
        ({"nodes": [{"type": "x.y", "runtimes": {"ruby": {}}}]}, "/nodes/0/runtimes"),
        (
            {"nodes": [{"type": "x.y", "ui": {"outputPorts": [{"key": ".."}]}}]},
            "/nodes/0/ui/outputPorts/0/key",
        ),
        ({"hooks": {"install": ["a.sh"] * 17}}, "/hooks/install"),
        ({"hooks": {"uninstall": ["ok.sh", "../x"]}}, "/hooks/uninstall/1"),
        ({"hooks": {"install": ["/".join("a" * 33)]}}, "/hooks/install/0"),
        ({"hooks": {"install": ["a" * 256]}}, "/hooks/install/0"),
        ({"resources": [{"path": "x", "type": "t"}] * 1_025}, "/resources"),
        ({"resources": [{"path": "x", "type": "t", "sha256": "AB" * 32}]}, "/resources/0/sha256"),
        (
            {"resources": {"files": [{"path": "x", "type": "t", "url": "ftp://x"}]}},
            "/resources/files/0/url",
        ),
        ({"signature": {"sha256": "x"}}, "/signature/sha256"),
        ({"signature": {"sha256": DIGEST, "signedAt": "now"}}, "/signature/signedAt"),
        ({"signature": {"sha256": DIGEST, "signedBy": "\x1b"}}, "/signature/signedBy"),
    ],
)
def test_a_breach_is_reported_where_it_is(fields: dict[str, Any], expected: str) -> None:
    assert pointers(**fields) == [expected]


@each_row(
    "entrypoint",
    [
        "os:system",
        "subprocess:Popen",
        "os.path:join",
        "example",
        "example:",
        ":Name",
        "example.nodes:run()",
        "example.nodes:a;b",
        "../example:X",
        "example..nodes:X",
        "a" * 300 + ":X",
    ],
)
def test_an_entrypoint_outside_the_package_is_refused(entrypoint: str) -> None:
    assert pointers(adapters=[{**ADAPTER, "entrypoint": entrypoint}]) == ["/adapters/0/entrypoint"]


@each_row(
    "dependency",
    [
        "playwright==1.47.2",
        "requests[socks,security] == 2.32.3",
        'tomli==2.0.1; python_version < "3.11"',
        f"numpy==1.26.4 --hash=sha256:{DIGEST} --hash=sha256:{DIGEST}",
        "x==1!2.0.post1",
    ],
)
def test_a_pinned_dependency_is_taken(dependency: str) -> None:
    assert pointers(python={"dependencies": [dependency]}) == []


@each_row(
    "dependency",
    [
        "",
        "requests",
        "requests>=2",
        "requests==2.*",
        "requests==latest",
        "--index-url https://example.com",
        "-e .",
        "-r more.txt",
        "git+https://example.com/x.git",
        "x @ file:///tmp/x.whl",
        "x==1 --no-binary x",
        "x==1; extra == 'a' @ https://example.com",
        "x" * 20_000,
        "x==1;" + " " * 16_000 + ";",
        "x==1; ",
        f"x==1--hash=sha256:{DIGEST}",
        "x==1 --hash=md5:abc",
        'x==1; python_version < "3" --no-deps',
    ],
)
def test_any_other_dependency_is_refused(dependency: str) -> None:
    assert pointers(python={"dependencies": [dependency]}) == ["/python/dependencies/0"]


def test_every_problem_of_a_manifest_is_reported() -> None:
    assert pointers(name="../x", version="?", schemaVersion="9", hooks={"install": ["/x"]}) == [
        "/name",
        "/version",
        "/schemaVersion",
        "/hooks/install/0",
    ]
