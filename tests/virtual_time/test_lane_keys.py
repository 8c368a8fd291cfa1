"""One idempotency key makes one run, whichever lanes are asked at the same time, in worlds of two or three lanes (I44);
and what repeats a run is decided in its lane (I51).

What decides is the product's: `Runs.submit`, `LaneRules`, `LaneTending`. Imitated are the engine, as far as it knows
keys and commits in its own time, and the store, by the meaning of its statements, which are tested in
`tests/conformance/store/test_shards.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, ReservedKey
from astraflow.core.engine.commands import SubmitRun
from astraflow.core.engine.lanes import TenantLanes
from astraflow.core.ids import NodeId, RunId
from astraflow.core.workflow.plan import Plan, PlanNode, ResourceRefValue
from astraflow.observe.request_ids import begin_request
from astraflow.scheduler import runs
from astraflow.scheduler.current import Current
from astraflow.scheduler.lane_rules import LANE, LaneRules
from astraflow.scheduler.lane_tending import LaneTending
from astraflow.scheduler.plans import Planned
from astraflow.scheduler.run_traces import RunTraces
from astraflow.scheduler.runs import PreparedRun, Runs, Submission
from tests.conformance.store.samples import PLAN
from tests.sim.loop import LoopClock, VirtualLoop, run_virtual

SEEDS: Final = 250
TENANT: Final = "acme"
KEYS: Final = ("k0", "k1", "k2")
FAULTS_S: Final = 4.0
"""So long things fail."""
END_S: Final = 60.0


def _node(**of: Any) -> PlanNode:
    return PlanNode(
        node_id=NodeId("n"), type="t", label="n", package_name="p", package_version="1.0.0", **of
    )


def _plan(node: PlanNode) -> Plan:
    return Plan(workflow_id="w", nodes=(node,), parents=((),), children=((),))


PLANS: Final = {
    b"any": _plan(_node()),
    b"home": _plan(_node(concurrency_key="c")),
    b"resource": _plan(_node(resource_refs=(ResourceRefValue("x"),))),
}


class Rows:
    """The store: what `StoredCluster` and `Store` are asked here. Each statement is done at one moment."""

    def __init__(self, rng: Random, clock: LoopClock) -> None:
        self._rng = rng
        self._clock = clock
        self.lanes = [LaneSeen(HOME_LANE, 0)]
        self.keys: dict[str, tuple[ReservedKey, int]] = {}
        self.submissions: dict[str, tuple[ReservedKey, RunId, int]] = {}
        self.runs: list[tuple[str, RunId]] = []
        """Every run that was committed, with its key."""
        self.lanes_of_runs: dict[RunId, int] = {}
        self.repeats: list[tuple[RunId, RunId]] = []
        """Runs that repeat others, and which."""
        self.lost: set[tuple[str, str | None]] = set()
        """Keys and bodies of what was accepted and never committed."""
        self.moved = 0

    async def delay(self) -> None:
        await asyncio.sleep(self._rng.choice((0.0, 0.001, 0.02, 0.1)))

    def commit(self, lane: int, asked: list[SubmitRun]) -> None:
        for one in asked:
            assert one.idempotency_key is not None and one.fingerprint is not None
            owned = ReservedKey(lane, one.fingerprint)
            self.runs.append((one.idempotency_key, one.run_id))
            self.lanes_of_runs[one.run_id] = lane
            if one.rerun_of is not None:
                self.repeats.append((one.run_id, RunId(one.rerun_of)))
            self.submissions[one.idempotency_key] = owned, one.run_id, self._clock.wall_ms()

    def lose(self, asked: list[SubmitRun]) -> None:
        self.lost |= {(str(one.idempotency_key), one.fingerprint) for one in asked}

    async def find_key(self, tenant: str, key: str, cutoff: int) -> ReservedKey | None:
        await self.delay()
        found = self.reserved(key, cutoff) or self.submitted(key, cutoff)
        await self.delay()
        return found

    def reserved(self, key: str, cutoff: int) -> ReservedKey | None:
        found = self.keys.get(key)
        return found[0] if found is not None and found[1] >= cutoff else None

    def submitted(self, key: str, cutoff: int) -> ReservedKey | None:
        found = self.submissions.get(key)
        return found[0] if found is not None and found[2] >= cutoff else None

    async def reserve_key(
        self, tenant: str, key: str, wanted: ReservedKey, now: int, cutoff: int
    ) -> ReservedKey:
        await self.delay()
        found = self.reserved(key, cutoff)
        if found is None:
            self.keys[key] = wanted, now
        await self.delay()
        return found or wanted

    async def move_key(self, tenant: str, key: str, lane: int, to: int) -> None:
        await self.delay()
        found = self.keys.get(key)
        if found is not None and found[0].lane == lane:
            self.keys[key] = found[0]._replace(lane=to), found[1]
            self.moved += 1
        await self.delay()

    async def lanes_of_resource(self, tenant: str, resource_id: str) -> list[int]:
        await self.delay()
        return [1] if any(one.lane == 1 and one.state == "open" for one in self.lanes) else []

    async def open_lanes(self, tenant: str) -> None:
        await self.delay()
        self.lanes = [LaneSeen(one.lane, one.shard) for one in self.lanes]

    async def wanted_packages(self) -> list[Any]:
        return []

    async def find_submission(self, tenant: str, key: str) -> Any:
        await self.delay()
        found = self.submissions.get(key)
        await asyncio.sleep(self._rng.choice((0.0, 0.05, 2.0)))
        if found is None:
            return None
        return SimpleNamespace(
            fingerprint=found[0].fingerprint, run_id=found[1], created_at=found[2]
        )

    async def find_run(self, tenant: str, run_id: RunId) -> Any:
        assert any(run_id == one for _, one in self.runs), "it is told of when it is stored"
        return SimpleNamespace(status="queued", created_at=0)


class Engine:
    """What an engine knows of keys: all of its lane, or only some and that it may have forgotten others."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self.known: dict[str, tuple[str | None, RunId]] = {}
        if not lane.world.forgets:
            for key, (owned, run_id, _) in lane.world.rows.submissions.items():
                if owned.lane == lane.number:
                    self.known[key] = owned.fingerprint, run_id
        self.ask = self

    def may_have_forgotten(self, tenant: str, key: str, now: float) -> bool:
        return self._lane.world.forgets and key not in self.known

    def remember_submission(
        self, tenant: str, key: str, fingerprint: str | None, run_id: RunId, age_s: float
    ) -> None:
        self.known[key] = fingerprint, run_id

    def knows_key(self, tenant: str, key: str, now: float) -> bool:
        return key in self.known

    def has_packages(self, tenant: str, packages: object) -> bool:
        return self._lane.has_packages

    def wanted(self) -> list[Any]:
        return []


