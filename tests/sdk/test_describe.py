"""What a package's functions say about themselves, as a manifest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.workflow.decoding import decode_manifest
from astraflow.core.workflow.manifest_rules import validate_manifest
from tests.processes.process import ROOT

HEAD = """
from __future__ import annotations
import dataclasses, enum, pathlib
from typing import Annotated, Any, Literal, Optional, TypedDict
from astraflow_sdk import Context, node
"""


def describe(folder: Path, code: str, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """In a process of its own, as `astra pkg build` does: the module is imported for real."""
    base = {"name": "demo", "version": "1.0.0", **(base or {})}
    (folder / "manifest.json").write_text(json.dumps(base))
    (folder / "demo_nodes.py").write_text(HEAD + code)
    ended = subprocess.run(
        [sys.executable, "-m", "astraflow_sdk.describe", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    said: dict[str, Any] = json.loads(ended.stdout)
    assert (ended.returncode == 1) == ("error" in said), ended
    return said


def node_of(folder: Path, code: str, base: dict[str, Any] | None = None) -> dict[str, Any]:
    manifest = describe(folder, code, base)
    assert "error" not in manifest, manifest
    assert validate_manifest(decode_manifest(json.dumps(manifest).encode())) == []
    node: dict[str, Any] = manifest["nodes"][0]
    return node


def test_a_function_becomes_a_node_that_a_server_takes(tmp_path: Path) -> None:
    node = node_of(
        tmp_path,
        '''
@node("demo.upper", category="Text", tags=["words"])
async def upper(ctx: Context, text: str, times: int = 1) -> dict[str, str]:
    """Upper-case a text.

    Args:
        text: What is made large,
            all of it.
        times: How often.

    Returns:
        text: The same, larger.
    """
    return {"text": text.upper() * times}
''',
    )
    assert node["label"] == "Upper" and node["description"] == "Upper-case a text."
    assert node["runtimes"] == {"python": {"handler": "demo_nodes:upper"}}
    assert node["schema"]["parameters"] == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What is made large, all of it."},
            "times": {"type": "integer", "description": "How often.", "default": 1},
        },
        "required": ["text"],
    }
    assert node["schema"]["results"] == {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The same, larger."}},
        "required": ["text"],
    }
    assert [port["key"] for port in node["ui"]["inputPorts"]] == ["trigger", "text", "times"]
    assert [port["key"] for port in node["ui"]["outputPorts"]] == ["text", "done"]
    text, times = node["ui"]["widgets"]
    assert text["component"] == "string"
    assert text["options"] == {"helpText": "What is made large, all of it.", "required": True}
    assert times["component"] == "number"


MANY = """
class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"

class Corner(TypedDict, total=False):
    x: int

@dataclasses.dataclass
class Box:
    width: int
    height: float = 2.0
    corners: list[Corner] = dataclasses.field(default_factory=list)

class Limit:
    ge = 0
    le = 9

