"""The inputs of a run from the command line: NAME=VALUE pairs, read as the workflow declares them, and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from astraflow.cli.inputs import pair_of, read_object
from astraflow.core.workflow.schema_shapes import Types, may_fit, type_of, types_at

_TEXT: Final[Types] = frozenset({"string"})


def collect_inputs(
    given: list[str] | None, file: str | None, declared: Mapping[str, Any]
) -> dict[str, Any]:
    """The inputs of `--input-file`, and over them those of `--input`.

    Raises:
        Refused: a pair is none, or the file has no JSON object.
    """
    inputs = {} if file is None else read_object(file)
    for one in given or ():
        name, text = pair_of(one, "input")
        inputs[name] = value_of(text, _types(declared.get(name)))
    return inputs


def value_of(text: str, types: Types | None) -> Any:
    """What was meant: JSON if it is that and the input takes it, else the text itself."""
    if types == _TEXT:
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return value if may_fit(frozenset({type_of(value)}), types) else text


def told_inputs(definition: Mapping[str, Any]) -> Iterator[str]:
    """A line for each input and output that a definition declares."""
    for name, one in _members(definition, "inputs"):
        notes = [" or ".join(sorted(_types(one) or ())) or "anything"]
        if one.get("default") is not None:
            notes.append(f"default {msgspec.json.encode(one['default']).decode()}")
        elif one.get("required"):
            notes.append("required")
        yield _line("input", name, notes, one)
    for name, one in _members(definition, "outputs"):
        yield _line("output", name, [], one)


def _line(kind: str, name: str, notes: list[str], declared: Mapping[str, Any]) -> str:
    said = declared.get("description")
    in_brackets = f" ({', '.join(notes)})" if notes else ""
    return f"{kind} {name}{in_brackets}{f': {said}' if said else ''}"


def _members(definition: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The declarations; a draft may hold anything in their place."""
    found = definition.get(key)
    items = found.items() if isinstance(found, dict) else ()
    return [(name, one) for name, one in items if isinstance(one, dict)]


def _types(declared: Any) -> Types | None:
    schema = declared.get("schema") if isinstance(declared, dict) else None
    return types_at(schema, ())
