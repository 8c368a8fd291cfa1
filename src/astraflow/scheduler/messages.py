"""Signals and decisions, as the API gives them to runs."""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.contract.messages import ApprovalDecision, OpenApproval
from astraflow.core.engine.commands import DecideApproval, SendSignal
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import path_of
from astraflow.core.runs.states import Parked
from astraflow.core.timestamps import iso
from astraflow.scheduler.current import Current
from astraflow.scheduler.run_reader import RunReader


class RunMessages:
    """What people and other systems tell runs."""

    def __init__(self, current: Current, reader: RunReader) -> None:
        self._current = current
        self._reader = reader

    async def signal(
        self, tenant: str, run_id: RunId, name: str, payload: bytes, signal_id: str | None, by: str
    ) -> None:
        """Store a message for the nodes that wait for it, now or later.

        Raises: NotFound: no such run; Conflict: it has ended, is being cancelled, or too many messages wait.
        """
        await self._tell(
            SendSignal(
                tenant=tenant,
                by=by,
                subject=run_id,
                run_id=run_id,
                name=name,
                payload=msgspec.Raw(payload),
                signal_id=signal_id,
            )
        )

    async def decide(
        self,
        tenant: str,
        run_id: RunId,
        node_id: str,
        decision: ApprovalDecision,
        *,
        role: str,
        by: str,
    ) -> None:
        """Take a person's decision.

        Raises: NotFound: no such run or node; Conflict: it has ended, or nobody is asked; Refused: another role is
        asked, or what was filled in does not fit.
        """
        await self._tell(
            DecideApproval(
                tenant=tenant,
                by=by,
                subject=f"{run_id}/{node_id}",
                run_id=run_id,
                node_id=NodeId(node_id),
                scope_path=decision.scope or None,
                approved=decision.approved,
                role=role,
                comment=decision.comment,
                values=decision.values,
            )
        )

    async def _tell(self, command: SendSignal | DecideApproval) -> None:
        try:
            self._current.execute(command)
        except errors.NotFound as error:
            if error.code is not errors.RUN_NOT_FOUND:
                raise
            row = await self._reader.get_row(command.tenant, command.run_id)
            message = f"the run has ended: {row.status}"
            raise errors.Conflict(
                errors.RUN_TERMINAL, message, detail={"status": row.status}
            ) from None
        await self._current.writer.barrier()

    async def open_approvals(
        self, tenant: str, after: tuple[str, int] | None, count: int
    ) -> tuple[list[OpenApproval], tuple[str, int] | None]:
        """A page of the nodes that wait for a person, by run and place; and the last place, if there are more."""
        found: list[tuple[tuple[str, int], OpenApproval]] = []
        for run in sorted(self._current.engine.ask.runs_of(tenant), key=lambda one: one.run_id):
            if after is None or run.run_id >= after[0]:
                found += [
                    (place, shown)
                    for place, shown in _open_in(run)
                    if after is None or place > after
                ]
            if len(found) > count:
                break
        await self._current.writer.barrier()
        page = found[:count]
        return [shown for _, shown in page], page[-1][0] if len(found) > count else None


def _open_in(run: RunRecord) -> list[tuple[tuple[str, int], OpenApproval]]:
    found = []
    for index in sorted(run.parked):
        task = run.tasks[index]
        state, step = task.state, task.node.control
        if not isinstance(state, Parked) or step is None or step.approval is None:
            continue
        reason = state.waiting_for
        shown = OpenApproval(
            run_id=run.run_id,
            node_id=task.node.node_id,
            scope_path=path_of(run, index),
            label=task.node.label,
            message=reason.detail,
            roles=list(step.approval.roles),
            since=None if task.started_at is None else iso(task.started_at),
            until=None if reason.until is None else iso(reason.until),
            form=None if step.approval.form is None else msgspec.json.decode(step.approval.form),
        )
        found.append(((str(run.run_id), index), shown))
    return found
