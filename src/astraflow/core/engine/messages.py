"""What people and other systems tell a run: signals and decisions."""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import DecideApproval, SendSignal
from astraflow.core.engine.operations import active_run
from astraflow.core.engine.view import View
from astraflow.core.runs.commands import Approve, ReceiveSignal
from astraflow.core.runs.controls import MAX_SIGNAL_BYTES, MAX_SIGNALS
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import find_task
from astraflow.core.runs.states import Parked
from astraflow.core.workflow.problems import DefinitionProblem, InvalidDocument
from astraflow.core.workflow.value_schemas import find_schema


def send_signal(view: View, command: SendSignal) -> None:
    """Keep a message for the nodes that wait for it, now or later.

    Raises: NotFound: no such active run; Conflict: the run is being cancelled, or too many messages wait.
    """
    run = active_run(view, command.tenant, command.run_id)
    if run.cancel is not None:
        raise errors.Conflict(errors.RUN_CANCELLING, "the run is being cancelled")
    kept = len(command.payload) + sum(len(one.payload) for one in run.signals.values())
    if len(run.signals) >= MAX_SIGNALS or kept > MAX_SIGNAL_BYTES:
        message = f"{len(run.signals)} signals of the run wait for a node that takes them"
        raise errors.Conflict(errors.RUN_SIGNALS_FULL, message)
    view.decide(run, ReceiveSignal(command.name, command.payload, command.by, command.signal_id))


def decide_approval(view: View, command: DecideApproval) -> None:
    """Take a person's decision.

    Raises: NotFound: no such active run or node; Refused: the node asks another role; Conflict: nobody is asked there;
    InvalidDocument: what was filled in does not fit the form.
    """
    run = active_run(view, command.tenant, command.run_id)
    task = find_task(run, command.node_id, command.scope_path)
    state = run.tasks[task].state
    if not isinstance(state, Parked) or state.waiting_for.kind != "approval":
        raise errors.Conflict(errors.APPROVAL_NOT_OPEN, errors.APPROVAL_NOT_OPEN.says)
    _check_decision(run, task, command)
    view.decide(run, Approve(task, command.approved, command.by, command.comment, command.values))


def _check_decision(run: RunRecord, task: int, command: DecideApproval) -> None:
    step = run.node_at(task).control
    assert step is not None
    assert step.approval is not None
    approval = step.approval
    if approval.roles and command.role not in (*approval.roles, "admin"):
        message = f"the node asks for a decision of: {', '.join(approval.roles)}"
        raise errors.Refused(errors.AUTH_FORBIDDEN, message)
    schema = None if approval.form is None else find_schema(approval.form)
    if schema is None or not command.approved:
        return
    found = schema.violations(msgspec.json.decode(command.values))
    if found:
        rows = [
            DefinitionProblem(f"/values{one.pointer}", errors.APPROVAL_FORM.code, one.message)
            for one in found
        ]
        raise InvalidDocument(errors.APPROVAL_FORM, rows)
