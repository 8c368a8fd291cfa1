"""What a seed decides of a world of shells: its shape, its faults, and what its clients ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from tests.sim.config import TENANTS

__all__ = [
    "FAULTS",
    "HANDLERS",
    "KEEPING_FAULTS",
    "Config",
    "draw",
    "draw_plain",
    "draw_triggers",
]

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

KEEPING_FAULTS = ("evict", "install", "host_crash", "blobs")
"""Of worlds in which workers keep something: they let things go, installs fail, hosts die, the blob store is away."""

HANDLERS = (
    "ok",
    "fail",
    "flaky",
    "crash",
    "chatty",
    "slow",
    "long",
    "hang",
    "endless",
    "stubborn",
    "wrap",
    "make",
    "change",
)
"""What a node can be made to do, in every package of a simulated world."""


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
    copies: bool = False
    packages: bool = False
    rollouts: bool = False
    removals: bool = False
    gone: bool = False
    triggers: bool = False
    handlers: tuple[str, ...] = ("ok",)

    def tenant_of(self, number: int) -> str:
        return TENANTS[number % self.tenants]

    def has(self, fault: str) -> bool:
        return fault in self.faults

    @property
    def keeps(self) -> bool:
        """Whether workers keep anything: then they are whole, but for the processes of their hosts."""
        return self.resources or self.packages or self.rollouts

    @property
    def has_archives(self) -> bool:
        return self.packages or self.rollouts

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
    """The world of a seed. In two of five, workers keep something; in some of the others, there are triggers."""
    plain = draw_plain(seed)
    # Of its own, so that what it decides leaves the rest of a world as it was.
    rng = Random(seed * 104_729 + 32)
    faults = tuple(fault for fault in KEEPING_FAULTS if rng.random() < 0.5)
    resources, packages, rollouts = (rng.random() < 0.25, rng.random() < 0.15, rng.random() < 0.15)
    copies, removals = resources and rng.random() < 0.5, rng.random() < 0.5
    gone = rng.random() < 0.3
    if rng.random() < 0.4:
        faults += ("drain",)
    if not resources and not packages and not rollouts:
        return draw_triggers(plain)
    drawn = plain.with_(
        faults=plain.faults + faults,
        packages=packages,
        resources=resources,
        rollouts=rollouts,
        removals=removals,
        # Another worker of its tenant is left.
        gone=gone and (copies or plain.workers >= 2 * plain.tenants),
    )
    return _with_resources(drawn, copies) if resources else drawn


def draw_triggers(config: Config) -> Config:
    """The same world, sometimes with triggers, and with a clock on the wall that is set."""
    rng = Random(config.seed * 104_729 + 33)
    has_them, is_set = rng.random() < 0.4, rng.random() < 0.5
    if not has_them:
        return config
    return config.with_(triggers=True, faults=config.faults + (("clock",) if is_set else ()))


def _with_resources(config: Config, copies: bool) -> Config:
    """Enough tasks to hand something on, and time in which it can be lost."""
    never = ("endless", "stubborn")
    handlers = tuple(one for one in config.handlers[:3] if one not in never)
    return config.with_(
        copies=copies,
        # Machines are off for long, and come back.
        fault_phase_s=50.0 if copies else config.fault_phase_s,
        runs=max(config.runs, 4 if copies else 3),
        tasks=max(config.tasks, 6),
        handlers=("ok", "slow", "slow", *handlers),
        # Another worker of the tenant can fetch a copy.
        workers=max(config.workers, 2 * config.tenants) if copies else config.workers,
    )


def draw_plain(seed: int) -> Config:
    """A world in which workers run attempts and keep nothing. Half of the faults are switched off, so that they do not
    hide one another."""
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