class Writer:
    """Accepts at once, commits in its own time, and may end in the middle."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self.engine = Engine(lane)
        self._asked: list[SubmitRun] = []
        self._answers: list[tuple[asyncio.Future[RunId], RunId]] = []
        self._wake = asyncio.Event()
        self._is_over = False
        self._committing: list[SubmitRun] = []
        self.task = asyncio.create_task(self._run())

    async def submit(self, request: Callable[[object], SubmitRun]) -> tuple[RunId, int]:
        self._check_serving()
        rng = self._lane.world.rng
        if self._lane.world.is_faulty and rng.random() < 0.2:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, "full")
        answer: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()
        asked = request(answer)
        key = asked.idempotency_key
        assert key is not None
        fingerprint, run_id = self.engine.known.get(key, (asked.fingerprint, asked.run_id))
        if fingerprint != asked.fingerprint:
            raise errors.Conflict(errors.RUN_IDEMPOTENCY_CONFLICT, "another body")
        if key not in self.engine.known:
            self.engine.known[key] = fingerprint, run_id
            self._asked.append(asked)
        self._answers.append((answer, run_id))
        self._wake.set()
        return await answer, 0

    async def barrier(self) -> None:
        self._check_serving()
        passed: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()
        self._answers.append((passed, RunId("")))
        self._wake.set()
        await passed

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            answers, self._answers = self._answers, []
            self._committing, self._asked = self._asked, []
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(self._lane.world.rng.choice((0.0, 0.01, 0.3, 1.5)))
            if self._is_over:
                lost = [*self._committing, *self._asked]
                if self._lane.world.rng.random() < 0.5:  # nobody was told what became of it
                    self._lane.world.rows.commit(self._lane.number, self._committing)
                    lost = self._asked
                self._lane.world.rows.lose(lost)
                for answer, _ in (*answers, *self._answers):
                    if not answer.done():
                        answer.set_exception(_not_serving())
                return
            self._lane.world.rows.commit(self._lane.number, self._committing)
            for answer, run_id in answers:
                if not answer.done():
                    answer.set_result(run_id)

    def _check_serving(self) -> None:
        if self._is_over:
            raise _not_serving()

    async def end(self) -> None:
        """What was under way is committed or not before anybody else begins: the next claim decides that."""
        self._is_over = True
        self._wake.set()
        await asyncio.sleep(0)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def set_lanes(self, tenant: str, lanes: object) -> None:
        pass

    def send_away(self, is_gone: object) -> None:
        pass


def _not_serving() -> errors.Unavailable:
    return errors.Unavailable(errors.SCHEDULER_NOT_READY, "restarting")


class LaneRuns(Runs):
    """The definition of a submission is the name of its plan."""

    async def prepare(self, submission: Submission) -> PreparedRun:
        assert submission.definition is not None
        planned = Planned(PLANS[submission.definition], PLAN, "w")
        return PreparedRun(planned, None, submission.inputs, {})


class Lane:
    """A lane of the tenant, with whoever owns its shard. `view`: the lanes as its process saw them last."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.has_packages = True
        self.view = list(world.rows.lanes)
        self._parts = SimpleNamespace(
            store=world.rows, cluster=world.rows, clock=world.clock, lanes=self,
            ids=SimpleNamespace(new=lambda: f"run-{next(world.numbers)}"), traces=RunTraces(),
            base_url="", engine=SimpleNamespace(remember_submissions_s=86_400),
        )  # fmt: skip
        self._current = Current()
        self._tending: asyncio.Task[None] | None = None
        unused: Any = None
        parts: Any = self._parts
        self.runs = LaneRuns(parts, self._current, unused, unused, unused, unused, unused)
        self._looking = asyncio.create_task(self._look())
        self._writer: Writer | None = None
        self.start()

    def start(self) -> None:
        self._writer = Writer(self)
        serving: Any = SimpleNamespace(
            is_full=False, engine=self._writer.engine, writer=self._writer
        )
        self._current.begin(serving)
        if self.number == HOME_LANE:
            given: tuple[Any, ...] = (self._parts, self.world.rows, self._writer, None)
            self._tending = asyncio.create_task(LaneTending(*given).run())

    async def stop(self) -> None:
        self._current.end()
        writer, self._writer = self._writer, None
        if writer is None:
            return
        await writer.end()
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)

    async def crash(self) -> None:
        if self._writer is None:
            return
        await self.stop()
        await asyncio.sleep(self.world.rng.uniform(0, 1))
        self.start()

    async def close(self) -> None:
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        await self.stop()

    async def _look(self) -> None:
        while True:
            await self.world.rows.delay()
            seen = list(self.world.rows.lanes)
            await self.world.rows.delay()
            self.view = seen
            await asyncio.sleep(0.25)

    # As `ShardLanes`.

    def lane_of(self, tenant: str) -> int | None:
        return next((one.lane for one in self.view if one.lane == self.number), None)

    def several(self) -> Mapping[str, TenantLanes]:
        return {TENANT: TenantLanes(self.number)} if len(self.view) > 1 else {}

    def opening(self) -> list[str]:
        is_new = any(one.state == "opening" for one in self.view)
        return [TENANT] if self.number == HOME_LANE and is_new else []


