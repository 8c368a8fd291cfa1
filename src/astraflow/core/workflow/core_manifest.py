"""The manifest of package `core`, which is built into every scheduler and every worker of ours.

The node types of WORKFLOWS "Package `core`", and those that the scheduler carries out itself:
if, switch, container, call, wait, approval, signal. It is a literal because the core reads no files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from astraflow.core.categories import RetryCategory
from astraflow.core.workflow.core_middlewares import middleware_nodes
from astraflow.core.workflow.core_words import COLORS, NODE_WORDS, label_of
from astraflow.core.workflow.decoding import decode_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.workflow.manifest import Manifest

CORE_PACKAGE: Final = "core"
CONTAINER_TYPE: Final = "core.container"
CALL_TYPE: Final = "core.call"
WAIT_TYPE: Final = "core.wait"
APPROVAL_TYPE: Final = "core.approval"
SIGNAL_TYPE: Final = "core.signal"
IF_TYPE: Final = "core.if"
SWITCH_TYPE: Final = "core.switch"

_RUNTIME: Final = "python"
_TEXT: Final = {"type": "string"}
_ANYTHING: Final[dict[str, Any]] = {}
_OBJECT: Final = {"type": "object"}
_NUMBER: Final = {"type": "number", "minimum": 0}
_COUNT: Final = {"type": "integer", "minimum": 0}
_CATEGORY: Final = {
    "type": "string",
    "enum": list(get_args(RetryCategory)),
    "default": "USER_CODE",
}
_LEVEL: Final = {
    "type": "string",
    "enum": ["debug", "info", "warning", "error"],
    "default": "info",
}
_METHOD: Final = {
    "type": "string",
    "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    "default": "GET",
}
_RESOURCE_REF: Final = {
    "type": "object",
    "properties": {"resourceRef": {"type": "object"}},
    "required": ["resourceRef"],
}
_COMPONENTS: Final = {"string": "string", "number": "number", "integer": "number"}
_MULTILINE: Final = frozenset({"code", "template", "text", "body"})


@cache  # a worker says its digest in every heartbeat
def core_manifest() -> Manifest:
    """The manifest of package `core`."""
    return decode_manifest(msgspec.json.encode(_document()))


def _document() -> dict[str, Any]:
    nodes = [
        *_worker_nodes(),
        *middleware_nodes(CORE_PACKAGE, _RUNTIME),
        *_scheduler_nodes(),
    ]
    by_worker = [node["type"] for node in nodes if "executedBy" not in node]
    return {
        "name": CORE_PACKAGE,
        "version": "1.0.0",
        "schemaVersion": "1.0.0",
        "description": "The nodes that are always there.",
        "adapters": [
            {
                "name": CORE_PACKAGE,
                "runtime": _RUNTIME,
                "entrypoint": "astraflow_core.adapter:CoreAdapter",
                "capabilities": by_worker,
            }
        ],
        "nodes": [_worded(node) for node in nodes],
        "largeResults": "reference",
    }


def _worded(node: dict[str, Any]) -> dict[str, Any]:
    """A node with what an editor shows of it."""
    words = NODE_WORDS[node["type"].removeprefix(f"{CORE_PACKAGE}.")]
    shown = {"icon": words.icon, "color": COLORS[node["category"]]}
    if words.help:
        shown["help"] = words.help
    return {"description": words.description, **node, **shown}


def _worker_nodes() -> list[dict[str, Any]]:
    number, text = _NUMBER, _TEXT
    http = {"method": _METHOD, "url": text, "headers": _OBJECT, "body": _ANYTHING}
    fail = {"message": text, "category": _CATEGORY, "retryable": {"type": "boolean"}}
    answer = {"status": {"type": "integer"}, "headers": _OBJECT, "body": _ANYTHING}
    durable = {"type": "boolean"}
    file = {"name": text, "sizeBytes": _COUNT, "text": text, "durable": durable}
    digest = {"sizeBytes": _COUNT, "sha256": text}
    script = {"code": text, "inputs": _OBJECT}
    return [
        _node("noop", "Do nothing", "Flow", {}, {}),
        _node("echo", "Echo", "Flow", {"value": _ANYTHING}, {"value": _ANYTHING}, "value", "value"),
        _node("sleep", "Sleep", "Flow", {"seconds": number}, {"seconds": number}),
        _node("fail", "Fail", "Flow", {**fail, "times": _COUNT}, {}),
        _node("log", "Log", "Flow", {"message": _ANYTHING, "level": _LEVEL}, {}, "message"),
        _node(
            "stream", "Stream", "Text", {"text": text, "delayMs": number}, {"text": text},
            "text", "text",
        ),
        _node(
            "template", "Template", "Text", {"template": text, "values": _OBJECT}, {"text": text},
            "values", "text",
        ),
        _python(_needs("code", _node("python", "Python", "Code", script, {}, "inputs", "result"))),
        _needs("url", _node(
            "http", "HTTP request", "Web", {**http, "timeoutSeconds": number}, answer,
            "url body", "body",
        )),
        _node("file", "File", "Files", file, {"file": _RESOURCE_REF}, "", "file"),
        _needs("file", _node(
            "read_file", "Read file", "Files", {"file": _RESOURCE_REF}, digest, "file", "sha256",
        )),
    ]  # fmt: skip


def _scheduler_nodes() -> list[dict[str, Any]]:
    given = _ANYTHING
    fields = {"port": _TEXT, "when": _ANYTHING, "equals": _ANYTHING}
    cases = {
        "type": "array",
        "items": {"type": "object", "properties": fields, "required": ["port"]},
    }
    chosen = {"case": {"type": ["string", "null"]}, "value": given}
    rows = [
        _choice(_node("if", "If", "Flow", {"condition": given, "value": given}, chosen,
                      "condition value", "value"), "true", "false"),
        _node("switch", "Switch", "Flow", {"value": given, "cases": cases, "default": _TEXT}, chosen,
              "value", "value"),
        _node("container", "Container", "Flow", {"input": given}, {"output": given}, "input",
              "output"),
        _node("call", "Call a workflow", "Flow", {"inputs": _OBJECT}, {"outputs": _OBJECT},
              "inputs", "outputs"),
        _node("wait", "Wait", "Flow", {}, {"until": _TEXT}, "", "until"),
        _node("approval", "Approval", "People", {}, {"approved": {"type": "boolean"},
              "comment": _TEXT, "by": {"type": ["string", "null"]}, "values": _OBJECT}, "",
              "approved comment by values"),
        _node("signal", "Signal", "Flow", {}, {"payload": given, "name": _TEXT, "receivedAt": _TEXT},
              "", "payload"),
    ]  # fmt: skip
    for row in rows:
        row["executedBy"] = "scheduler"
        del row["runtimes"]
    return rows


def _choice(node: dict[str, Any], *cases: str) -> dict[str, Any]:
    """A node with a port for each case."""
    node["ui"]["outputPorts"] += [_control(case) for case in cases]
    return node


def _needs(parameter: str, node: dict[str, Any]) -> dict[str, Any]:
    node["schema"]["parameters"]["required"] = [parameter]
    return node


def _python(node: dict[str, Any]) -> dict[str, Any]:
    # WORKFLOWS: "what main(**inputs) returns (an object as it is, else {"result": v}; port
    # `result` reads all of it or that `v`)".
    node["ui"]["outputPorts"][0]["binding"] = {
        "path": "results",
        "mode": "read",
        "unwrap": "result",
    }
    return node


def _node(
    name: str,
    label: str,
    category: str,
    parameters: Mapping[str, Any],
    results: Mapping[str, Any],
    inputs: str = "",
    outputs: str = "",
) -> dict[str, Any]:
    """A row of the table: `inputs` and `outputs` are the data ports, beside the control ports."""
    return {
        "type": f"{CORE_PACKAGE}.{name}",
        "status": "published",
        "category": category,
        "label": label,
        "runtimes": {_RUNTIME: {"handler": name}},
        "schema": {
            "parameters": {"type": "object", "properties": dict(parameters)},
            "results": {"type": "object", "properties": dict(results)},
        },
        "ui": {
            "inputPorts": [_control("trigger"), *(_input(key) for key in inputs.split())],
            "outputPorts": [*(_output(key) for key in outputs.split()), _control("done")],
            "widgets": [_widget(key, schema) for key, schema in parameters.items()],
        },
    }


def _control(key: str) -> dict[str, Any]:
    return {"key": key, "label": label_of(key), "kind": "control"}


def _input(key: str) -> dict[str, Any]:
    binding = {"path": f"parameters.{key}", "mode": "write"}
    return {"key": key, "label": label_of(key), "binding": binding}


def _output(key: str) -> dict[str, Any]:
    binding = {"path": f"results.{key}", "mode": "read"}
    return {"key": key, "label": label_of(key), "binding": binding}


def _widget(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    component = _COMPONENTS.get(schema.get("type", ""), "json")
    if "enum" in schema:
        component = "enum"
    elif schema.get("type") == "boolean":
        component = "boolean"
    elif key in _MULTILINE:
        component = "text" if schema else "json"
    binding = {"path": f"parameters.{key}", "mode": "two_way"}
    widget = {"key": key, "label": label_of(key), "component": component, "binding": binding}
    if key == "code":
        return {**widget, "component": "code", "options": {"language": "python"}}
    return widget
