"""The template of `astra pkg new`: a package with one node, its test, and a workflow that uses it."""

from __future__ import annotations

import uuid
from pathlib import Path
from string import Template
from typing import Final

from astraflow.core import errors
from astraflow.core.workflow.core_manifest import CORE_PACKAGE
from astraflow.core.workflow.manifest_rules import is_package_name

MANIFEST: Final = """{
  "name": "$name",
  "version": "0.1.0",
  "description": "What the nodes of $name do."
}
"""
MODULE: Final = '''"""The nodes of package $name."""

from __future__ import annotations

from astraflow_sdk import Context, node


@node("$name.greet", category="Text", tags=["hello"])
async def greet(ctx: Context, name: str, times: int = 1) -> dict[str, str]:
    """Greet somebody.

    Args:
        name: The person to greet.
        times: The number of greetings.
    """
    ctx.log("info", f"greeting {name}")
    return {"text": " ".join([f"Hello, {name}!"] * times)}
'''
TEST: Final = """from __future__ import annotations

from astraflow_sdk.testing import RunNode
from $module import greet


def test_greets_several_times(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada", times=2).result == {"text": "Hello, Ada! Hello, Ada!"}


def test_logs_the_name(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada").logs == [("info", "greeting Ada")]
"""
WORKFLOW: Final = """{
  "id": "$workflow",
  "metadata": { "name": "Try $name" },
  "nodes": [
    {
      "id": "$node",
      "type": "$name.greet",
      "package": { "name": "$name" },
      "label": "Greet",
      "parameters": { "name": "World" }
    }
  ],
  "edges": []
}
"""
README: Final = """# $name

```
astra pkg test          # run the tests, no server needed
astra pkg dev           # install it on the workers of a server after every save
astra run workflow.json # use it
astra pkg publish       # build and publish the version
```

The nodes are functions in `$module`. `manifest.json` contains the name, the version, and in `python.dependencies` the
dependencies, pinned with `==`. The editor shows a node by its type hints and its docstring; entries in the manifest
take precedence.
"""
IGNORED: Final = "dist/\n__pycache__/\n.pytest_cache/\n"


def write_package(name: str, into: Path) -> Path:
    """Create the directory of a new package; returns it.

    Raises:
        Refused: the name is invalid, or the directory exists and is not empty.
        OSError: a file cannot be written.
    """
    if not is_package_name(name) or name == CORE_PACKAGE:
        raise errors.Refused(
            errors.PKG_INVALID,
            f"Invalid package name {name!r}",
            detail={"hint": "use lower-case letters, digits, _ and -, and start with a letter"},
        )
    folder = into / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise errors.Refused(
            errors.INPUT_UNREADABLE,
            f"Directory exists and is not empty: {folder}",
            detail={"hint": "choose another name, or another parent directory with --dir"},
        )
    module = f"{name.replace('-', '_')}_nodes"
    words = {
        "name": name,
        "module": module,
        "workflow": str(uuid.uuid4()),
        "node": str(uuid.uuid4()),
    }
    for path, text in (
        ("manifest.json", MANIFEST),
        (f"{module}/__init__.py", MODULE),
        ("tests/test_nodes.py", TEST),
        ("workflow.json", WORKFLOW),
        ("README.md", README),
        (".gitignore", IGNORED),
    ):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(words), "utf-8")
    return folder
