"""The signature of a node function as JSON Schema, from its hints, its docstring and its return statements."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from astraflow_sdk.docstrings import ParsedDocstring, read_docstring
from astraflow_sdk.hints import (
    MULTILINE,
    NO_DEFAULT,
    HintError,
    default_of,
    is_object,
    schema_of,
    split_annotated,
)
from astraflow_sdk.host.handlers import is_context
from astraflow_sdk.nodes import NodeInfo

_SINGLE = "result"
"""The one result of a function that returns no object."""
_RESERVED = {"trigger": "parameter", "done": "result", "error": "result"}
_HINTS = "str, int, float, bool, list[...], dict[str, ...], Literal[...], an Enum, a TypedDict or a dataclass"


class DescribeError(ValueError):
    """A node function is incomplete. The message says what to write."""


@dataclass(frozen=True)
class Signature:
    """The parameters and results of a node function."""

    description: str
    parameters: dict[str, Any]
    results: dict[str, Any]
    multiline: frozenset[str]


def read_signature(name: str, function: Callable[..., Any], info: NodeInfo) -> Signature:
    """`name` is `module:function`, for messages.

    Raises:
        DescribeError: a hint has no form in JSON, or a parameter cannot be passed by name.
    """
    hints = _hints(name, function)
    taken = dict(_parameters(name, function))
    _check_refinements(name, info, taken)
    said = read_docstring(info.description, taken.keys())
    properties: dict[str, Any] = {}
    required: list[str] = []
    multiline: set[str] = set()
    for parameter, default in taken.items():
        hint = hints.get(parameter, Any)
        schema = _described(f"{name}, parameter {parameter}", hint)
        if parameter in said.parameters:
            schema["description"] = said.parameters[parameter]
        if default is inspect.Parameter.empty:
            required.append(parameter)
        elif (value := default_of(default)) is not NO_DEFAULT:
            schema["default"] = value
        if MULTILINE in _words(hint):
            multiline.add(parameter)
        schema.update(info.inputs.get(parameter, {}).get("schema") or {})
        properties[parameter] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    results = _results(name, function, hints.get("return", Any), info, said)
    return Signature(said.description, parameters, results, frozenset(multiline))


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise DescribeError(
            f"{name}: a type hint names what is not there when the module is imported: {problem}; import it outside "
            "of `if TYPE_CHECKING`"
        ) from problem
    except TypeError as problem:
        raise DescribeError(f"{name}: a type hint cannot be read: {problem}") from problem


def _parameters(name: str, function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The names that values are passed by, with their defaults."""
    for parameter, found in inspect.signature(function).parameters.items():
        if found.kind is inspect.Parameter.VAR_KEYWORD or is_context(parameter, found):
            continue
        if found.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise DescribeError(
                f"{name}, parameter {parameter}: values are passed by name; write it without `*` and before no `/`"
            )
        _check_name(name, parameter, "parameter")
        yield parameter, found.default


def _check_name(name: str, word: str, kind: str) -> None:
    if _RESERVED.get(word) == kind:
        raise DescribeError(
            f"{name}, {kind} {word}: every node has a port of this name; call it otherwise"
        )


def _check_refinements(name: str, info: NodeInfo, taken: Mapping[str, Any]) -> None:
    for refined in info.inputs:
        if refined not in taken:
            raise DescribeError(f"{name}: `inputs` refines {refined}, which is no parameter of it")


def _described(place: str, hint: Any) -> dict[str, Any]:
    try:
        return schema_of(hint)
    except HintError as problem:
        raise DescribeError(
            f"{place}: {problem}; write {_HINTS}, or Any for all of JSON"
        ) from problem


def _words(hint: Any) -> list[Any]:
    """What the `Annotated` of a hint says, also inside of an Optional."""
    plain, said = split_annotated(hint)
    inner = [one for one in typing.get_args(plain) if hasattr(one, "__metadata__")]
    return [*said, *(word for one in inner for word in one.__metadata__)]


def _results(
    name: str, function: Callable[..., Any], hint: Any, info: NodeInfo, said: ParsedDocstring
) -> dict[str, Any]:
    schema = _result_schema(name, function, hint)
    properties = dict(schema.get("properties") or {})
    for key, refined in info.outputs.items():
        inner = properties.setdefault(key, dict(schema.get("additionalProperties") or {}))
        inner.update(refined.get("schema") or {})
    for key, inner in properties.items():
        _check_name(name, key, "result")
        if key in said.results:
            inner["description"] = said.results[key]
    return {**schema, "properties": properties}


def _result_schema(name: str, function: Callable[..., Any], hint: Any) -> dict[str, Any]:
    plain, _ = split_annotated(hint)
    place = f"{name}, its result"
    if plain is type(None):
        return {"type": "object", "properties": {}}
    if is_object(plain):
        return _described(place, plain)
    schema = _described(place, hint)
    if schema and schema.get("type") != "object":
        return {"type": "object", "properties": {_SINGLE: schema}, "required": [_SINGLE]}
    found = _returned_keys(function)
    if found is None:
        return {"type": "object", **schema}
    every, always = found
    inner = schema.get("additionalProperties") or {}
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {key: dict(inner) for key in every},
    }
    return {**shown, "required": always} if always else shown


def _returned_keys(function: Callable[..., Any]) -> tuple[list[str], list[str]] | None:
    """The keys of the objects that a function returns, and those of all of them; None if it cannot be seen."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    returned = [_keys(one.value) for one in _returns(tree.body[0])]
    seen = [keys for keys in returned if keys is not None]
    if not seen or len(seen) < len(returned):
        return None
    every = list(dict.fromkeys(key for keys in seen for key in keys))
    return every, [key for key in every if all(key in keys for keys in seen)]


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _returns(child)


def _keys(value: ast.expr | None) -> list[str] | None:
    if not isinstance(value, ast.Dict):
        return None
    keys = [key.value for key in value.keys if isinstance(key, ast.Constant)]
    texts = [key for key in keys if isinstance(key, str)]
    return texts if len(texts) == len(value.keys) else None
