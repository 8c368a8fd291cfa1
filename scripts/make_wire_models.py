"""Write the Python and the TypeScript models of the wire from `schemas/`.

They are for those who write a worker of their own: plain JSON objects with types, and nothing to install. A model says
the names and types of the members; bounds and patterns are in the schemas.

    python scripts/make_wire_models.py           write them
    python scripts/make_wire_models.py --check   fail if they are not what the schemas say
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SCHEMAS: Final = ROOT / "schemas"
FOLDERS: Final = ("session", "biz", "http")
PYTHON: Final = ROOT / "clients" / "python" / "astraflow_wire.py"
TYPESCRIPT: Final = ROOT / "clients" / "typescript" / "astraflow_wire.ts"
ENVELOPE: Final = "Envelope"
BY_TYPE: Final = ("type", "payload")
"""The members of the envelope that differ from one frame type to the next."""
WIDTH: Final = 100
RUFF: Final = Path(sys.executable).with_name("ruff")

Schema = dict[str, Any]


@dataclass
class Type:
    """What a value may be: names of scalars, literals, models; `item` of an array or of the values of an object."""

    names: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    array_of: Type | None = None
    object_of: Type | None = None


@dataclass
class Member:
    name: str
    type: Type
    is_required: bool
    description: str


@dataclass
class Model:
    name: str
    title: str
    description: str
    members: list[Member]


@dataclass
class Reader:
    """Reads schemas into models. A definition that several schemas share becomes one model."""

    models: dict[str, Model] = field(default_factory=dict)
    _sources: dict[str, Schema] = field(default_factory=dict)

    def read(self, schema: Schema) -> Model:
        return self._model(pascal(schema["title"]), schema, schema, schema["title"])

    def _model(self, name: str, schema: Schema, root: Schema, title: str = "") -> Model:
        if name in self.models:
            if self._sources[name] != schema:
                raise SystemExit(f"two different things would be called {name}")
            return self.models[name]
        needed = set(schema.get("required", ()))
        members = [
            Member(key, self._type(inner, root, name + pascal(key)), key in needed, describe(inner))
            for key, inner in schema["properties"].items()
        ]
        self._sources[name] = schema
        self.models[name] = Model(name, title, describe(schema), members)
        return self.models[name]

    def _type(self, schema: Schema, root: Schema, name: str) -> Type:
        if "$ref" in schema:
            return self._referred(schema["$ref"], root)
        if "anyOf" in schema:
            return joined([self._type(one, root, name) for one in schema["anyOf"]])
        if "enum" in schema or "const" in schema:
            return Type(literals=tuple(schema.get("enum", [schema.get("const")])))
        kinds = schema.get("type", "any")
        if isinstance(kinds, list):
            return joined([self._type({**schema, "type": one}, root, name) for one in kinds])
        if kinds == "array":
            return Type(array_of=self._type(schema["items"], root, name + "Item"))
        if kinds == "object" and "properties" in schema:
            return Type((self._model(name, schema, root).name,))
        if kinds == "object":
            return Type(object_of=self._type(schema.get("additionalProperties", {}), root, name))
        return Type((kinds,))

    def _referred(self, reference: str, root: Schema) -> Type:
        address, _, pointer = reference.partition("#")
        if address:
            root = json.loads((SCHEMAS / f"{address.rpartition(':')[2]}.schema.json").read_text())
        if not pointer:
            return Type((self._model("AttemptError", root, root, root["title"]).name,))
        key = pointer.removeprefix("/$defs/")
        # Errors of the two contracts differ: each has its own name.
        name = pascal(root["title"] + "." + key) if key == "error" else pascal(key)
        return self._type(root["$defs"][key], root, name)


def joined(types: list[Type]) -> Type:
    """One of several; at most one of them is an array or an object of equal values."""
    arrays = [one.array_of for one in types if one.array_of]
    objects = [one.object_of for one in types if one.object_of]
    assert len(arrays) <= 1 and len(objects) <= 1, types
    return Type(
        tuple(dict.fromkeys(name for one in types for name in one.names)),
        tuple(dict.fromkeys(word for one in types for word in one.literals)),
        arrays[0] if arrays else None,
        objects[0] if objects else None,
    )


def pascal(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._\-]", text))


def describe(schema: Schema) -> str:
    return str(schema.get("description", ""))


@dataclass
class Wire:
    """All models in an order in which each stands after those that it uses, and the payload of each frame type."""

    models: list[Model]
    payloads: dict[str, str]


def read_wire() -> Wire:
    reader = Reader()
    payloads = {}
    for folder in FOLDERS:
        for path in sorted((SCHEMAS / folder).glob("*.schema.json")):
            model = reader.read(json.loads(path.read_text()))
            if model.title.startswith(("control.", "biz.")):
                payloads[model.title] = model.name
    return Wire(list(reader.models.values()), payloads)


# --- Python ---

PYTHON_HEAD: Final = '''\
"""Models of the session protocol (version 2) and of the HTTP worker contract: typed JSON objects.

Written by `make wire` from `schemas/`; do not edit. A frame is `json.dumps` of a model, and
`json.loads` of a frame is one. `frame["type"]` tells which of `Frame` it is.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
PYTHON_NAMES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
}


