"""From `@node` functions to a manifest: schema, ports and widgets come from hints and docstrings.

Entries in `manifest.json` take precedence over derived ones: objects are merged by member, nodes
by their type, ports and widgets by their key.

`python -m astraflow_sdk.describe FOLDER` reads the folder's manifest and writes the whole one to stdout; a problem is
`{"error": …}` and exit code 1. It runs in a process of its own, because it imports the package.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from astraflow_sdk.host.handlers import marked_functions, read_manifest
from astraflow_sdk.nodes import NodeInfo, info_of
from astraflow_sdk.palette import label_of, ui_of
from astraflow_sdk.signatures import DescribeError, read_signature

SCHEMA_VERSION = "1.0.0"
RUNTIME = "python"
_KEYED = {
    "nodes": "type",
    "adapters": "name",
    "inputPorts": "key",
    "outputPorts": "key",
    "widgets": "key",
}


def describe_package(folder: str | os.PathLike[str], base: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a package: `base`, and what the `@node` functions in its modules say.

    Raises:
        DescribeError: a module cannot be imported, or a function does not say enough; the message says what to write.
    """
    folder = os.path.abspath(folder)
    found: dict[str, tuple[str, Callable[..., Any], NodeInfo]] = {}
    for name, function in _marked(folder):
        info = info_of(function)
        assert info is not None
        if info.type in found:
            raise DescribeError(
                f"two functions are the node type {info.type}: {found[info.type][0]} and {name}; give one another type"
            )
        found[info.type] = name, function, info
    authored = {node.get("type"): node for node in base.get("nodes") or ()}
    nodes, adapters = [], _Adapters(str(base.get("name") or "package"))
    for name, function, info in found.values():
        node = describe_function(name, function, info)
        if "runtimes" in authored.get(info.type, {}):
            del node["runtimes"]
        else:
            adapters.add(name, info)
        nodes.append(node)
    derived: dict[str, Any] = {"schemaVersion": SCHEMA_VERSION, "nodes": nodes}
    if adapters.made:
        derived["adapters"] = list(adapters.made.values())
    return _ordered(_merged(derived, base))


def describe_function(name: str, function: Callable[..., Any], info: NodeInfo) -> dict[str, Any]:
    """One entry of `nodes`. `name` is `module:function`.

    Raises:
        DescribeError: a hint has no form in JSON.
    """
    signature = read_signature(name, function, info)
    node: dict[str, Any] = {
        "type": info.type,
        "status": info.status or "published",
        "category": info.category,
        "label": info.label or label_of(info.type.rpartition(".")[2]),
        "description": signature.description or None,
        "tags": list(info.tags),
        "runtimes": {RUNTIME: {"handler": name}},
        "schema": {"parameters": signature.parameters, "results": signature.results},
        "ui": ui_of(signature, info),
    }
    return {key: value for key, value in node.items() if value not in (None, [])}


class _Adapters:
    """The adapters of derived nodes: one for each kind of idempotency, because adapters state it."""

    def __init__(self, package: str) -> None:
        self.made: dict[str, dict[str, Any]] = {}
        self._package = package

    def add(self, name: str, info: NodeInfo) -> None:
        stated = info.idempotency
        key = f"{self._package}.nodes" + (f".{stated}" if stated else "")
        adapter = self.made.setdefault(
            key, {"name": key, "runtime": RUNTIME, "entrypoint": name, "capabilities": []}
        )
        adapter["capabilities"].append(info.type)
        if stated:
            adapter["idempotency"] = stated


def _marked(folder: str) -> Iterable[tuple[str, Callable[..., Any]]]:
    try:
        return list(marked_functions(folder))
    except ModuleNotFoundError as problem:
        raise DescribeError(
            f"the package cannot be imported: {problem}{_place(problem, folder)}; name what it needs in manifest.json "
            "below python.dependencies, pinned with =="
        ) from problem
    except (Exception, SystemExit) as problem:  # whatever a package does when it is imported
        said = f"{type(problem).__name__}: {problem}"
        raise DescribeError(
            f"the package cannot be imported: {said}{_place(problem, folder)}"
        ) from problem


def _place(problem: BaseException, folder: str) -> str:
    """Where in the package it happened."""
    if isinstance(problem, SyntaxError):
        return ""  # says so itself
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [one for one in frames if one.filename.startswith(folder + os.sep)]
    return (
        f" ({os.path.relpath(ours[-1].filename, folder)}, line {ours[-1].lineno})" if ours else ""
    )


def _merged(derived: Any, authored: Any, keyed_by: str | None = None) -> Any:
    if isinstance(derived, Mapping) and isinstance(authored, Mapping):
        both = dict(derived)
        for name, value in authored.items():
            is_new = name not in derived
            both[name] = value if is_new else _merged(derived[name], value, _KEYED.get(name))
        return both
    if keyed_by is not None and isinstance(derived, list) and isinstance(authored, list):
        written = {one.get(keyed_by): one for one in authored if isinstance(one, Mapping)}
        first = [_merged(one, written.pop(one[keyed_by], {})) for one in derived]
        return [*first, *written.values()]
    return authored


def _ordered(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What names the package first: people read manifests."""
    first = ("name", "version", "schemaVersion", "description", "adapters", "python", "nodes")
    return {key: manifest[key] for key in dict.fromkeys([*first, *manifest]) if key in manifest}


def main(folder: str) -> int:
    """Returns the exit code."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the package prints when it is imported is not part of the answer
    with answer:
        try:
            json.dump(describe_package(folder, read_manifest(folder)), answer)
        except (DescribeError, OSError, ValueError) as problem:
            json.dump({"error": str(problem)}, answer)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
