"""Definitions that are drawn: of everything that a workflow can have, most of it right and some of it wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from tests.unit.core.workflow.drafts import uid

__all__ = ["CALLED", "SECRET", "draw_definition"]

CALLED = {"good": uid(800), "with inputs": uid(801), "broken": uid(802), "missing": uid(803)}
"""The workflows that others call, by what they are."""
SECRET = "known"
_PLAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("core.echo", {"value": 1}),
    ("core.echo", {"value": [1, 2]}),
    ("core.template", {"template": "a {x}", "values": {"x": 1}}),
    ("core.log", {"message": "a"}),
    ("core.sleep", {"seconds": 1}),
    ("core.python", {"code": "result = 1"}),
    ("core.http", {"url": "http://example.org"}),
)
_VALUES: tuple[Any, ...] = (
    5, -1, "a", None, True, [], {}, "=1", "=inputs.a", "=inputs.b", "=run.id", "=run.signals.s",
    "=nodes.n1.results.value", "=item", "=container.x", "=secrets.known", "=secrets.unknown", "=1 +",
    {"secretRef": {"name": SECRET}},
    {"secretRef": {"name": "unknown"}}, {"resourceRef": {"resourceId": "r"}},
)  # fmt: skip
_NAMES = ("value", "url", "template", "values", "seconds", "code", "message", "level")
_PORTS = (None, "value", "result", "text", "items", "error", "done", "trigger", "nothing")
_WRAPPERS = ("core.retry", "core.cache", "core.timeout", "core.rate_limit", "core.echo")


class _Draft:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = rng.randint(1, 6)
        self.nodes = [self._node(number) for number in range(1, self._count + 1)]

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _other(self, number: int) -> str:
        """Another node, sometimes itself, sometimes one that is not there."""
        return uid(self._rng.randint(1, self._count + (1 if self._chance(0.1) else 0)))

    def _node(self, number: int) -> dict[str, Any]:
        draw = self._rng.choices(
            (self._plain, self._control, self._call, self._container, self._wrapper),
            (10, 2, 1, 1, 1),
        )[0]
        node = {"id": uid(number), "label": f"n{number}", **draw(number)}
        if self._chance(0.12):
            node["map"] = {"over": self._rng.choice(("parameters.value", "value", "=[1, 2]", "=x")),
                           **self._some({"item": "value", "collect": "all", "concurrency": 2,
                                         "failurePolicy": "collect"})}  # fmt: skip
        if self._chance(0.12):
            node[self._rng.choice(("onFailure", "onCancel"))] = self._other(number)
        if self._chance(0.12):
            node["middlewares"] = [self._other(number) for _ in range(self._rng.randint(1, 2))]
        if self._chance(0.1):
            node["parent"] = self._other(number)
        if self._chance(0.1):
            node["resources"] = self._rng.choice(
                ({"cpu": 1}, {"memoryBytes": 5, "gpu": 1}, {"cpu": 0})
            )
        node.update(self._some({"retry": {"maxAttempts": 2}, "when": "inputs.a == 1", "join": "any",
                                "disabled": True, "timeoutSeconds": 5, "priority": 3,
                                "concurrencyKey": "=inputs.a", "runtime": "python",
                                "workerHints": {"labels": {"a": "b"}},
                                "schema": {"parameters": {"required": ["value"]}}}, 0.04))  # fmt: skip
        return node

    def _some(self, settings: dict[str, Any], probability: float = 0.3) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if self._chance(probability)}

    def _plain(self, number: int) -> dict[str, Any]:
        kind, parameters = self._rng.choice(_PLAIN)
        if self._chance(0.05):
            kind = self._rng.choice(("core.nop", "x.y"))
        if self._chance(0.25):
            parameters = {**parameters, self._rng.choice(_NAMES): self._rng.choice(_VALUES)}
        return {"type": kind, "parameters": parameters}

    def _control(self, number: int) -> dict[str, Any]:
        return self._rng.choice((
            {"type": "core.wait", "wait": {"seconds": 1}},
            {"type": "core.wait", "wait": {"until": "=inputs.a"}},
            {"type": "core.wait", "wait": {}},
            {"type": "core.approval", "approval": {"message": "=f'{inputs.a}?'", "roles": ["operator"]}},
            {"type": "core.signal", "signal": {"name": "s", "webhook": True}},
            {"type": "core.signal", "signal": {"name": "=inputs.a", "webhook": self._chance(0.3)}},
            {"type": "core.if", "parameters": {"condition": "=inputs.a == 1"}},
        ))  # fmt: skip

    def _call(self, number: int) -> dict[str, Any]:
        call: dict[str, Any] = {"workflowId": self._rng.choice(tuple(CALLED.values()))}
        call.update(self._some({"version": self._rng.choice((1, 9))}))
        inputs = self._some({"a": self._rng.choice((1, "x", "=inputs.a")), "z": 1})
        return {"type": "core.call", "call": call, "parameters": {"inputs": inputs}}

    def _container(self, number: int) -> dict[str, Any]:
        return {"type": "core.container", **self._some({"container": {"outputs": {}}})}

    def _wrapper(self, number: int) -> dict[str, Any]:
        return {
            "type": self._rng.choice(_WRAPPERS),
            "parameters": self._some({"seconds": 1, "value": 1}),
        }

    def end(self) -> dict[str, Any]:
        port = None if self._chance(0.6) else self._rng.choice(_PORTS)
        return {"node": self._other(0), **({} if port is None else {"port": port})}


def _sound(rng: Random) -> dict[str, Any]:
    """A definition with nothing wrong in it."""
    count = rng.randint(2, 5)
    nodes: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        kind, parameters = rng.choice(_PLAIN)
        nodes.append(
            {"id": uid(number), "label": f"n{number}", "type": kind, "parameters": parameters}
        )
    first, last = nodes[0], nodes[-1]
    mapped = {"type": "core.echo", "parameters": {"value": [1, 2]}, "map": {"over": "value"}}
    parts: tuple[tuple[dict[str, Any], str, Any, dict[str, Any] | None], ...] = (
        (first, "parent", uid(50), {"id": uid(50), "type": "core.container"}),
        (last, "middlewares", [uid(51)], {"id": uid(51), "type": "core.retry"}),
        (last, "onFailure", uid(52), {"id": uid(52), **dict(zip(("type", "parameters"), _PLAIN[0], strict=True))}),
        (last, "resources", {"cpu": 1, "memoryBytes": 1024}, None),
        (last, "when", "inputs.a == 1", None),
        (last, "concurrencyKey", "=inputs.a", None),
        (first, "label", "first", {"id": uid(53), "type": "core.call", "call": {"workflowId": CALLED["good"]}}),
        (first, "label", "first", {"id": uid(54), "type": "core.wait", "wait": {"seconds": 1}}),
        (first, "label", "first", {"id": uid(55), "type": "core.approval", "approval": {"message": "=inputs.a"}}),
        (first, "label", "first", {"id": uid(56), "type": "core.signal", "signal": {"name": "s", "webhook": True}}),
        (first, "label", "first", {"id": uid(57), **mapped}),
        (first, "label", "first", {"id": uid(58), "type": "core.echo", "parameters": {"value": f"=secrets.{SECRET}"}}),
    )  # fmt: skip
    for node, name, value, more in parts:
        if rng.random() < 0.25:
            node[name] = value
            nodes += [] if more is None else [more]
    edges = [
        {"source": {"node": uid(number)}, "target": {"node": uid(number + 1)}}
        for number in range(2, count)
        if rng.random() < 0.5
    ]
    return {"id": uid(0), "nodes": nodes, "edges": edges, "inputs": {"a": {"default": 1}}}


def _spoiled(rng: Random, document: dict[str, Any]) -> None:
    """One thing is changed, which may make it wrong."""
    node = rng.choice(document["nodes"])
    name, value = rng.choice((
        ("type", "core.nop"), ("type", "core.container"), ("parent", uid(1)), ("parent", uid(99)),
        ("map", {"over": "nothing"}), ("onFailure", uid(1)), ("onCancel", uid(99)),
        ("middlewares", [uid(1)]), ("middlewares", [uid(51), uid(51)]), ("resources", {"cpu": -1}),
        ("parameters", {"value": rng.choice(_VALUES)}), ("id", uid(1)), ("when", "x"), ("join", "some"),
        ("call", {"workflowId": CALLED["missing"]}), ("signal", {"name": "s", "secretRef": "k"}),
        ("disabled", True), ("retry", {"maxAttempts": 3}),
    ))  # fmt: skip
    node[name] = value


def draw_definition(seed: int) -> bytes:
    """The definition of a seed: one that is sound, one that is with a change, or one of anything."""
    rng = Random(seed)
    kind = rng.choice(("sound", "spoiled", "anything"))
    document = _anything(rng) if kind == "anything" else _sound(rng)
    if kind == "spoiled":
        _spoiled(rng, document)
    return msgspec.json.encode(document)


def _anything(rng: Random) -> dict[str, Any]:
    draft = _Draft(rng)
    edges: list[dict[str, Any]] = [
        {"source": draft.end(), "target": draft.end()}
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))
    ]
    for edge in edges:
        if rng.random() < 0.1:
            edge["when"] = rng.choice(("results.value == 1", "x", "=1"))
    document: dict[str, Any] = {"id": uid(0), "nodes": draft.nodes, "edges": edges}
    if rng.random() < 0.8:
        schema = rng.choice(
            ({}, {"type": "integer"}, {"type": "strin"} if rng.random() < 0.1 else {})
        )
        document["inputs"] = {"a": {"schema": schema, "default": rng.choice((1, 1, 1, "x"))}}
    if rng.random() < 0.2:
        document["outputs"] = {"o": {"source": draft.end()}}
    if rng.random() < 0.1:
        document["triggers"] = [{"type": "cron", "expression": rng.choice(("@daily", "@never"))}]
    if rng.random() < 0.05:
        document["timeoutSeconds"] = rng.choice((5, -1))
    return document
