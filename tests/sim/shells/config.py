"""What a seed decides of a world of shells: its shape, its faults, and what its clients ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from tests.sim.config import TENANTS

if TYPE_CHECKING:
    from tests.sim.world import World

__all__ = ["FAULTS", "Config", "draw", "draw_definition", "node_uid"]

FAULTS = (
    "cut",
    "black_hole",
    "delay",
    "scheduler_crash",
    "standby",
    "commit",
    "slow_commit",
    "slow_read",
    "outage",
    "worker_crash",
    "stall",
    "cancel",
    "impatient",
    "reregister",
)


@dataclass(frozen=True)
class Config:
    """One world. Times are virtual seconds."""

    seed: int
    faults: tuple[str, ...] = ()
    workers: int = 1
    tenants: int = 1
    slots: int = 2
    runs: int = 2
    tasks: int = 4
    window: int = 64
    heartbeat_s: float = 2.0
    lease_s: float = 12.0
    delay_s: float = 0.002
    commit_fault: float = 0.0
    commit_delay_s: float = 0.001
    read_delay_s: float = 0.001
    fault_phase_s: float = 25.0
    chains: bool = False
    keyed: bool = False
    resources: bool = False
    handlers: tuple[str, ...] = ("ok",)

    def tenant_of(self, number: int) -> str:
        return TENANTS[number % self.tenants]

    def has(self, fault: str) -> bool:
        return fault in self.faults

    def with_(self, **changes: Any) -> Config:
        return replace(self, **changes)

    def describe(self) -> str:
        default = Config(self.seed)
        parts = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(default, one.name)
        ]
        return f"Config(seed={self.seed}, {', '.join(parts)})"


def draw(seed: int) -> Config:
    """The world of a seed. Half of the faults are switched off, so that they do not hide one another."""
    rng = Random(seed * 104_729 + 31)
    faults = tuple(fault for fault in FAULTS if rng.random() < 0.5)
    handlers: tuple[str, ...] = (
        "ok",
        "ok",
        "ok",
        "fail",
        "flaky",
        "crash",
        "chatty",
        "slow",
        "long",
        "hang",
    )
    handlers += ("endless", "stubborn")
    tenants = 2 if rng.random() < 0.25 else 1
    return Config(
        seed=seed,
        faults=faults,
        workers=rng.randint(tenants, 3),
        tenants=tenants,
        slots=rng.randint(1, 3),
        runs=rng.randint(1, 4),
        tasks=rng.randint(1, 6),
        window=rng.choice((1, 4, 64)),
        delay_s=rng.choice((0.05, 0.5)) if "delay" in faults else 0.002,
        commit_fault=rng.choice((0.01, 0.05)) if "commit" in faults else 0.0,
        commit_delay_s=rng.choice((0.2, 1.0)) if "slow_commit" in faults else 0.001,
        read_delay_s=rng.choice((0.05, 0.5)) if "slow_read" in faults else 0.001,
        chains=rng.random() < 0.2,
        keyed=rng.random() < 0.2,
        handlers=tuple(rng.sample(handlers, rng.randint(1, 6))),
    )


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
    if config.chains:
        _wrap(rng, nodes)
    document = {"id": node_uid(1_000_000 + number), "nodes": nodes, "edges": edges}
    endless = ("sim.endless", "sim.stubborn")
    return msgspec.json.encode(document), not any(node["type"] in endless for node in nodes)


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


def _wrap(rng: Random, nodes: list[dict[str, Any]]) -> None:
    """Put a middleware round some nodes."""
    for host in list(nodes):
        if rng.random() > 0.4:
            continue
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
