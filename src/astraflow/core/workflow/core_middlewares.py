"""The rows of package `core` for its middlewares: nodes that wrap another one. They have no ports."""

from __future__ import annotations

from typing import Any, Final, get_args

from astraflow.core.categories import RetryCategory

_CATEGORIES: Final = list(get_args(RetryCategory))
_LEVELS: Final = ["debug", "info", "warning", "error"]


def middleware_nodes(package: str, runtime: str) -> list[dict[str, Any]]:
    """The middlewares, as rows of a manifest."""
    rows = [_retry(), _cache(), _rate_limit(), _timeout(), _loop(), _log_calls()]
    for row in rows:
        name = row["type"]
        row |= {
            "type": f"{package}.{name}",
            "status": "published",
            "category": "Middleware",
            "runtimes": {runtime: {"handler": name}},
            "middleware": True,
        }
    return rows


def _retry() -> dict[str, Any]:
    return _row(
        "retry", "Retry", "Calls the node again when it fails.",
        attempts=_integer("Calls", "How often the node is called at the most.", 1, 100, 3),
        backoffSeconds=_seconds("First delay", "Seconds before the second call.", 0, 1),
        factor=_field("Factor", "What each delay is multiplied by.", "number", 2, minimum=1,
                      maximum=100),
        maxBackoffSeconds=_seconds("Longest delay", "No delay is longer, in seconds.", 0, 60),
        categories=_field("Categories", "Which failures are worth another call. A failure that "
                          "says itself whether it is, decides.", "array",
                          ["USER_CODE", "INFRASTRUCTURE", "TIMEOUT"],
                          items={"type": "string", "enum": _CATEGORIES}, uniqueItems=True),
    )  # fmt: skip


def _cache() -> dict[str, Any]:
    return _row(
        "cache", "Cache", "Returns an earlier result of the same input, if this worker has one "
        "in its memory. Other workers have caches of their own.",
        ttlSeconds=_seconds("Time to live", "How long a result is used, in seconds.", 0, 300),
        key={"title": "Key", "description": "Instead of the input: results with the same key are "
             "the same. An expression may be used."},
        maxBytes=_integer("Largest result", "A larger result is not kept, in bytes.", 0,
                          16_777_216, 1_048_576),
    )  # fmt: skip


def _rate_limit() -> dict[str, Any]:
    return _row(
        "rate_limit", "Rate limit", "Lets a number of calls begin within a time, on each worker; "
        "others wait.",
        count=_integer("Calls", "How many calls may begin.", 1, 10_000, 10),
        perSeconds=_seconds("Within", "In how many seconds.", 0.001, 1),
        key=_field("Key", "What the limit is for: nodes with the same key share it. Without one "
                   "each node has its own.", "string", minLength=1, maxLength=256),
        maxWaitSeconds=_seconds("Longest wait", "A call that would wait longer fails; without it "
                                "none does.", 0),
    )  # fmt: skip


def _timeout() -> dict[str, Any]:
    row = _row(
        "timeout", "Timeout", "Ends the call of the node when it takes too long, and fails with "
        "E.NEXT.TIMEOUT.",
        seconds=_seconds("Seconds", "How long a call may take, from its request to its end.",
                         0.001),
    )  # fmt: skip
    row["schema"]["parameters"]["required"] = ["seconds"]
    return row


def _loop() -> dict[str, Any]:
    until = {
        "path": {"type": "string", "minLength": 1},
        "equals": {},
        "atLeast": {},
        "atMost": {},
    }
    return _row(
        "loop", "Loop", "Calls the node several times: a number of times, for each item of a "
        "list, or until its result fits.",
        times=_integer("Times", "How often the node is called.", 0, 1000),
        over=_field("Over", "A list: the node is called for each item.", "array", maxItems=1000),
        item=_field("Item", "The parameter of the node that gets the item.", "string", "value",
                    minLength=1, maxLength=256),
        until=_field("Until", "Stop when the result has this at `path`: `equals`, `atLeast` or "
                     "`atMost` a value, or anything that is true.", "object",
                     properties=until, required=["path"], additionalProperties=False),
        feed=_field("Feed", "Parameters of the node that get a value of the last result: each "
                    "with its path there.", "object", additionalProperties={"type": "string"}),
        collect=_field("Collect", "Also return the results of all rounds, as `rounds`.",
                       "boolean", False),
        maxRounds=_integer("Most rounds", "The loop fails rather than to call more often.", 1,
                           1000, 100),
    )  # fmt: skip


def _log_calls() -> dict[str, Any]:
    return _row(
        "log_calls", "Log calls", "Writes a line before and after each call of the node: how "
        "long it took, and how it ended.",
        level=_field("Level", "Of the lines; a failure is always an error.", "string", "info",
                     enum=_LEVELS),
        input=_field("Input", "Whether the line has the input of the node.", "boolean", False),
        result=_field("Result", "Whether the line has the result.", "boolean", False),
    )  # fmt: skip


def _row(name: str, label: str, description: str, **parameters: Any) -> dict[str, Any]:
    return {
        "type": name,
        "label": label,
        "description": description,
        "schema": {
            "parameters": {"type": "object", "properties": parameters},
            "results": {"type": "object"},
        },
        "ui": {
            "inputPorts": [],
            "outputPorts": [],
            "widgets": [_widget(key, schema) for key, schema in parameters.items()],
        },
    }


def _field(title: str, help_text: str, kind: str, default: Any = None, **more: Any) -> Any:
    field = {"title": title, "description": help_text, "type": kind, **more}
    return field if default is None else {**field, "default": default}


def _integer(title: str, help_text: str, least: int, most: int, default: int | None = None) -> Any:
    return _field(title, help_text, "integer", default, minimum=least, maximum=most)


def _seconds(title: str, help_text: str, least: float, default: float | None = None) -> Any:
    return _field(title, help_text, "number", default, minimum=least, maximum=86_400)


_COMPONENTS: Final = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
}


def _widget(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    component = "enum" if "enum" in schema else _COMPONENTS.get(schema.get("type", ""), "json")
    return {
        "key": key,
        "label": schema["title"],
        "component": component,
        "binding": {"path": f"parameters.{key}", "mode": "two_way"},
        "options": {"help": schema["description"]},
    }
