"""Workflows for clients to submit, drawn by chance, and what must be known to judge them.

A place is a node id or, inside of a map or a container, the id and the path to it: `id path`. Each call of a
middleware has the id of its host and its own: `id call`.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chaos.truth import SCRIPT
from tests.definitions import link, node, workflow

__all__ = ["WEIGHTS", "Asks", "Drawing", "place_of", "python_node"]

Json = dict[str, Any]

# Ok and slow ones most of all; what takes a host down takes others with it, and is rare.
WEIGHTS = {
    "ok": 30,
    "slow": 30,
    "fail_once": 8,
    "fail": 3,
    "abort_once": 1,
    "segfault_once": 1,
    "stubborn": 4,
    "flood": 1,
    "fork": 3,
    "big": 4,
    "stream": 6,
}
ITEM_ACTS = ("ok", "ok", "slow", "slow", "fail_once", "stubborn", "fail")


@dataclass
class Asks:
    """What a workflow asks of its client, and what must hold at its end beside what holds for every node."""

    approvals: dict[str, bool] = field(default_factory=dict)
    """The decision for each node that waits for one."""
    signals: dict[str, str] = field(default_factory=dict)
    """The name of the signal that each node waits for."""
    bodies: list[tuple[str, str]] = field(default_factory=list)
    """Queries for the nodes inside of others: the node around them, and which of its bodies."""
    wrapped: dict[str, str] = field(default_factory=dict)
    """Hosts of middlewares: each call is a task of its own, which has its own key with this beginning."""
    undone_by: dict[str, str] = field(default_factory=dict)
    """The first node of the branch that undoes each node."""


@dataclass
class Part:
    """Some nodes of a workflow, to be put into a row with others."""

    nodes: list[Json]
    first: Json
    last: Json
    edges: list[Json] = field(default_factory=list)


def place_of(shown: Json) -> str:
    """Where a node is that an event or a view speaks of."""
    parts = (shown["nodeId"], shown.get("scopePath"), shown.get("callId"))
    return " ".join(part for part in parts if part is not None)


def python_node(folder: Path, key: str, act: str = "ok", **inputs: Any) -> Json:
    """A node that writes the register of truth."""
    parameters = {
        "code": SCRIPT,
        "inputs": {"folder": str(folder), "key": key, "act": act, **inputs},
    }
    retry = {"maxAttempts": 3, "backoff": {"initialSeconds": 0.1, "factor": 1}}
    return node("core.python", parameters=parameters, retry=retry)


class Drawing:
    """One workflow. `keys`: the file of truth of each place that writes one."""

    def __init__(
        self, truth: Path, rng: random.Random, weights: Mapping[str, int] = WEIGHTS
    ) -> None:
        self.keys: dict[str, str] = {}
        self.asks = Asks()
        self._truth = truth
        self._rng = rng
        self._weights = weights

    def draw(self) -> Json:
        return self._graph() if self._rng.random() < 0.5 else self._row()

    # -- plain nodes ------------------------------------------------------------------------

    def _graph(self) -> Json:
        rng = self._rng
        count = rng.choice((1, 2, 3, 4, 6, 9))
        nodes = [self._node() for _ in range(count)]
        shape = rng.choice(("chain", "fan", "apart", "random"))
        if shape == "chain":
            edges = list(pairwise(range(count)))
        elif shape == "fan":
            edges = [(0, at) for at in range(1, count - 1)]
            edges += [(at, count - 1) for at in range(1, count - 1)]
        elif shape == "random":
            edges = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.3]
        else:
            edges = []
        return workflow(*nodes, edges=[link(nodes[a], nodes[b]) for a, b in edges])

    def _node(self) -> Json:
        rng = self._rng
        if rng.random() < 0.15:
            return node("core.noop", parameters={"a": 1})
        (act,) = rng.choices(list(self._weights), list(self._weights.values()))
        seconds = {"slow": rng.uniform(0.2, 2.0), "stubborn": rng.uniform(0.5, 4.0)}.get(
            act, rng.choice((0.0, 0.0, 0.2, 0.5))
        )
        size = rng.choice((20_000, 300_000)) if act == "big" else 0
        return self._works(act, seconds=seconds, size=size)

    def _works(self, act: str, **inputs: Any) -> Json:
        key = uuid.uuid4().hex
        made = python_node(self._truth, key, act, **inputs)
        self.keys[made["id"]] = key
        return made

    # -- waits, calls and bodies ------------------------------------------------------------

    def _row(self) -> Json:
        kinds: tuple[Callable[[], Part], ...] = (
            self._wait, self._signal, self._approval, self._map, self._container, self._wrapped,
            self._undone,
        )  # fmt: skip
        parts = [self._rng.choice(kinds)() for _ in range(self._rng.choice((1, 2, 3)))]
        nodes = [one for part in parts for one in part.nodes]
        edges = [one for part in parts for one in part.edges]
        edges += [link(before.last, after.first) for before, after in pairwise(parts)]
        return workflow(*nodes, edges=edges)

    def _before_and_after(self, waits: Json) -> Part:
        before, after = self._works("ok"), self._works("ok")
        return Part(
            [before, waits, after], before, after, [link(before, waits), link(waits, after)]
        )

    def _wait(self) -> Part:
        return self._before_and_after(
            node("core.wait", wait={"seconds": self._rng.uniform(0.2, 4.0)})
        )

    def _signal(self) -> Part:
        name = uuid.uuid4().hex
        waits = node("core.signal", signal={"name": name})
        self.asks.signals[waits["id"]] = name
        return self._before_and_after(waits)

    def _approval(self) -> Part:
        waits = node("core.approval", approval={"message": "?"})
        self.asks.approvals[waits["id"]] = self._rng.random() < 0.7
        return self._before_and_after(waits)

    def _items(self, count: int) -> tuple[str, Json, str]:
        """The beginning of the keys of a node for items, the node, and the setting of the map."""
        key = uuid.uuid4().hex
        acts = self._rng.choices(ITEM_ACTS, k=count)
        if self._rng.random() < 0.5:
            acts = [act if act != "fail" else "ok" for act in acts]
        act = f"={acts!r}[index]"
        each = python_node(self._truth, f"=f'{key}-{{index}}'", act, seconds=0.3)
        policy = self._rng.choice(("stop", "finish", "collect"))
        return key, each, policy

    def _map(self) -> Part:
        count = self._rng.choice((1, 5, 12))
        key, each, policy = self._items(count)
        each["map"] = {"over": f"=range({count})", "concurrency": 4, "failurePolicy": policy}
        for item in range(count):
            self.asks.bodies.append((each["id"], f"item={item}"))
            self.keys[f"{each['id']} {each['id']}:{item}"] = f"{key}-{item}"
        return Part([each], each, each)

    def _container(self) -> Part:
        count = self._rng.choice((1, 3))
        key, each, policy = self._items(count)
        box = node("core.container")
        box["map"] = {"over": f"=range({count})", "failurePolicy": policy}
        each["parent"] = box["id"]
        waits = node("core.wait", wait={"seconds": 0.5}, parent=box["id"])
        for item in range(count):
            # The item is the container, and the nodes are in it.
            path = f"{box['id']}:{item}"
            self.asks.bodies.append((box["id"], f"scope={path}"))
            self.keys[f"{each['id']} {path}/{box['id']}:0"] = f"{key}-{item}"
        return Part([box, waits, each], box, box, [link(waits, each)])

    def _wrapped(self) -> Part:
        key = uuid.uuid4().hex
        host = python_node(self._truth, key, "slow", seconds=0.8, each=True)
        kind, settings = self._rng.choice(
            (("core.log_calls", {}), ("core.timeout", {"seconds": 60}))
        )
        wrapper = node(kind, parameters=settings)
        host["middlewares"] = [wrapper["id"]]
        self.asks.wrapped[host["id"]] = key
        return Part([host, wrapper], host, host)

    def _undone(self) -> Part:
        undoes = [self._works("slow", seconds=0.5) for _ in range(2)]
        does = [self._works("ok") for _ in undoes]
        for one, undo in zip(does, undoes, strict=True):
            one["onFailure"] = one["onCancel"] = undo["id"]
            self.asks.undone_by[one["id"]] = undo["id"]
        last = self._works(self._rng.choice(("ok", "fail", "fail")))
        edges = [link(one, other) for one, other in pairwise((*does, last))]
        return Part([*does, last, *undoes], does[0], last, edges)
