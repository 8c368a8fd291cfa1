"""What `astra pkg new` writes: the smallest package that has a node, a test of it, and a workflow that uses it."""

from __future__ import annotations

import uuid
from pathlib import Path
from string import Template
from typing import Final

from astraflow.core import errors
from astraflow.core.workflow.core_manifest import CORE_PACKAGE
from astraflow.core.workflow.manifest_rules import is_package_name

__all__ = ["write_package"]

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
        name: Who is greeted.
        times: How often.
    """
    ctx.log("info", f"greeting {name}")
    return {"text": " ".join([f"Hello, {name}!"] * times)}
'''
TEST: Final = """from __future__ import annotations

from astraflow_sdk.testing import RunNode
from $module import greet


def test_it_greets_as_often_as_it_is_told(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada", times=2).result == {"text": "Hello, Ada! Hello, Ada!"}


def test_it_says_whom_it_greets(run_node: RunNode) -> None:
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
astra pkg dev           # put it on the workers of a server, again at every save
astra run workflow.json # use it
astra pkg publish       # build it and publish its version
```

The nodes are functions in `$module`. `manifest.json` names the package, its version, and below `python.dependencies`
what it needs, pinned with `==`. What a node looks like in the editor comes from its type hints and its docstring; what
stands in the manifest counts for more.
"""
IGNORED: Final = "dist/\n__pycache__/\n.pytest_cache/\n"


def write_package(name: str, into: Path) -> Path:
    """Make the folder of a new package; returns it.

    Raises:
        Refused: the name cannot be one, or the folder is there and not empty.
        OSError: it cannot be written.
    """
    if not is_package_name(name) or name == CORE_PACKAGE:
        raise errors.Refused(
            errors.PKG_INVALID,
            f"a package cannot have this name: {name!r}",
            detail={"hint": "use small letters, digits, _ and -, beginning with a letter"},
        )
    folder = into / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise errors.Refused(
            errors.INPUT_UNREADABLE,
            f"there is something already: {folder}",
            detail={"hint": "choose another name, or another place with --dir"},
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