class Client:
    """Wants one run of a key, and asks until it is told of it."""

    def __init__(self, world: World, key: str, body: bytes, repeated: RunId | None = None) -> None:
        """`repeated`: the run that it wants once more."""
        self.key = key
        self.body = body
        self.repeated = repeated
        self.run_id: RunId | None = None
        self.has_conflict = False
        self._world = world
        self.task = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        begin_request(())
        rng = self._world.rng
        named: int | None = None
        for _ in range(500):
            lane = self._lane() if named is None else named
            named = None
            await self._world.rows.delay()
            try:
                told = await self._ask_lane(lane)
            except errors.Conflict as error:
                assert error.code is errors.RUN_IDEMPOTENCY_CONFLICT, error
                self.has_conflict = True
                return
            except errors.Refused as error:
                assert error.code is errors.SHARD_MOVED, error
                named = (error.detail or {})[LANE]
                continue
            except errors.Unavailable:
                await asyncio.sleep(rng.uniform(0, 0.5))
                continue
            if self._world.is_faulty and rng.random() < 0.2:
                continue  # the response was lost
            self.run_id = told
            return
        raise AssertionError(f"I44: nobody answers {self.key}")

    def _lane(self) -> int:
        """As `LaneFinder` finds it."""
        if self.repeated is None:
            return self._world.guess()
        return self._world.rows.lanes_of_runs[self.repeated]

    async def _ask_lane(self, number: int) -> RunId:
        lane = self._world.lanes[number]
        if lane.lane_of(TENANT) is None:  # as a node refuses that has not seen the lane
            raise _not_serving()
        asked = Submission(
            tenant=TENANT, definition=self.body, idempotency_key=self.key,
            fingerprint=self.body.decode(), rerun_of=self.repeated,
        )  # fmt: skip
        return (await lane.runs.submit(asked)).run_id


