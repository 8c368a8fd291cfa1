"""A run of a definition, played to its end: each task that is queued is given the outcome that the test names."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from astraflow.core.dispatch.demand import bind_task
from astraflow.core.expressions import ExpressionError
from astraflow.core.runs.commands import Fail, LeaseTask, Report, RunCommand
from astraflow.core.runs.conditions import expression_failure
from astraflow.core.runs.consequences import EnqueueTask
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import Fact, TaskFailure
from astraflow.core.runs.projections import view_run
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import Plan
from tests.unit.plans import AT, start


class Played:
    """What became of a run. `outcomes`: by label, the result of a task or its failure; `{}` if none is named."""

    def __init__(
        self,
        plan: Plan,
        outcomes: Mapping[str, dict[str, Any] | TaskFailure] | None = None,
        **inputs: Any,
    ) -> None:
        self.outcomes = outcomes or {}
        self.facts: list[Fact] = []
        self.given: dict[str, Any] = {}
        self.waiting: list[int] = []
        decision = start(plan, inputs=msgspec.Raw(msgspec.json.encode(inputs)))
        self.run: RunRecord = decision.run
        self._take(decision)
        while self.waiting:
            self._run_one(self.waiting.pop(0))
        self.run.check()
        again = replay(plan, self.facts)
        again.check()
        assert view_run(again) == view_run(self.run), "the fold of its facts is another run"

    def _take(self, decision: Decision) -> None:
        self.facts += decision.facts
        self.waiting += [one.task for one in decision.consequences if isinstance(one, EnqueueTask)]

    def _decide(self, command: RunCommand) -> None:
        self._take(decide(self.run, command, AT, Random(1)))

    def _run_one(self, task: int) -> None:
        label = self.run.plan.nodes[task].label
        try:
            self.given[label] = msgspec.json.decode(bind_task(self.run, task)[0])
        except ExpressionError as error:
            self._decide(Fail(task, expression_failure(error)))
            return
        self._decide(LeaseTask(task, "w1", 1, 30_000))
        attempt = self.run.tasks[task].attempt
        outcome = self.outcomes.get(label, {})
        if isinstance(outcome, TaskFailure):
            self._decide(Report(task, attempt, "w1", "FAILED", error=outcome))
        else:
            result = msgspec.Raw(msgspec.json.encode(outcome))
            self._decide(Report(task, attempt, "w1", "SUCCEEDED", result))

    @property
    def states(self) -> dict[str, str]:
        """By label: the status, with the code of what was skipped or failed."""
        return {
            node.label or "": node.status
            if node.error is None
            else f"{node.status} {node.error.code}"
            for node in view_run(self.run).nodes
        }