def python_type(type_: Type) -> str:
    parts = [PYTHON_NAMES.get(name, name) for name in type_.names if name != "null"]
    if type_.literals:
        parts.append("Literal[" + ", ".join(json.dumps(one) for one in type_.literals) + "]")
    if type_.array_of:
        parts.append(f"list[{python_type(type_.array_of)}]")
    if type_.object_of:
        parts.append(f"dict[str, {python_type(type_.object_of)}]")
    return " | ".join([*parts, *(["None"] if "null" in type_.names else [])])


def python_member(member: Member) -> str:
    said = python_type(member.type)
    return said if member.is_required else f"NotRequired[{said}]"


def python_model(model: Model, name: str, members: list[Member]) -> str:
    if not all(member.name.isidentifier() and member.name not in KEYWORDS for member in members):
        rows = [f'        "{member.name}": {python_member(member)},' for member in members]
        lines = [f"{name} = TypedDict(", f'    "{name}",', "    {", *rows, "    },", ")"]
        return "\n".join([*lines, f'"""{model.description}"""', ""])
    said = python_text(model.description)
    lines = [f"class {name}(TypedDict):", *said, *([""] if said else [])]
    for member in members:
        lines.append(f"    {member.name}: {python_member(member)}")
        lines += python_text(member.description)
    return "\n".join(lines) + "\n"


def python_text(text: str) -> list[str]:
    if not text:
        return []
    inner = textwrap.wrap(text, WIDTH - 10)
    return [
        '    """' + inner[0] + ('"""' if len(inner) == 1 else ""),
        *(f"    {line}" for line in inner[1:]),
        *(['    """'] if len(inner) > 1 else []),
    ]


KEYWORDS: Final = frozenset({"for", "from", "class", "in", "is"})


def python_text_of(wire: Wire) -> str:
    parts = [PYTHON_HEAD]
    for model in wire.models:
        if model.name == ENVELOPE:
            shared = [member for member in model.members if member.name not in BY_TYPE]
            parts.append(python_model(model, "AnyFrame", shared))
            continue
        parts.append(python_model(model, model.name, model.members))
    for kind, payload in wire.payloads.items():
        rows = [f'    type: Literal["{kind}"]', f"    payload: {payload}"]
        parts.append("\n".join([f"class {payload}Frame(AnyFrame):", *rows, ""]))
    union = "\n    | ".join(f"{payload}Frame" for payload in wire.payloads.values())
    parts.append(f"Frame = (\n    {union}\n)\n")
    kinds = "".join(f'    "{kind}",\n' for kind in wire.payloads)
    parts.append(f"FrameType = Literal[\n{kinds}]\n")
    return formatted("\n\n".join(parts))


def formatted(text: str) -> str:
    command = [str(RUFF), "format", "--quiet", "--stdin-filename", str(PYTHON), "-"]
    return subprocess.run(
        command, input=text, check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout


# --- TypeScript ---

TYPESCRIPT_HEAD: Final = """\
/**
 * Models of the session protocol (version 2) and of the HTTP worker contract: typed JSON objects.
 *
 * Written by `make wire` from `schemas/`; do not edit. A frame is `JSON.stringify` of a model, and
 * `JSON.parse` of a frame is one. `frame.type` tells which of `Frame` it is.
 */
"""
TYPESCRIPT_NAMES: Final = {"integer": "number", "any": "unknown"}


def typescript_type(type_: Type) -> str:
    parts = [TYPESCRIPT_NAMES.get(name, name) for name in type_.names if name != "null"]
    parts += [json.dumps(word) for word in type_.literals]
    if type_.array_of:
        inner = typescript_type(type_.array_of)
        parts.append(f"({inner})[]" if "|" in inner else f"{inner}[]")
    if type_.object_of:
        parts.append(f"Record<string, {typescript_type(type_.object_of)}>")
    return " | ".join([*parts, *(["null"] if "null" in type_.names else [])])


def typescript_model(model: Model, name: str, members: list[Member]) -> str:
    lines = [*typescript_text(model.description, ""), f"export interface {name} {{"]
    for member in members:
        lines += typescript_text(member.description, "  ")
        mark = "" if member.is_required else "?"
        lines.append(f"  {member.name}{mark}: {typescript_type(member.type)};")
    return "\n".join([*lines, "}", ""])


def typescript_text(text: str, indent: str) -> list[str]:
    return [f"{indent}/** {text} */"] if text else []


def typescript_text_of(wire: Wire) -> str:
    parts = [TYPESCRIPT_HEAD]
    for model in wire.models:
        if model.name == ENVELOPE:
            shared = [member for member in model.members if member.name not in BY_TYPE]
            parts.append(typescript_model(model, "AnyFrame", shared))
            continue
        parts.append(typescript_model(model, model.name, model.members))
    rows = "".join(f'  "{kind}": {payload};\n' for kind, payload in wire.payloads.items())
    parts.append(
        f"/** The payload of each frame type. */\nexport interface Payloads {{\n{rows}}}\n"
    )
    parts.append("export type FrameType = keyof Payloads;\n")
    parts.append(
        "/** A frame of one type. */\nexport interface FrameOf<T extends FrameType>"
        " extends AnyFrame {\n  type: T;\n  payload: Payloads[T];\n}\n"
    )
    parts.append("export type Frame = { [T in FrameType]: FrameOf<T> }[FrameType];\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    wire = read_wire()
    texts = {PYTHON: python_text_of(wire), TYPESCRIPT: typescript_text_of(wire)}
    if arguments == ["--check"]:
        stale = [path for path, text in texts.items() if not is_current(path, text)]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what schemas/ says: run `make wire`")
        return 1 if stale else 0
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