@node("demo.many")
def many(
    mode: Mode,
    box: Box,
    where: pathlib.Path,
    body: bytes,
    note: Annotated[str, "multiline"],
    count: Annotated[int, Limit()] = 3,
    share: Annotated[float, {"minimum": 0, "maximum": 1}] = 0.5,
    kind: Optional[Literal["a", "b"]] = "a",
    either: int | str = 1,
    names: list[str] | None = None,
    pair: tuple[int, str] = (1, "a"),
    flags: dict[str, bool] = {},
    is_on: bool = False,
    anything: Any = None,
    default_mode: Mode = Mode.SLOW,
    long_text: str = "a line\\nand another",
): ...
"""


def test_every_kind_of_hint_has_a_schema(tmp_path: Path) -> None:
    node = node_of(tmp_path, MANY)
    schema = node["schema"]["parameters"]["properties"]
    assert schema["mode"] == {"type": "string", "enum": ["fast", "slow"]}
    assert schema["box"] == {
        "type": "object",
        "properties": {
            "width": {"type": "integer"},
            "height": {"type": "number", "default": 2.0},
            "corners": {
                "type": "array",
                "items": {"type": "object", "properties": {"x": {"type": "integer"}}},
                "default": [],
            },
        },
        "required": ["width"],
    }
    assert schema["where"] == {"type": "string"}
    assert schema["body"]["type"] == "string"
    assert schema["count"] == {"type": "integer", "minimum": 0, "maximum": 9, "default": 3}
    assert schema["share"]["maximum"] == 1
    assert schema["kind"]["enum"] == ["a", "b", None]
    assert schema["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["names"]["type"] == ["array", "null"]
    assert schema["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["flags"]["additionalProperties"] == {"type": "boolean"}
    assert schema["anything"] == {"default": None}
    assert schema["default_mode"]["default"] == "slow"


def test_every_kind_of_hint_has_a_widget(tmp_path: Path) -> None:
    node = node_of(tmp_path, MANY)
    components = {widget["key"]: widget["component"] for widget in node["ui"]["widgets"]}
    assert components == {
        "mode": "enum",
        "kind": "enum",
        "default_mode": "enum",
        "note": "text",
        "long_text": "text",
        "where": "string",
        "body": "string",
        "count": "number",
        "share": "number",
        "is_on": "boolean",
        "box": "json",
        "either": "json",
        "names": "json",
        "pair": "json",
        "flags": "json",
        "anything": "json",
    }
    widgets = {widget["key"]: widget.get("options", {}) for widget in node["ui"]["widgets"]}
    assert widgets["count"] == {"min": 0, "max": 9, "step": 1}
    assert widgets["mode"]["options"][0] == {"label": "Fast", "value": "fast"}


@pytest.mark.parametrize(
    ("returns", "keys", "required"),
    [
        ("-> int:\n    return 1", ["result"], ["result"]),
        ("-> None:\n    return None", [], None),
        ("-> dict:\n    return {'a': 1, 'b': 2} if 1 else {}", [], None),
        ("-> dict:\n    if 1:\n        return {'a': 1}\n    return {'a': 1, 'b': 2}", ["a", "b"], ["a"]),
        (":\n    def inner():\n        return {'no': 1}\n    return {'yes': inner()}", ["yes"], ["yes"]),
        ("-> Out:\n    return Out(1)", ["x"], ["x"]),
    ],
)  # fmt: skip
def test_results_are_what_the_hint_or_the_code_says(
    tmp_path: Path, returns: str, keys: list[str], required: list[str] | None
) -> None:
    code = (
        f"@dataclasses.dataclass\nclass Out:\n    x: int\n\n@node('demo.it')\ndef it(){returns}\n"
    )
    results = node_of(tmp_path, code)["schema"]["results"]
    assert list(results["properties"]) == keys
    assert results.get("required") == required


def test_what_the_author_wrote_counts_for_more(tmp_path: Path) -> None:
    written = {
        "nodes": [
            {
                "type": "demo.upper",
                "label": "LOUD",
                "ui": {
                    "widgets": [{"key": "text", "component": "text"}],
                    "outputPorts": [{"key": "more", "binding": {"path": "results.more"}}],
                },
                "schema": {"parameters": {"properties": {"text": {"maxLength": 9}}}},
            },
            {"type": "demo.other", "runtimes": {"own": {"handler": "run"}}},
        ],
        "adapters": [
            {"name": "own", "runtime": "own", "entrypoint": "demo_nodes:Own", "capabilities": ["demo.other"]}
        ],
    }  # fmt: skip
    code = """
@node("demo.upper", label="Quiet", inputs={"text": {"label": "Words", "options": {"rows": 3}}})
def upper(text: str) -> dict:
    return {"text": text}

class Own:
    def run(self, ctx): ...
