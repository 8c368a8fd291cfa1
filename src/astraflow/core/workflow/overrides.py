"""A definition with other parameters or package versions, for a run that repeats one of it.

The stored definition stays as it is; what comes out is another one, which is validated and planned like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.core.workflow.problems import pointer_token


def override(
    definition: bytes,
    parameters: Mapping[str, Mapping[str, Any]],
    packages: Mapping[str, str],
    package_of: Mapping[str, str],
) -> tuple[bytes, frozenset[str]]:
    """The changed definition, and the ids of the nodes that differ. `package_of`: the package of each node, by id.

    Raises:
        Refused: a node or a package is not in the definition.
    """
    for node_id in parameters:
        if node_id not in package_of:
            pointer = f"/parameters/{pointer_token(node_id)}"
            raise _refused(f"the run has no such node: {node_id[:64]}", pointer)
    used = set(package_of.values())
    for name in packages:
        if name not in used:
            pointer = f"/packages/{pointer_token(name)}"
            raise _refused(f"no node of the run is of this package: {name[:64]}", pointer)
    if not parameters and not packages:
        return definition, frozenset()
    document: dict[str, Any] = msgspec.json.decode(definition)
    changed: set[str] = set()
    for node in document["nodes"]:
        if node["id"] in parameters:
            node["parameters"] = {**(node.get("parameters") or {}), **parameters[node["id"]]}
            changed.add(node["id"])
        name = package_of.get(node["id"], "")
        if name in packages:
            node["package"] = {
                **(node.get("package") or {}),
                "name": name,
                "version": packages[name],
            }
            changed.add(node["id"])
    return msgspec.json.encode(document), frozenset(changed)


def _refused(message: str, pointer: str) -> errors.Refused:
    return errors.Refused(errors.REQUEST_INVALID, message, pointer=pointer)
