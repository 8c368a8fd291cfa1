"""What a seed decides: the shape of its world and which faults are in it.

Swarm: each seed switches off a random half of the faults, so that faults do not hide one another.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random

from tests.sim.features import mix

__all__ = ["FAULTS", "HOLDING_FAULTS", "POOL_SLOTS", "TENANTS", "Config", "draw"]

TENANTS = ("acme", "globex")
POOL_SLOTS = 4
"""Attempts that may be under way in an HTTP pool."""

FAULTS = (
    "loss",
    "duplication",
    "delay",
    "clog",
    "partition",
    "cut",
    "scheduler_crash",
    "takeover",
    "scheduler_pause",
    "worker_crash",
    "worker_pause",
    "worker_slow",
    "host_crash",
    "commit",
    "drift",
    "wall_jump",
    "token_expiry",
    "drain",
    "cancel",
    "poison",
    "store_split",
    "reregister",
    "mute_crash",
)

HOLDING_FAULTS = ("evict", "install")
"""Of worlds with resources and packages: workers that let things go, installs that fail."""


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
    loss: float = 0.0
    duplication: float = 0.0
    delay_s: float = 0.005
    ordered: bool = True
    is_tcp: bool = False
    """While a connection stays, a partition only delays what is sent."""
    clog: float = 0.0
    commit_fault: float = 0.0
    commit_delay_s: float = 0.0
    drift: float = 0.0
    token_ttl_s: int = 3600
    crash_every_s: float = 20.0
    mute_crash: float = 0.0
    fault_phase_s: float = 60.0
    with_codec: bool = False
    missing_package: bool = False
    pinned: bool = False
    keyed: bool = False
    chains: bool = False
    resources: bool = False
    packages: bool = False
    rollouts: bool = False
    removals: bool = False
    copies: bool = False
    handlers: tuple[str, ...] = ("ok",)
    features: tuple[str, ...] = ()
    gone: bool = False
    pools: bool = False
    conditions: bool = False
    waits: bool = False
    scopes: bool = False
    stored: bool = False
    """What maps collect is stored by reference from a few bytes on, and maps go over it."""
    undoing: bool = False
    requests: bool = False
    deadlines: bool = False
    """Every other run has a time in which it must end."""

    def tenant_of(self, number: int) -> str:
        """The tenant of the n-th run or worker."""
        return TENANTS[number % self.tenants]

    def worker_id(self, number: int) -> str:
        """Instance ids repeat between tenants on purpose: an identity is tenant *and* instance id."""
        return f"worker-{number // self.tenants}"

    @property
    def workers_each(self) -> int:
        """How many workers every tenant has at least."""
        return self.workers // self.tenants

    def deadline_of(self, number: int) -> float | None:
        """The time that the n-th run has, of a source of its own."""
        if not self.deadlines or number % 2:
            return None
        return Random(self.seed * 7919 + 1000 + number).uniform(2.0, 20.0)

    def has(self, fault: str) -> bool:
        return fault in self.faults

    def shrink(self, **changes: object) -> Config:
        return replace(self, **changes)  # type: ignore[arg-type]

    def describe(self) -> str:
        default = Config(self.seed)
        parts = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(default, one.name)
        ]
        return f"Config(seed={self.seed}, {', '.join(parts)})"


def draw(seed: int) -> Config:
    """The world of a seed: one of four is a world of features (`features`)."""
    third = Random(seed * 7919 + 19)
    drawn = _draw(seed)
    if drawn.resources and (drawn.packages or drawn.rollouts):
        # A sticky key on the worker that lacks the package of the others would bind them there for an hour.
        drawn = drawn.shrink(missing_package=False)
    if drawn.resources and drawn.copies:
        # Another worker of the tenant can fetch a copy.
        drawn = drawn.shrink(workers=max(drawn.workers, 2 * drawn.tenants))
    fourth = Random(seed * 7919 + 20)
    if fourth.random() < 0.25 and drawn.tasks <= 7 and drawn.workers <= 4:
        drawn = drawn.shrink(pools=True)
    drawn = drawn.shrink(conditions=Random(seed * 7919 + 21).random() < 0.2)
    drawn = drawn.shrink(waits=Random(seed * 7919 + 23).random() < 0.2)
    # What conditions read of a node is an attempt, and a node with a body has none.
    has_scopes = not drawn.conditions and Random(seed * 7919 + 26).random() < 0.25
    drawn = drawn.shrink(scopes=has_scopes)
    drawn = drawn.shrink(undoing=Random(seed * 7919 + 28).random() < 0.15)
    drawn = drawn.shrink(requests=Random(seed * 7919 + 31).random() < 0.2)
    drawn = drawn.shrink(deadlines=Random(seed * 7919 + 22).random() < 0.25)
    is_small = drawn.tasks <= 7 and drawn.workers <= 4
    drawn = mix(drawn, third) if is_small and third.random() < 0.25 else drawn
    # HTTP workers cannot read what is stored, and workers of worlds with resources know of those alone that workers
    # have made.
    is_plain = drawn.scopes and not drawn.resources and not drawn.pools
    return drawn.shrink(stored=is_plain and Random(seed * 7919 + 33).random() < 0.6)


def _draw(seed: int) -> Config:
    rng = Random(seed * 7919 + 17)
    # Of its own, so that what it decides leaves the rest of a world as it was.
    second = Random(seed * 7919 + 18)
    faults = tuple(fault for fault in FAULTS if rng.random() < 0.5)
    is_large = rng.random() < 0.02
    handlers: tuple[str, ...] = (
        "ok",
        "ok",
        "ok",
        "fail",
        "flaky",
        "crash",
        "refuse_skip",
        "chatty",
    )
    handlers += ("slow", "long", "hang", "endless")
    if is_large:
        handlers = handlers[:8]  # two hundred slow tasks in a row take longer than the bound
    tenants = 2 if rng.random() < 0.3 else 1
    is_crowded = rng.random() < 0.02
    return Config(
        seed=seed,
        faults=faults + tuple(fault for fault in HOLDING_FAULTS if second.random() < 0.5),
        workers=40 if is_crowded else rng.randint(tenants, 4),
        # Forty workers see as much in twenty seconds as four in many more.
        fault_phase_s=20.0 if is_crowded else 60.0,
        tenants=tenants,
        slots=rng.randint(1, 4),
        runs=1 if is_large else rng.randint(1, 5),
        tasks=200 if is_large else rng.randint(2, 7),
        window=rng.choice((1, 2, 8, 64)),
        loss=rng.choice((0.01, 0.05, 0.3)) if "loss" in faults else 0.0,
        duplication=rng.choice((0.05, 0.3)) if "duplication" in faults else 0.0,
        delay_s=rng.choice((0.05, 0.05, 0.5, 0.5, 3.0)) if "delay" in faults else 0.005,
        ordered=rng.random() < 0.5,
        clog=rng.random() * 0.02 if "clog" in faults else 0.0,
        commit_fault=rng.choice((0.002, 0.01)) if "commit" in faults else 0.0,
        commit_delay_s=rng.choice((0.0, 0.002, 0.05)),
        drift=0.05 if "drift" in faults else 0.0,
        token_ttl_s=15 if "token_expiry" in faults else 3600,
        crash_every_s=rng.choice((5.0, 15.0, 60.0)),
        with_codec=rng.random() < 0.05,
        mute_crash=0.003 if "mute_crash" in faults else 0.0,
        missing_package=rng.random() < 0.2,
        pinned=rng.random() < 0.15,
        keyed=rng.random() < 0.2 and not is_large,
        chains=rng.random() < 0.25,
        resources=second.random() < 0.3 and not is_large,
        packages=second.random() < 0.2 and not is_large,
        rollouts=second.random() < 0.2 and not is_large and not is_crowded,
        removals=second.random() < 0.5,
        copies=second.random() < 0.4,
        handlers=tuple(rng.sample(handlers, rng.randint(1, 6))),
    )
