"""What waiting tasks say for good: facts, and so events and lines of the timeline (P2).

Why a task waits can be read at any moment (`wait_reasons`) and costs nothing until somebody asks. A fact is written
where a person has something to do, and where a wait lasts:

1. What needs a worker, a package, a resource or more capacity than there is says so in the first round.
2. Waiting for a slot or a concurrency key is normal and passes: said by the tasks that stay first in their run for
   `say_lasting_after_s`. While a fan-out moves, its first task is another one in every round and nothing is written.
3. One task of a run speaks for all others with the same demand, and a round writes `SAID_AT_ONCE` facts at the most: a
   million waiting tasks cost the store nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.flows import Entry
from astraflow.core.engine.holds import hold_for_large
from astraflow.core.engine.packages import install_for, spread
from astraflow.core.engine.placing import may_be_placed, why_no_place
from astraflow.core.engine.view import View
from astraflow.core.engine.wait_reasons import Reasons
from astraflow.core.runs.commands import Wait
from astraflow.core.runs.facts import WaitReason

SAID_AT_ONCE = 100
"""How many waiting tasks say why in one round: enough for a person, bounded for the store."""
WATCHED = 1_000
"""So many tasks that are first in their run are watched for a wait that lasts."""


def record_wait_reasons(view: View) -> None:
    """Let tasks without a place say why."""
    view.placing.look_again()
    said = 0
    first: list[Entry] = []
    short: list[Demand] = []
    for demand in view.queue.sleeping_demands():
        waiting_for = _why_after_install(view, demand)
        if waiting_for.kind == "slot":
            spread(view, demand)
            waiting = view.queue.first_of_runs(demand, max(WATCHED - len(first), 1))
            first += waiting
            short += [demand] if waiting else []  # else all that waited were cancelled
        elif said < SAID_AT_ONCE:
            said += _say(view, demand, waiting_for, SAID_AT_ONCE - said)
    first += view.queue.first_of_keys(max(WATCHED - len(first), 0))
    hold_for_large(view, short)
    _say_lasting(view, first, SAID_AT_ONCE - said)


def _why_after_install(view: View, demand: Demand) -> WaitReason:
    waiting_for = why_no_place(view, demand)
    if waiting_for.kind != "package":
        return waiting_for
    # A worker that could install it may have come meanwhile.
    install_for(view, demand)
    return why_no_place(view, demand)


def _say(view: View, demand: Demand, waiting_for: WaitReason, limit: int) -> int:
    said = 0
    for entry in view.queue.first_of_runs(demand):
        if said >= limit:
            break
        run = view.runs.get(entry.run_id)
        if run is None or not may_be_placed(run, entry.task):
            continue
        if run.tasks[entry.task].waiting_for != waiting_for:
            view.decide(run, Wait(entry.task, waiting_for))
            said += 1
    return said


def _say_lasting(view: View, first: Iterable[Entry], limit: int) -> None:
    """What it says in detail changes with every worker that comes and goes: it is said again for another kind only."""
    reasons = Reasons(view)
    after_s = view.settings.say_lasting_after_s
    lasting = view.placing.lasting([(one.run_id, one.task) for one in first], view.now, after_s)
    for run_id, task in lasting:
        run = view.runs.get(run_id)
        if limit <= 0 or run is None or not may_be_placed(run, task):
            continue
        said = run.tasks[task].waiting_for
        reason = reasons.of(run, task)
        if reason is not None and (said is None or said.kind != reason.kind):
            lasts = WaitReason(reason.kind, reason.detail, held_by=reason.held_by)
            view.decide(run, Wait(task, lasts))
            limit -= 1