class World:
    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.rng = Random(seed)
        self.clock = LoopClock(loop)
        self.numbers = count(1)
        self.rows = Rows(self.rng, self.clock)
        self.is_faulty = True
        self.forgets = self.rng.random() < 0.6
        self.count = self.rng.choice((2, 3))
        self.lanes = [Lane(self, number) for number in range(self.count)]
        self.clients: list[Client] = []

    def guess(self) -> int:
        """A lane that takes runs, as a node saw it a moment ago or sees it now."""
        seen = self.rng.choice((self.rows.lanes, self.lanes[self.rng.randrange(self.count)].view))
        return self.rng.choice([one.lane for one in seen if one.state == "open"])

    async def fail(self) -> None:
        while self.is_faulty:
            await asyncio.sleep(self.rng.uniform(0, 0.8))
            lane = self.rng.choice(self.lanes)
            if self.rng.random() < 0.4:
                await lane.crash()
            else:
                lane.has_packages = not lane.has_packages
        for lane in self.lanes:
            lane.has_packages = True

    async def add_lanes(self) -> None:
        await asyncio.sleep(self.rng.choice((0.0, self.rng.uniform(0, FAULTS_S / 2))))
        added = [LaneSeen(number, number, "opening") for number in range(1, self.count)]
        self.rows.lanes = [*self.rows.lanes, *added]

    async def come(self) -> None:
        bodies = {key: self.rng.choice(list(PLANS)) for key in KEYS}
        for _ in range(8):
            key = self.rng.choice(KEYS)
            for _ in range(self.rng.choice((1, 2, 4))):
                is_first = self.rng.random() < 0.85
                body = bodies[key] if is_first else self.rng.choice(list(PLANS))
                self.clients.append(Client(self, key, body))
            await asyncio.sleep(self.rng.choice((0.0, 0.05, 0.5)))

    async def repeat(self) -> None:
        """Somebody wants runs once more, soon after they were accepted."""
        for number in range(3):
            await asyncio.sleep(self.rng.uniform(0, FAULTS_S / 3))
            if self.rows.runs:
                _, run_id = self.rng.choice(self.rows.runs)
                body = self.rng.choice(list(PLANS))
                self.clients.append(Client(self, f"again-{number}", body, run_id))

    async def run(self) -> None:
        failing = asyncio.create_task(self.fail())
        coming = (self.come(), self.repeat())
        await asyncio.gather(self.add_lanes(), *coming, asyncio.sleep(FAULTS_S))
        self.is_faulty = False
        await failing
        asked = [one.task for one in self.clients]
        _, left = await asyncio.wait(asked, timeout=END_S)
        assert not left, "I44: clients are not answered"
        await asyncio.gather(*asked)
        self.check()
        for lane in self.lanes:
            await lane.close()

    def check(self) -> None:
        made = dict(self.rows.runs)
        assert len(made) == len(self.rows.runs), f"I44: a key has two runs: {self.rows.runs}"
        lanes = self.rows.lanes_of_runs
        for run_id, repeated in self.rows.repeats:
            where = f"{lanes[run_id]} repeats one of {lanes[repeated]}"
            assert lanes[run_id] == lanes[repeated], f"I51: a run of lane {where}"
        for client in self.clients:
            assert client.key in made, "I44: everybody was refused, and there is no run"
            of_key = self.rows.submissions[client.key][0].fingerprint
            if of_key != client.body.decode():
                assert client.has_conflict, "I44: another body has got the run of the key"
            elif client.has_conflict:  # only with what was accepted and then lost in a crash
                lost = {body for key, body in self.rows.lost if key == client.key}
                assert lost - {of_key}, "I44: who has sent the body of the run is refused"
            else:
                assert client.run_id == made[client.key], "I44: not the run of the key"


