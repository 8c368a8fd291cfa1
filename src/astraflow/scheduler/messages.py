"""Signals and decisions, as the API gives them to runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.contract.messages import ApprovalDecision, OpenApproval, SignalAddress
from astraflow.core.engine.commands import DecideApproval, SendSignal
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import path_of
from astraflow.core.runs.signal_addresses import SignalAddresses, is_token_of, open_signals
from astraflow.core.runs.states import Parked
from astraflow.core.timestamps import iso
from astraflow.core.triggers.signatures import is_signed
from astraflow.core.workflow.definition import Signal
from astraflow.scheduler.current import Current
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.secret_vault import SecretVault

_log: Final = logging.getLogger(__name__)


class AddressedSignal(msgspec.Struct, frozen=True):
    """A request to the address of a signal. The names of headers are in lower case; `key`: what names the request."""

    body: bytes
    payload: bytes
    headers: Mapping[str, str]
    key: str | None


class RunMessages:
    """What people and other systems tell runs."""

    def __init__(self, current: Current, reader: RunReader, vault: SecretVault) -> None:
        self._current = current
        self._reader = reader
        self._vault = vault

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

    def open_run(self, run_id: RunId, name: str, token: str) -> RunRecord:
        """The run that waits for a signal at this address. Raises: NotFound: there is none, or not any more."""
        run = self._current.engine.ask.run(run_id)
        if run is None or run.is_terminal or not is_token_of(run, name, token):
            raise errors.NotFound(errors.SIGNAL_NO_ADDRESS, errors.SIGNAL_NO_ADDRESS.says)
        return run

    async def deliver(self, run: RunRecord, name: str, message: AddressedSignal) -> None:
        """Take what was sent to the address of a signal. Sent again with the same key it changes nothing.

        Raises: NotFound: the wait is over; Refused: it is not signed; and what `signal` raises.
        """
        signal_id = None if message.key is None else f"address {name} {message.key}"
        waiting = open_signals(run, name)
        if not waiting and signal_id not in run.signal_ids:
            raise errors.NotFound(errors.SIGNAL_NO_ADDRESS, errors.SIGNAL_NO_ADDRESS.says)
        if waiting and not any(self._is_signed(run.tenant, one, message) for one in waiting):
            raise errors.Refused(errors.TRIGGER_SIGNATURE, errors.TRIGGER_SIGNATURE.says)
        if waiting:
            by = f"signal:{name}"
            await self.signal(run.tenant, run.run_id, name, message.payload, signal_id, by)

    def _is_signed(self, tenant: str, signal: Signal, message: AddressedSignal) -> bool:
        if signal.secret_ref is None:
            return True
        try:
            secret = self._vault.reveal_key(tenant, signal.secret_ref)
        except errors.AstraflowError as error:
            # Who asks learns nothing of the secrets of the tenant.
            _log.warning(
                "a signal cannot be checked: %s", error.message, extra={"code": error.code.code}
            )
            return False
        return is_signed(secret, message.body, message.headers)

    async def addresses(self, tenant: str, run_id: RunId) -> list[SignalAddress]:
        """Those of an active run. Raises: NotFound."""
        run = self._current.engine.ask.run(run_id)
        if run is None or run.tenant != tenant:
            await self._reader.get_row(tenant, run_id)
            return []
        await self._current.writer.barrier()
        return [
            SignalAddress(name=name, url=url, open=bool(open_signals(run, name)))
            for name, url in SignalAddresses(run).items()
        ]

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
