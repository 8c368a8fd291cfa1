"""What the ready queue is made of: tenants, runs, and the tasks of a run that have a place, or none, together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
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
    block: Block | None = None
    """The tasks that were queued with it and come right after it."""

    @property
    def tenant(self) -> str:
        return self.demand.tenant


class Block:
    """Tasks in a row that were queued together and need the same. One has an entry of its own when the task before it
    leaves its line; until then it takes no memory. The newest of these entries is in the line."""

    __slots__ = ("demand", "gone", "left", "line", "rank", "run_id", "start", "stop", "ticket")

    def __init__(self, lead: Entry, stop: int) -> None:
        assert lead.line is not None, "a delay is not for a block"
        self.run_id = lead.run_id
        self.demand = lead.demand
        self.line = lead.line
        self.rank = lead.rank
        self.start = lead.task + 1
        self.stop = stop
        self.ticket = (
            lead.ticket - lead.task
        )  # the ticket of a task is so much more than its number
        self.gone: set[int] = set()  # that need no place any more, or have another entry
        self.left = stop - self.start  # all others

    def __contains__(self, task: int) -> bool:
        return self.start <= task < self.stop and task not in self.gone

    def __iter__(self) -> Iterator[Entry]:
        """The entries that its tasks would have."""
        return (self.entry(task) for task in range(self.start, self.stop) if task in self)

    def entry(self, task: int) -> Entry:
        return Entry(
            rank=self.rank,
            ticket=self.ticket + task,
            run_id=self.run_id,
            task=task,
            demand=self.demand,
            line=self.line,
            block=self,
        )

    def discard(self, task: int) -> None:
        """One of its tasks needs no place any more."""
        self.gone.add(task)
        self.left -= 1

    def clear(self) -> int:
        """None of its tasks needs a place any more. Returns how many did."""
        count, self.left = self.left, 0
        self.start = self.stop
        return count

    def take(self) -> Entry | None:
        """The entry of its next task."""
        if not self.left:
            return None
        task = self.start
        while task in self.gone:
            self.gone.remove(task)
            task += 1
        self.start = task + 1
        self.left -= 1
        return self.entry(task)


class TenantFlow(RankNode):
    """The virtual time of a tenant; lists its runs that may be served."""

    __slots__ = ("name", "now_run", "runs", "tag", "waiting", "weight")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.tag = 0.0
        self.weight = 1.0
        self.waiting = 0
        self.runs = 0  # that have tasks waiting
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
