"""Pairs of features: worlds that combine a few of them, and what was seen together in one run.

Faults are drawn for a world, features for its runs. A feature that works alone may not work beside another (a call that
is open while a resource is made again), and a world in which everything is on at once shows little of either. So a part
of all worlds has a few features and no more, and over many seeds every two of them must have met in one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

import msgspec

from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    CallOpened,
    CancelRequested,
    StopRequested,
    TaskLeased,
    TaskRebuilt,
)
from astraflow.core.workflow.plan import AffinityHint, InputEdge, PlanNode
from tests.sim.keeping import EXTRA

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch
    from astraflow.core.workflow.plan import Plan
    from tests.sim.config import Config
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["FEATURES", "PairChecker", "decorate", "missing_pairs", "mix", "pair"]

FEATURES = (
    "calls",
    "rebuilds",
    "sticky",
    "keys",
    "packages",
    "resources",
    "cancels",
    "retries",
    "timeouts",
    "priorities",
    "drains",
    "losses",
    "restarts",
)

_FAULTS = {
    "rebuilds": "evict",
    "cancels": "cancel",
    "drains": "drain",
    "losses": "worker_crash",
    "restarts": "scheduler_crash",
}
_HANDLERS = {
    "retries": "flaky",
    "timeouts": "hang",
    "losses": "slow",
    "rebuilds": "slow",
    "sticky": "slow",
}


def mix(config: Config, rng: Random) -> Config:
    """The world with a few features, and the faults that those need."""
    features = tuple(rng.sample(FEATURES, rng.randint(2, 4)))
    needed = tuple(_FAULTS[one] for one in features if one in _FAULTS)
    others = tuple(one for one in config.faults if one not in _FAULTS.values())
    handlers = ("ok", *(_HANDLERS[one] for one in features if one in _HANDLERS))
    return config.shrink(
        features=features,
        faults=needed + (others if rng.random() < 0.3 else ()),
        handlers=handlers,
        chains="calls" in features,
        keyed="keys" in features,
        packages="packages" in features,
        resources="resources" in features or "rebuilds" in features,
        pinned=False,
        rollouts=False,
        copies=False,
        # Another worker of its tenant is left.
        gone=config.workers_each > 1 and rng.random() < 0.5,
        missing_package=False,
        crash_every_s=5.0,
        runs=max(config.runs, 4),
        tasks=max(min(config.tasks, 7), 5),
    )


def decorate(
    world: World, config: Config, nodes: list[PlanNode], parents: list[tuple[int, ...]]
) -> None:
    """Give nodes what only worlds of features have."""
    rng = world.rng
    for index, node in enumerate(nodes):
        changes: dict[str, object] = {}
        if "priorities" in config.features:
            changes["priority"] = rng.randint(-1, 2)
        may_stick = node.host is None and not node.worker_labels
        if "sticky" in config.features and may_stick and rng.random() < 0.5:
            changes["affinity"] = AffinityHint(f"affinity-{rng.randrange(2)}", "sticky")
            changes["on_resource_lost"] = rng.choice(("rebuild", "fail", None))
        if "rebuilds" in config.features and node.host is not None:
            changes |= _use(rng, nodes, parents[node.host])
        nodes[index] = msgspec.structs.replace(node, **changes)


def _use(rng: Random, nodes: list[PlanNode], parents: tuple[int, ...]) -> dict[str, object]:
    """A middleware that uses what a node upstream of its host has made."""
    makers = [one for one in parents if nodes[one].type in ("sim.make", "sim.change")]
    if not makers:
        return {}
    used = InputEdge(rng.choice(makers), ("r",), ("use",))
    return {"inputs": (used,), "on_resource_lost": "rebuild"}


def pair(one: str, other: str) -> str:
    """What is noted when two features were seen in one run."""
    return "pair: " + " and ".join(sorted((one, other)))


def missing_pairs(seen: Mapping[str, int]) -> list[str]:
    """The pairs that never met."""
    return [name for two in combinations(FEATURES, 2) if not seen.get(name := pair(*two))]


class PairChecker:
    """Notes which features each run has really used."""

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self._used: dict[str, dict[str, None]] = {}
        store.on_commit.append(self.on_commit)

    def everywhere(self, feature: str) -> None:
        """It happens to all runs that have not ended."""
        for run_id, run in self.store.runs.items():
            if not run.is_finished:
                self._note(run_id, feature)

    def on_commit(self, batch: Batch) -> None:
        for one in batch.facts:
            for feature in self._of(one.fact, self.store.runs[one.run_id].plan):
                self._note(one.run_id, feature)

    def _note(self, run_id: str, feature: str) -> None:
        used = self._used.setdefault(run_id, {})
        if feature not in used:
            for other in used:
                self.world.sometimes(pair(feature, other))
            used[feature] = None

    def _of(self, fact: object, plan: Plan) -> list[str]:
        if isinstance(fact, TaskLeased):
            if fact.task >= len(plan.nodes):
                return []  # a call: its chain has been noted
            node = plan.nodes[fact.task]
            outermost = [plan.nodes[one] for one in node.middlewares[:1]]
            return [name for one in (node, *outermost) for name in _of_node(one)]
        if isinstance(fact, StopRequested):
            return ["timeouts"] if fact.why == "timeout" else []
        kinds: dict[type, str] = {
            CallOpened: "calls",
            TaskRebuilt: "rebuilds",
            CancelRequested: "cancels",
            AttemptFailed: "retries",
            AttemptLost: "losses",
        }
        name = kinds.get(type(fact))
        return [name] if name is not None else []


def _of_node(node: PlanNode) -> list[str]:
    is_used = {
        "sticky": node.affinity is not None and node.affinity.mode == "sticky",
        "keys": node.concurrency_key is not None,
        "packages": node.package_name == EXTRA[0],
        "resources": any(edge.write == ("use",) for edge in node.inputs),
        "priorities": node.priority != 0,
    }
    return [name for name, is_it in is_used.items() if is_it]