"""
    node = node_of(tmp_path, code, written)
    assert node["label"] == "LOUD"
    assert node["schema"]["parameters"]["properties"]["text"] == {"type": "string", "maxLength": 9}
    (widget,) = node["ui"]["widgets"]
    assert (widget["component"], widget["label"]) == ("text", "Words")
    assert widget["options"] == {"rows": 3, "required": True}
    assert [port["key"] for port in node["ui"]["outputPorts"]] == ["text", "done", "more"]
    manifest = describe(tmp_path, code, written)
    assert [one["type"] for one in manifest["nodes"]] == ["demo.upper", "demo.other"]
    assert [one["name"] for one in manifest["adapters"]] == ["demo.nodes", "own"]


def test_a_node_that_must_not_run_twice_has_an_adapter_that_says_so(tmp_path: Path) -> None:
    code = """
@node("demo.pay", idempotency="none")
def pay() -> dict: ...

@node("demo.look")
def look() -> dict: ...
"""
    first, second = describe(tmp_path, code)["adapters"]
    assert (first["capabilities"], first["idempotency"]) == (["demo.pay"], "none")
    assert second["capabilities"] == ["demo.look"] and "idempotency" not in second


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("@node('demo.a')\ndef a(x: complex): ...", ["demo_nodes:a", "parameter x", "complex", "write str"]),
        ("@node('demo.a')\ndef a(x: dict[int, str]): ...", ["parameter x", "keys", "int"]),
        ("@node('demo.a')\ndef a(*xs): ...", ["demo_nodes:a", "parameter xs", "by name"]),
        ("@node('demo.a')\ndef a(trigger): ...", ["parameter trigger", "call it otherwise"]),
        ("@node('demo.a')\ndef a():\n    return {'done': 1}", ["result done", "call it otherwise"]),
        ("@node('demo.a')\ndef a(x: Missing): ...", ["demo_nodes:a", "Missing", "TYPE_CHECKING"]),
        ("@node('demo.a', inputs={'y': {}})\ndef a(x): ...", ["demo_nodes:a", "`inputs` refines y"]),
        ("@node('demo.a')\ndef a(): ...\n@node('demo.a')\ndef b(): ...",
         ["demo.a", "demo_nodes:a", "demo_nodes:b"]),
        ("import nothing_like_it", ["nothing_like_it", "demo_nodes.py, line 6", "python.dependencies"]),
        ("raise RuntimeError('so it is')", ["RuntimeError: so it is", "line 6"]),
    ],
)  # fmt: skip
def test_what_cannot_be_described_is_said_with_what_to_write(
    tmp_path: Path, code: str, words: list[str]
) -> None:
    said = describe(tmp_path, code)["error"]
    assert [word for word in words if word not in said] == [], said


def test_what_a_package_prints_is_no_part_of_its_manifest(tmp_path: Path) -> None:
    code = "print('hello')\n@node('demo.a')\ndef a(): ..."
    assert describe(tmp_path, code)["nodes"][0]["type"] == "demo.a"


def test_tests_and_what_is_imported_from_elsewhere_make_no_nodes(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").write_text("raise RuntimeError('tests are no code')")
    (tmp_path / "test_it.py").write_text("raise RuntimeError('tests are no code')")
    (tmp_path / "a_first.py").write_text("from demo_nodes import a\n")
    manifest = describe(tmp_path, "@node('demo.a')\ndef a(): ...")
    assert manifest["nodes"][0]["runtimes"]["python"]["handler"] == "demo_nodes:a"
    assert len(manifest["nodes"]) == 1


def test_modules_in_the_folder_adapters_are_found(tmp_path: Path) -> None:
    (tmp_path / "adapters" / "inner").mkdir(parents=True)
    (tmp_path / "adapters" / "inner" / "__init__.py").write_text(
        HEAD + "@node('demo.inner')\ndef inner(): ..."
    )
    manifest = describe(tmp_path, "")
    assert manifest["nodes"][0]["runtimes"]["python"]["handler"] == "inner:inner"