def run_world(seed: int) -> World:
    async def main(loop: VirtualLoop) -> World:
        world = World(seed, loop)
        await world.run()
        return world

    return run_virtual(main)


def test_one_key_makes_one_run_whichever_lanes_are_asked() -> None:
    worlds = [run_world(seed) for seed in range(SEEDS)]
    assert sum(world.rows.moved for world in worlds) > 10, "keys go home"
    repeats = [one for world in worlds for one, _ in world.rows.repeats]
    assert len(repeats) > 100
    others = {lane for world in worlds for (lane, _), _, _ in world.rows.submissions.values()}
    assert others == {0, 1, 2}
    assert any(client.has_conflict for world in worlds for client in world.clients)


async def _overwrite(
    self: Rows, tenant: str, key: str, wanted: ReservedKey, now: int, cutoff: int
) -> ReservedKey:
    await self.delay()
    self.keys[key] = wanted, now
    await self.delay()
    return wanted


async def _pass_at_once(self: Writer) -> None:
    """A lane is opened while the home still commits what it accepted without knowing of it."""


def _see_reserved_only(self: Rows, key: str, cutoff: int) -> ReservedKey | None:
    return None


async def _know_nothing(self: Runs, submission: Submission) -> bool:
    """A key is moved, or reserved, although its run was accepted here."""
    return False


async def _by_its_plan(self: Runs, submission: Submission, prepared: PreparedRun) -> Any:
    """What repeats a run is sent where a new one would go."""
    fresh = msgspec.structs.replace(submission, rerun_of=None)
    made = await _submit_to_lane(self, fresh, prepared)
    if submission.rerun_of is not None:
        rows: Any = self._store
        rows.repeats.append((made.run_id, submission.rerun_of))
    return made


_submit_to_lane: Final = Runs._submit_to_lane


class _Unaware:
    """The rules without the knowledge that lanes were added in the middle."""

    def __init__(self, parts: Any, current: Any) -> None:
        rules = LaneRules(parts, current)
        self.reserved = rules.reserved
        self.right_lane = rules.right_lane

    def has_several(self, tenant: str) -> bool:
        return False


PLANTED: Final[dict[str, tuple[Any, Any]]] = {
    "a key that is reserved is overwritten": ((Rows, "reserve_key"), _overwrite),
    "a lane opens without a barrier of the home": ((Writer, "barrier"), _pass_at_once),
    "keys from before the lanes are not seen": ((Rows, "submitted"), _see_reserved_only),
    "the lane is not asked for the run of a key": ((Runs, "_is_known"), _know_nothing),
    "what repeats a run goes where a new one would go": ((Runs, "_submit_to_lane"), _by_its_plan),
    "lanes that were added in the middle are not noticed": ((runs, "LaneRules"), _Unaware),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (owner, name), planted = PLANTED[fault]
    monkeypatch.setattr(owner, name, planted)
    for seed in range(SEEDS):
        try:
            run_world(seed)
        except AssertionError as error:
            assert str(error).startswith(("I44", "I51"))
            return
    pytest.fail(f"no world shows it: {fault}")
