"""Write the typed functions of the builder from the manifest of package `core`, or check that they are fresh.

    python scripts/make_builder.py            write them
    python scripts/make_builder.py --check    exit 1 if they differ from what would be written

Each node type is a function, each of its parameters an argument, so that an editor completes them and a type checker
reads them. What the scheduler itself does (a wait, an approval, …) has the fields of its struct as arguments.
"""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from astraflow.core.workflow import core_manifest
from astraflow.core.workflow.core_manifest import APPROVAL_TYPE, CALL_TYPE, SIGNAL_TYPE, WAIT_TYPE
from astraflow.core.workflow.definition import Approval, CallSpec, Signal, WaitSpec

PATH: Final = Path(__file__).resolve().parent.parent / "src" / "astraflow" / "builder" / "core.py"
RUFF: Final = Path(sys.executable).with_name("ruff")
STEPS: Final[Mapping[str, tuple[str, type[msgspec.Struct]]]] = {
    CALL_TYPE: ("call", CallSpec),
    WAIT_TYPE: ("wait", WaitSpec),
    APPROVAL_TYPE: ("approval", Approval),
    SIGNAL_TYPE: ("signal", Signal),
}
HEAD: Final = '''"""The node types of package `core` as functions. Made by scripts/make_builder.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from astraflow.builder.flow import Flow
from astraflow.builder.formulas import Formula
from astraflow.builder.nodes import FlowNode
from astraflow.builder.values import Given

'''
TYPES: Final = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "object": "Mapping[str, Any]",
    "array": "Sequence[Any]",
}
FIELD_TYPES: Final = {
    str: "str",
    float: "float",
    int: "int",
    list[str]: "Sequence[str]",
}


def snake(name: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()
    return f"{name}_" if keyword.iskeyword(name) or name in ("flow", "label") else name


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a parameter in Python."""
    if "enum" in schema:
        names = ", ".join(repr(one) for one in schema["enum"])
        return f"Literal[{names}] | Given | UnsetType"
    kind = TYPES.get(schema.get("type", "") if isinstance(schema.get("type"), str) else "")
    return "Any" if kind is None else f"{kind} | Given | UnsetType"


def field_type(hint: Any) -> str:
    """The type of a field of a step in Python."""
    text = str(hint)
    if "Literal" in text:
        names = re.findall(r"Literal\[([^\]]*)\]", text)
        return f"Literal[{names[0]}] | UnsetType"
    for kind, name in FIELD_TYPES.items():
        if hint == kind or hint == kind | None:
            return f"{name} | Formula | UnsetType" if kind is str else f"{name} | UnsetType"
    return "Mapping[str, Any] | UnsetType"


def argument(name: str, kind: str) -> str:
    return f"    {snake(name)}: {kind} = UNSET,"


def function_of(node: Mapping[str, Any]) -> str:
    """The text of one function."""
    node_type = str(node["type"])
    parameters = node["schema"]["parameters"].get("properties", {})
    step = STEPS.get(node_type)
    lines = [f"def {snake(node_type.removeprefix('core.'))}(", "    flow: Flow,", "    label: str,"]
    fields = {}
    if step is not None:
        hints = get_type_hints(step[1])
        fields = {one.name: one.encode_name for one in msgspec.structs.fields(step[1])}
        lines.append("    *,")
        lines += [argument(name, field_type(hints[name])) for name in fields]
    elif parameters:
        lines.append("    *,")
    lines += [argument(name, type_of(schema)) for name, schema in parameters.items()]
    is_open = not parameters and step is None
    if is_open:
        lines.append("    **parameters: Any,")
    lines += [") -> FlowNode:", f'    """{described(node)}"""']
    given = ", ".join(f"{name!r}: {snake(name)}" for name in parameters)
    made = "parameters" if is_open else "{" + given + "}"
    made = f"flow.node({node_type!r}, label, {made})"
    if step is not None:
        values = ", ".join(f"{shown!r}: {snake(name)}" for name, shown in fields.items())
        lines.append(f"    node = {made}")
        made = f"node.set({step[0]}={{{values}}})"
    lines.append(f"    return {made}")
    return "\n".join(lines) + "\n\n\n"


def described(node: Mapping[str, Any]) -> str:
    if node.get("middleware"):
        return f"{node['label']}: a middleware, for `middlewares` of another node."
    return f"{node['label']}. Its ports: {ports_of(node)}."


def ports_of(node: Mapping[str, Any]) -> str:
    ui = node["ui"]
    inputs, outputs = (
        ", ".join(f"`{port['key']}`" for port in ui[side]) for side in ("inputPorts", "outputPorts")
    )
    return f"{inputs} → {outputs}"


def text() -> str:
    """The module."""
    nodes = core_manifest().document()["nodes"]
    raw = HEAD + "\n" + "".join(function_of(node) for node in nodes)
    command = [str(RUFF), "format", "--stdin-filename", str(PATH), "-"]
    done = subprocess.run(command, input=raw, text=True, capture_output=True, check=True)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = text()
    if parser.parse_args().check:
        if PATH.read_text() != wanted:
            print(f"{PATH} is not what the manifest says: run `make docs`", file=sys.stderr)
            return 1
        return 0
    PATH.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
