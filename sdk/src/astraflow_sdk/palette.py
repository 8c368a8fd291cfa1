"""The ports and widgets of a node in the editor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from astraflow_sdk.nodes import NodeInfo
from astraflow_sdk.signatures import Signature

LONG_CHARS = 60
"""A default that is longer, or has several lines, gets a field of several lines."""

_TRIGGER = {"key": "trigger", "label": "Trigger", "kind": "control"}
_DONE = {"key": "done", "label": "Done", "kind": "control"}
_LIMITS = {
    "minimum": "min",
    "exclusiveMinimum": "min",
    "maximum": "max",
    "exclusiveMaximum": "max",
    "multipleOf": "step",
}


def label_of(name: str) -> str:
    """`max_tokens` and `maxTokens` read as "Max tokens"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").split("_")
    text = " ".join(word if word.isupper() else word.lower() for word in words if word)
    return text[:1].upper() + text[1:] or name


def ui_of(signature: Signature, info: NodeInfo) -> dict[str, Any]:
    """The `ui` of a node in a manifest."""
    inputs = signature.parameters["properties"]
    outputs = signature.results.get("properties") or {}
    return {
        "inputPorts": [_TRIGGER, *_ports(inputs, info.inputs, "parameters", "write")],
        "outputPorts": [*_ports(outputs, info.outputs, "results", "read"), _DONE],
        "widgets": [_widget(key, schema, signature, info) for key, schema in inputs.items()],
    }


def _ports(
    schemas: Mapping[str, Any], refined: Mapping[str, Mapping[str, Any]], root: str, mode: str
) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "label": refined.get(key, {}).get("label") or label_of(key),
            "binding": {"path": f"{root}.{key}", "mode": mode},
        }
        for key in schemas
        if refined.get(key, {}).get("port", True)
    ]


def _widget(
    key: str, schema: Mapping[str, Any], signature: Signature, info: NodeInfo
) -> dict[str, Any]:
    refined = info.inputs.get(key, {})
    component = refined.get("component") or _component(key, schema, signature)
    options = _options(component, schema)
    if key in signature.parameters.get("required", ()):
        options["required"] = True
    options.update(refined.get("options") or {})
    widget: dict[str, Any] = {
        "key": key,
        "label": refined.get("label") or label_of(key),
        "component": component,
        "binding": {"path": f"parameters.{key}", "mode": "two_way"},
    }
    return {**widget, "options": options} if options else widget


def _component(key: str, schema: Mapping[str, Any], signature: Signature) -> str:
    if "enum" in schema:
        return "enum"
    kinds = schema.get("type")
    kinds = {kinds} if isinstance(kinds, str) else set(kinds or ())
    kinds.discard("null")
    if kinds == {"boolean"}:
        return "boolean"
    if kinds and kinds <= {"integer", "number"}:
        return "number"
    if kinds != {"string"}:
        return "json"
    default = schema.get("default")
    is_long = isinstance(default, str) and (len(default) > LONG_CHARS or "\n" in default)
    return "text" if is_long or key in signature.multiline else "string"


def _options(component: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if schema.get("description"):
        options["helpText"] = schema["description"]
    if component == "enum":
        choices = [value for value in schema.get("enum", ()) if value is not None]
        options["options"] = [{"label": _choice(value), "value": value} for value in choices]
    if component == "number":
        for word, option in _LIMITS.items():
            if word in schema:
                options[option] = schema[word]
        if schema.get("type") in ("integer", ["integer", "null"]):
            options.setdefault("step", 1)
    return options


def _choice(value: object) -> str:
    return label_of(value) if isinstance(value, str) else str(value)
