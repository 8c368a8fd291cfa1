"""The ready queue: who is next, fairly, over tenants and the runs of a tenant.

Start-time fair queueing: each tenant and each run has a tag, its virtual time. The smallest tag is
served, and serving adds 1 / weight to it, so that a fan-out of fifty thousand tasks delays nobody
else's small run. A flow that was idle begins at the present virtual time: waiting earns no credit.
Within a run the highest priority is served, then the oldest.

Rule 1: a demand that finds no place sleeps until something happens that could help it (`wake`), and all its tasks
        with it. A concurrency key that is taken lets those sleep that need it, until it is given back.
Rule 2: nothing costs anything per waiting task. Tenants, runs, the demands of a run and the keys of a demand are
        heaps in heaps (`ranking`); what sleeps is taken out when it is met (*hidden*). What is woken is not put
        back as a whole: the hidden one that is first is shown, and guards the others. It gives way when its run
        is served past them, or when it leaves.
Rule 3: a task stands in the queue at most once. Queueing it again replaces its entry; the old one is dropped later.
Rule 4: a task with a delay is in no demand before its time.
Rule 5: tasks in a row that are queued together are a *block*: only the first has an entry, and leaves it to the next.
        A million tasks may wait; few are ever looked at before they are first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush, heapreplace
from itertools import islice
from typing import Final, cast

import msgspec

from astraflow.core.dispatch.blocks import MIN_BLOCK, BlockTable, rows_of
from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.depths import Depths
from astraflow.core.dispatch.flows import Block, Entry, Line, Lock, Pool, RunFlow, Share, TenantFlow
from astraflow.core.dispatch.ranking import Rank, RankNode
from astraflow.core.ids import RunId
from astraflow.core.workflow.plan import AffinityHint

LEVELS: Final = ("tenant", "run", "share", "line")  # what is listed in what


class ReadyQueue:
    """All tasks that may be placed, or may be after a delay."""

    def __init__(self) -> None:
        self._order = RankNode()
        self._tenants: dict[str, TenantFlow] = {}
        self._runs: dict[RunId, RunFlow] = {}
        self._pools: dict[Demand, Pool] = {}
        self._asleep: dict[Hashable, dict[Pool, None]] = {}
        self._delayed: list[tuple[float, int, Entry]] = []
        self._entries: dict[RunId, dict[int, Entry]] = {}
        self._blocks = BlockTable()
        self._count = 0  # of entries
        self.depths = Depths()
        self._sticky: dict[tuple[str, str], dict[tuple[RunId, int], None]] = {}
        self._next_ticket = 0
        self._now_tenant = 0.0
        self.looks = 0  # how often a rank was looked at: what the queue's work is made of

    def __len__(self) -> int:
        return self._count + self._blocks.tasks

    # -- in and out ---------------------------------------------------------------------------

    def push(
        self,
        run_id: RunId,
        task: int,
        demand: Demand,
        *,
        priority: int = 0,
        ready_at: float | None = None,
        lock: Lock | None = None,
        affinity: AffinityHint | None = None,
    ) -> None:
        """Queue a task, from `ready_at` on if given. Replaces an earlier entry of the task."""
        of_run = self._entries.get(run_id)
        if (of_run is not None and task in of_run) or self._blocks.tasks:
            self.forget(run_id, task)
        self._next_ticket += 1
        entry = Entry(
            rank=-priority,
            ticket=self._next_ticket,
            run_id=run_id,
            task=task,
            demand=demand,
            lock=lock,
            affinity=affinity,
        )
        self._index(entry)
        self.depths.add(demand)
        if affinity is not None and affinity.mode == "sticky":
            self._sticky.setdefault((demand.tenant, affinity.key), {})[run_id, task] = None
        if ready_at is None:
            self._admit(entry)
        else:
            entry.ready_at = ready_at
            heappush(self._delayed, (ready_at, entry.ticket, entry))

    def push_all(
        self, run_id: RunId, tasks: Sequence[int], demand: Demand, priority: int = 0
    ) -> None:
        """Queue tasks of a run in this order that need the same, have no key and no delay, and are not queued."""
        for row in rows_of(tasks):
            start, stop = row[0], row[0] + len(row)
            is_row = len(row) >= MIN_BLOCK and row[-1] == stop - 1
            if not is_row or not self._blocks.is_free(run_id, start, stop):
                for task in row:
                    self.push(run_id, task, demand, priority=priority)
                continue
            self.push(run_id, start, demand, priority=priority)
            lead = self._entries[run_id][start]
            block = lead.block = Block(lead, stop)
            self._blocks.add(block)
            self.depths.add(demand, block.left)
            self._next_ticket += block.left
            run = block.line.run
            run.waiting += block.left
            run.tenant.waiting += block.left

    def _index(self, entry: Entry) -> None:
        of_run = self._entries.get(entry.run_id)
        if of_run is None:
            of_run = self._entries[entry.run_id] = {}
        of_run[entry.task] = entry
        self._count += 1

    def forget(self, run_id: RunId, task: int) -> None:
        """The task needs no place any more."""
        of_run = self._entries.get(run_id)
        entry = None if of_run is None else of_run.pop(task, None)
        if of_run is None or entry is None:
            self._forget_in_block(run_id, task)
            return
        entry.is_over = True
        self._count -= 1
        self.depths.add(entry.demand, -1)
        if not of_run:
            del self._entries[run_id]
        if entry.affinity is not None:
            self._unlist_sticky(entry)

    def _forget_in_block(self, run_id: RunId, task: int) -> None:
        block = self._blocks.find(run_id, task)
        if block is not None:
            block.discard(task)
            self._left_block(block, 1)

    def _left_block(self, block: Block, count: int) -> None:
        """So many tasks need no place that had no entry. That of the task before them stands for them in the line."""
        self._blocks.note_left(block, count)
        self.depths.add(block.demand, -count)
        block.line.run.waiting -= count
        block.line.run.tenant.waiting -= count

    def forget_run(self, run_id: RunId) -> None:
        """No task of the run needs a place any more."""
        for block in self._blocks.of_run(run_id):
            self._left_block(block, block.clear())
        for entry in self._entries.pop(run_id, {}).values():
            entry.is_over = True
            self._count -= 1
            self.depths.add(entry.demand, -1)
            if entry.affinity is not None:
                self._unlist_sticky(entry)

    def _unlist_sticky(self, entry: Entry) -> None:
        assert entry.affinity is not None
        if entry.affinity.mode == "sticky":
            name = (entry.tenant, entry.affinity.key)
            del self._sticky[name][entry.run_id, entry.task]
            if not self._sticky[name]:
                del self._sticky[name]

    def set_demand(self, run_id: RunId, task: int, **changes: str | None) -> None:
        """A queued task has another demand than it was queued with; a delay that it has is kept."""
        entry = self.find(run_id, task)
        assert entry is not None, "only a queued task has a demand"
        demand = msgspec.structs.replace(entry.demand, **changes)
        if entry.line is None:
            entry.demand = demand
        elif demand != entry.demand:
            self.push(
                run_id,
                task,
                demand,
                priority=-entry.rank,
                lock=entry.lock,
                affinity=entry.affinity,
            )

    def advance(self, now: float) -> None:
        """Admit the tasks whose delay has passed."""
        while self._delayed and self._delayed[0][0] <= now:
            entry = heappop(self._delayed)[2]
            if not entry.is_over:
                self._admit(entry)

    def deadline(self) -> float | None:
        """When `advance` has something to do."""
        while self._delayed and self._delayed[0][2].is_over:
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def set_weight(self, tenant: str, weight: float) -> None:
        """A tenant with twice the weight gets twice the share while both have work waiting."""
        assert weight > 0
        self._tenant(tenant).weight = weight

    def next(self) -> Entry | None:
        """The entry to place now. Then call `served`, `drop`, `sleep` (its demand has no place) or `lock` (its key
        is taken)."""
        alone = self._alone()
        if alone is not None:
            return alone
        tenant = self._order.first(self._rank_of_tenant)
        if tenant is None:
            return None
        share: Share = tenant.top.top
        line = share.only_line or share.top
        entry: Entry = line.heap[0]
        return entry

    def _alone(self) -> Entry | None:
        """The entry that is next while only one line is listed: no rank decides anything then, and what is listed with
        an old one is corrected when there are more."""
        node: RankNode = self._order
        for _ in LEVELS:
            heap = node.heap
            if len(heap) != 1 or heap[0][1].home is not node:
                return None
            node = heap[0][1]
        line = cast("Line", node)
        if line.share.pool.until is not None or line.pool is not None or not line.heap:
            return None
        entry: Entry = line.heap[0]
        return None if entry.is_over else entry

    def served(self, entry: Entry) -> None:
        """The entry got a place: take it out and charge its flows."""
        assert entry.line is not None
        run = entry.line.run
        tenant = run.tenant
        self._now_tenant = max(self._now_tenant, tenant.tag)
        tenant.now_run = max(tenant.now_run, run.tag)
        tenant.tag += 1.0 / tenant.weight
        run.tag += 1.0
        self.drop(entry)
        while run.watch and run.watch[0][0] < run.tag:
            pool = heappop(run.watch)[1]
            del run.watched[pool]
            if pool.guard is not None and pool.guard.run is run:
                pool.guard = None
                self._show_next(pool)

    def drop(self, entry: Entry) -> None:
        """The entry needs no place: take it out, uncharged."""
        line = entry.line
        assert line is not None
        assert line.heap[0] is entry, "only the entry that `next` gave may be taken out"
        if not entry.is_over:
            self.forget(entry.run_id, entry.task)
        self._pop(line)
        if not line.heap:
            self._end_line(line)

    def _pop(self, line: Line) -> None:
        """Take the first entry out of a line; the next one of its block takes its place."""
        entry: Entry = line.heap[0]
        block = entry.block
        following = None if block is None else block.take()
        if block is None or following is None:
            heappop(line.heap)
        else:
            heapreplace(line.heap, following)
            self._blocks.note_left(block)
            self._index(following)
        self._left(entry)

    # -- sleeping -----------------------------------------------------------------------------

    def sleep(self, entry: Entry, until: Hashable) -> None:
        """No task of this demand has a place until `wake(until)`."""
        self._put_to_sleep(self._pools[entry.demand], until)

    def lock(self, entry: Entry, until: Hashable) -> None:
        """The key of this task is taken until `wake(until)`."""
        assert entry.line is not None
        assert entry.line.pool is not None, "only a task with a key waits for one"
        self._put_to_sleep(entry.line.pool, until)

    def wake(self, until: Hashable) -> None:
        """Something happened that may give those that sleep on it a place."""
        for pool in self._asleep.pop(until, ()):
            pool.until = None
            self._show_next(pool)

    # -- looking ------------------------------------------------------------------------------

    @property
    def has_candidates(self) -> bool:
        """Whether `next` may have an entry: one was queued or woken since it had none."""
        return bool(self._order.heap)

    @property
    def has_sleepers(self) -> bool:
        """Whether some demand has no place, or some key is taken."""
        return bool(self._asleep)

    def waiting_of(self, tenant: str) -> tuple[int, int]:
        """How many tasks of a tenant wait, and of how many runs."""
        return (0, 0) if (flow := self._tenants.get(tenant)) is None else (flow.waiting, flow.runs)

    def sleeping_demands(self) -> list[Demand]:
        """The demands that have no place."""
        return [demand for demand, pool in self._pools.items() if pool.until is not None]

    def first_of_runs(self, demand: Demand, limit: int | None = None) -> list[Entry]:
        """The first waiting task of each run with a demand, of some of the runs if there are more than `limit`: those
        that speak for the others."""
        first: dict[RunId, Entry] = {}
        for line in islice(self._each_line(demand), limit):
            entry = self._first_live(line)
            if entry is not None:
                run_id = line.run.run_id
                first[run_id] = min(first.get(run_id, entry), entry)
        return list(first.values())

    def first_of_keys(self, limit: int) -> list[Entry]:
        """The first task of each run that waits for a concurrency key, `limit` at the most."""
        asleep = (
            pool for pools in self._asleep.values() for pool in pools if pool.lock is not None
        )
        lines = islice((line for pool in asleep for line in pool.members.values()), limit)
        return [entry for line in lines if (entry := self._first_live(line)) is not None]

    def _first_live(self, line: Line) -> Entry | None:
        # The last one stays: with it the line would have to be taken out.
        while line.heap[0].is_over and (len(line.heap) > 1 or _is_followed(line.heap[0])):
            self._pop(line)
        entry: Entry = line.heap[0]
        return None if entry.is_over else entry

    def demands(self) -> list[Demand]:
        """The demands that somebody may wait with."""
        return list(self._pools)

    def waiting_with(self, demand: Demand) -> list[Entry]:
        """All waiting tasks of one demand, oldest first."""
        heads = [entry for line in self._each_line(demand) for entry in line.heap]
        entries = [entry for entry in heads if not entry.is_over]
        for head in heads:
            entries += head.block or ()
        return sorted(entries, key=lambda entry: entry.ticket)

    def sticky_to(self, tenant: str, key: str) -> list[tuple[RunId, int]]:
        """The run and place of every queued task that must go where its affinity key is, also of those with a
        delay."""
        return list(self._sticky.get((tenant, key), ()))

    def find(self, run_id: RunId, task: int) -> Entry | None:
        """The entry of a task, if it is queued. One that is in a block has it only for who asks."""
        of_run = self._entries.get(run_id)
        entry = None if of_run is None else of_run.get(task)
        if entry is None:
            block = self._blocks.find(run_id, task)
            entry = None if block is None else block.entry(task)
        return entry

    def _lines_of(self, demand: Demand) -> list[Line]:
        return list(self._each_line(demand))

    def _each_line(self, demand: Demand) -> Iterator[Line]:
        pool = self._pools.get(demand)
        if pool is None:
            return
        for share in pool.members.values():
            if share.plain is not None:
                yield share.plain
        for lock in pool.locks.values():
            yield from lock.members.values()

    # -- taking in ----------------------------------------------------------------------------

    def _admit(self, entry: Entry) -> None:
        tenant = self._tenant(entry.tenant)
        run = self._runs.get(entry.run_id)
        if run is None:
            run = self._runs[entry.run_id] = RunFlow(entry.run_id, tenant)
            run.tag = tenant.now_run
            tenant.runs += 1
        if tenant.waiting == 0:
            tenant.tag = max(tenant.tag, self._now_tenant)
        tenant.waiting += 1
        run.waiting += 1
        line = entry.line = self._line_of(run, entry)
        heappush(line.heap, entry)
        if line.heap[0] is entry:
            self._list_line(line, (entry.rank, entry.ticket))

    def _line_of(self, run: RunFlow, entry: Entry) -> Line:
        pool = self._pools.get(entry.demand)
        if pool is None:
            pool = self._pools[entry.demand] = Pool(entry.demand)
        entry.demand = pool.demand  # one object for all tasks that have the same
        share = pool.members.get(run.run_id)
        if share is None:
            share = pool.members[run.run_id] = Share(run, pool)
        if entry.lock is None:
            if share.plain is None:
                share.plain = Line(share, None)
                share.count += 1
            return share.plain
        lock = pool.locks.get(entry.lock)
        if lock is None:
            lock = pool.locks[entry.lock] = Pool(entry.demand, entry.lock)
        line: Line | None = lock.members.get(run.run_id)
        if line is None:
            line = lock.members[run.run_id] = Line(share, lock)
            share.count += 1
        return line

    def _list_line(self, line: Line, rank: Rank) -> None:
        """The line has something to serve: list it, and all above it."""
        pool = line.pool
        if pool is not None and (pool.until is not None or line.home is pool):
            pool.put(line, (line.run.tag, *rank))
            return
        line.share.put(line, rank)
        self._list_share(line.share, rank)

    def _list_share(self, share: Share, rank: Rank) -> None:
        run, pool = share.run, share.pool
        of_run = (run.tag, *rank)
        if pool.until is not None or share.home is pool:
            pool.put(share, of_run)
            return
        run.put(share, rank)
        run.tenant.put(run, of_run)
        self._order.put(run.tenant, (run.tenant.tag, *of_run))

    # -- ranks ----------------------------------------------------------------------------------

    def _rank_of_tenant(self, tenant: TenantFlow) -> Rank | None:
        self.looks += 1
        run = tenant.first(self._rank_of_run)
        return None if run is None else (tenant.tag, *run.rank)

    def _rank_of_run(self, run: RunFlow) -> Rank | None:
        self.looks += 1
        share = run.first(self._rank_of_share)
        return None if share is None else (run.tag, *share.rank)

    def _rank_of_share(self, share: Share) -> Rank | None:
        """Also hides it, if its demand sleeps."""
        self.looks += 1
        pool = share.pool
        rank = self._rank_in(share)
        if rank is None:
            self._give_way(pool, share)
        elif pool.until is not None:
            pool.put(share, (share.run.tag, *rank))
            return None
        return rank

    def _rank_in(self, share: Share) -> Rank | None:
        """The rank of its first line."""
        only = share.only_line
        if only is not None:
            return self._head(only)
        line = share.first(self._rank_of_line)
        return None if line is None else line.rank

    def _rank_of_line(self, line: Line) -> Rank | None:
        """Also hides it, if its key is taken."""
        self.looks += 1
        rank = self._head(line)
        if rank is not None and line.pool is not None and line.pool.until is not None:
            line.pool.put(line, (line.run.tag, *rank))
            return None
        return rank

    def _rank_of_hidden(self, one: Share | Line) -> Rank | None:
        self.looks += 1
        rank = self._head(one) if isinstance(one, Line) else self._rank_in(one)
        return None if rank is None else (one.run.tag, *rank)

    def _head(self, line: Line) -> Rank | None:
        """The rank of its first live entry; drops those before it, and the line with its last."""
        heap = line.heap
        while heap:
            entry = heap[0]
            if not entry.is_over:
                return (entry.rank, entry.ticket)
            self._pop(line)
            if not heap:
                self._end_line(line)
        return None

    # -- hiding and showing -----------------------------------------------------------------------

    def _put_to_sleep(self, pool: Pool, until: Hashable) -> None:
        assert pool.until is None, "what was met is awake"
        pool.until = until
        pool.guard = None
        self._asleep.setdefault(until, {})[pool] = None

    def _show_next(self, pool: Pool) -> None:
        """Show the hidden member that is first; it guards those that come after it."""
        if pool.until is not None or pool.guard is not None:
            return
        one = pool.first(self._rank_of_hidden)
        if one is None:
            return
        one.home = None
        pool.guard = one
        if isinstance(one, Line):
            self._list_line(one, one.rank[1:])
        else:
            self._list_share(one, one.rank[1:])
        following = pool.first(self._rank_of_hidden)
        if following is not None and pool not in one.run.watched:
            one.run.watched[pool] = None
            heappush(one.run.watch, (following.rank[0], pool))

    def _give_way(self, pool: Pool, one: Share | Line) -> None:
        if pool.guard is one:
            pool.guard = None
            self._show_next(pool)

    # -- leaving ----------------------------------------------------------------------------------

    def _left(self, entry: Entry) -> None:
        assert entry.line is not None
        run = entry.line.run
        run.tenant.waiting -= 1
        run.waiting -= 1
        if run.waiting == 0:
            # Its tag is not worth remembering: coming back it starts at the present time anyway.
            del self._runs[run.run_id]
            run.tenant.runs -= 1

    def _end_line(self, line: Line) -> None:
        """Its last entry has left."""
        share = line.share
        share.count -= 1
        if line.pool is None:
            share.plain = None
        else:
            self._leave(line.pool, line)
        if share.count == 0:
            self._leave(share.pool, share)

    def _leave(self, pool: Pool, one: Share | Line) -> None:
        del pool.members[one.run.run_id]
        one.home = None
        if pool.members:
            self._give_way(pool, one)
            return
        if pool.until is not None:
            del self._asleep[pool.until][pool]
            if not self._asleep[pool.until]:
                del self._asleep[pool.until]
        if pool.lock is None:
            del self._pools[pool.demand]
        else:
            del self._pools[pool.demand].locks[pool.lock]

    def _tenant(self, name: str) -> TenantFlow:
        if name not in self._tenants:
            self._tenants[name] = TenantFlow(name)
        return self._tenants[name]

    def check(self) -> None:
        """Assert that counts and indexes agree."""
        waiting: dict[RunId, int] = {}
        for demand, pool in self._pools.items():
            for one in (pool, *pool.locks.values()):
                assert one.members, f"an empty pool was kept: {demand}"
                assert (one.until is not None) == (one in self._asleep.get(one.until, ()))
            for line in self._lines_of(demand):
                assert line.heap, f"an empty line was kept: {demand}"
                run_id = line.run.run_id
                assert line.run is self._runs[run_id]
                waiting[run_id] = waiting.get(run_id, 0) + len(line.heap)
                for entry in line.heap:
                    waiting[run_id] += 0 if entry.block is None else entry.block.left
                    assert entry.is_over == (self.find(run_id, entry.task) is not entry)
            assert len(self._lines_of(demand)) == sum(one.count for one in pool.members.values())
        assert waiting == {run_id: run.waiting for run_id, run in self._runs.items()}
        assert sum(one.runs for one in self._tenants.values()) == len(self._runs)
        assert all(self._asleep.values()) and all(self._entries.values()), "an empty list was kept"
        assert self._count == sum(map(len, self._entries.values()))
        self._blocks.check()
        entries = (entry for of_run in self._entries.values() for entry in of_run.values())
        blocks = ((block.demand, block.left) for block in self._blocks)
        self.depths.check((*((entry.demand, 1) for entry in entries), *blocks))


def _is_followed(entry: Entry) -> bool:
    return entry.block is not None and entry.block.left > 0
