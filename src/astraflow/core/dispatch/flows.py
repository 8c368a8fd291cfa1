"""What the ready queue is made of: tenants, runs, and the tasks of a run that have a place, or none, together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.ranking import RankNode
from astraflow.core.ids import RunId
from astraflow.core.workflow.plan import AffinityHint

Lock = tuple[str, str | None]
"""A concurrency key that a task needs, and the chain that lends it, if one does."""


class Entry(msgspec.Struct, order=True, kw_only=True):
    """A queued task. Its order is its place in a line: the highest priority, then the oldest; no two tickets are equal.

    The heap of a line holds entries and no tuples around them, because a million of them may wait.
    """

    rank: int
    """The priority, negated: what comes first has the smallest."""
    ticket: int
    run_id: RunId
    task: int
    demand: Demand
    lock: Lock | None = None
    affinity: AffinityHint | None = None
    line: Line | None = None
    ready_at: float | None = None
    """It was queued with a delay, until then."""
    is_over: bool = False
    """The task needs no place any more, or has another entry."""

    @property
    def tenant(self) -> str:
        return self.demand.tenant


class TenantFlow(RankNode):
    """The virtual time of a tenant; lists its runs that may be served."""

    __slots__ = ("name", "now_run", "tag", "waiting", "weight")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.tag = 0.0
        self.weight = 1.0
        self.waiting = 0
        self.now_run = 0.0  # the virtual time of its runs


class RunFlow(RankNode):
    """The virtual time of a run; lists its shares that may be served."""

    __slots__ = ("run_id", "tag", "tenant", "waiting", "watch", "watched")

    def __init__(self, run_id: RunId, tenant: TenantFlow) -> None:
        super().__init__()
        self.run_id = run_id
        self.tenant = tenant
        self.tag = 0.0
        self.waiting = 0
        self.watch: list[tuple[float, Pool]] = []
        """The pools in which others wait behind this run, by the tag after which they come before it."""
        self.watched: dict[Pool, None] = {}  # those in `watch`


class Pool(RankNode):
    """Members that wait for the same thing: a place for their demand, or a concurrency key. Lists the hidden ones."""

    __slots__ = ("demand", "guard", "lock", "locks", "members", "until")

    def __init__(self, demand: Demand, lock: Lock | None = None) -> None:
        super().__init__()
        self.demand = demand
        self.lock = lock  # the key that it is of; None: of the demand itself
        self.locks: dict[Lock, Pool] = {}  # of a demand: its keys
        self.members: dict[RunId, Any] = {}  # by run: shares, or lines if it is of a key
        self.until: Hashable | None = None  # what it sleeps on
        self.guard: Any = None  # the member that is shown, before all that are hidden


class Share(RankNode):
    """The tasks of one run with one demand; lists its lines that may be served."""

    __slots__ = ("count", "plain", "pool", "run")

    def __init__(self, run: RunFlow, pool: Pool) -> None:
        super().__init__()
        self.run = run
        self.pool = pool
        self.plain: Line | None = None  # the tasks without a key
        self.count = 0  # all lines

    @property
    def only_line(self) -> Line | None:
        """The tasks without a key, if there are no others: most runs have no keys."""
        return self.plain if self.count == 1 else None


class Line(RankNode):
    """The tasks of one run with one demand and one key, by priority and age (in `heap`)."""

    __slots__ = ("pool", "run", "share")

    def __init__(self, share: Share, pool: Pool | None) -> None:
        super().__init__()
        self.share = share
        self.run = share.run
        self.pool = pool  # of its key, if it has one
