"""What clients of a world of shells ask for: random graphs, in which resources and packages are handed on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from tests.sim.keeping import EXTRA, NEXT

if TYPE_CHECKING:
    from tests.sim.shells.config import Config
    from tests.sim.world import World

__all__ = ["draw_definition", "node_uid"]

_MAKERS = ("make", "change")


def node_uid(number: int) -> str:
    """The id of the n-th node of a definition."""
    return f"00000000-0000-4000-8000-{number:012d}"


def draw_definition(world: World, config: Config, number: int) -> tuple[bytes, bool]:
    """A random graph whose nodes read the results of those before them; and whether it ends by itself."""
    rng = world.rng
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for index in range(config.tasks):
        parents = sorted(rng.sample(range(index), min(index, rng.choice((0, 1, 1, 2)))))
        nodes.append(_draw_node(rng, config, index, parents))
        for parent in parents:
            source = {"node": node_uid(parent), "port": "v"}
            target = {"node": node_uid(index), "port": f"p{parent}"}
            edges.append({"source": source, "target": target})
    if config.packages:
        _want_extra(rng, nodes)
    if config.resources:
        _hand_on(rng, config, nodes, edges)
    if config.chains:
        _wrap(rng, nodes)
    document = {"id": node_uid(1_000_000 + number), "nodes": nodes, "edges": edges}
    is_endless = any(_handler(node) in ("endless", "stubborn") for node in nodes)
    return msgspec.json.encode(document), not is_endless


def _draw_node(rng: Random, config: Config, index: int, parents: list[int]) -> dict[str, Any]:
    handler = rng.choice(config.handlers)
    node: dict[str, Any] = {
        "id": node_uid(index),
        "type": f"sim.{handler}",
        "package": {"name": "sim", "version": "1.0"},
        "parameters": {"from": {}},
        "retry": {
            "maxAttempts": rng.randint(1, 3),
            "backoff": {"initialSeconds": 0.2, "factor": 2.0, "maxSeconds": 2.0, "jitter": 0.5},
        },
        "ui": {
            "inputPorts": [
                {
                    "key": f"p{parent}",
                    "binding": {"path": f"parameters.from.{parent}", "mode": "write"},
                }
                for parent in parents
            ],
            "outputPorts": [{"key": "v", "binding": {"path": "results.v", "mode": "read"}}],
        },
    }
    if handler == "hang":
        node["timeoutSeconds"] = 2.0 + rng.random()
    if config.keyed and rng.random() < 0.5:
        node["concurrencyKey"] = "key"
    return node


def _handler(node: dict[str, Any]) -> str:
    return str(node["type"]).partition(".")[2]


def _package(node: dict[str, Any]) -> str:
    return str(node["package"]["name"])


def _want_extra(rng: Random, nodes: list[dict[str, Any]]) -> None:
    """Some nodes are of a package that nobody has yet; some of them name no version of it."""
    for node in nodes:
        if rng.random() < 0.4:
            name = EXTRA[0]
            version = rng.choice((EXTRA[1], NEXT[1], None))
            node["type"] = f"{name}.{_handler(node)}"
            node["package"] = {"name": name, "version": version}


def _hand_on(
    rng: Random, config: Config, nodes: list[dict[str, Any]], edges: list[dict[str, Any]]
) -> None:
    """Some nodes make a resource, some use or change what a node before them has made or handed on."""
    for place, node in enumerate(nodes):
        # What is kept in memory is in a host of its package.
        makers = [
            number
            for number, one in enumerate(nodes[:place])
            if _handler(one) in _MAKERS and one["package"] == node["package"]
        ]
        if makers and rng.random() < 0.7:
            _use(rng, nodes, place, rng.choice(makers), edges)
            if rng.random() < 0.4 and not config.copies:
                _set_handler(node, "change")
        elif place == 0 or rng.random() < 0.4:
            _set_handler(node, "make")


def _set_handler(node: dict[str, Any], handler: str) -> None:
    node["type"] = f"{_package(node)}.{handler}"
    node.pop("timeoutSeconds", None)
    handed = {"key": "r", "binding": {"path": "results.r", "mode": "read"}}
    node["ui"]["outputPorts"].append(handed)


def _use(
    rng: Random, nodes: list[dict[str, Any]], place: int, maker: int, edges: list[dict[str, Any]]
) -> None:
    node = nodes[place]
    ports = node["ui"]["inputPorts"]
    taken = [(f"p{maker}", "v", f"parameters.from.{maker}"), ("use", "r", "parameters.use")]
    for key, read, path in taken:
        if any(port["key"] == key for port in ports):
            continue  # it is upstream already
        ports.append({"key": key, "binding": {"path": path, "mode": "write"}})
        source = {"node": node_uid(maker), "port": read}
        edges.append({"source": source, "target": {"node": node_uid(place), "port": key}})
    policy = rng.choice(("rebuild", "rebuild", "fail", None))
    if policy is not None:
        node["onResourceLost"] = policy


def _wrap(rng: Random, nodes: list[dict[str, Any]]) -> None:
    """Put a middleware round some nodes."""
    for host in list(nodes):
        if rng.random() > 0.4 or _handler(host) in _MAKERS:
            continue  # a middleware would answer in the place of a maker, and hand nothing on
        wrapper = {
            "id": node_uid(len(nodes)),
            "type": "sim.wrap",
            "package": {"name": "sim", "version": "1.0"},
            "parameters": {"from": {}},
            "ui": {"inputPorts": [], "outputPorts": []},
        }
        if "concurrencyKey" in host:
            wrapper["concurrencyKey"] = host["concurrencyKey"]
        nodes.append(wrapper)
        host["middlewares"] = [wrapper["id"]]
