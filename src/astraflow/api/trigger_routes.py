"""Triggers of saved workflows: list, show, enable, disable, run now, their history."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, Header, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery, PageQuery
from astraflow.core.contract.runs import MAX_KEY_CHARS
from astraflow.core.contract.triggers import (
    NEXT_TIMES,
    HookAccepted,
    ListTriggerFires,
    ListTriggers,
    ListWorkflowTriggers,
    RunTrigger,
    Trigger,
    TriggerFire,
    TriggerFirePage,
    TriggerPage,
)
from astraflow.core.errors import Refused
from astraflow.core.security.policy import READ, START
from astraflow.core.timestamps import iso
from astraflow.core.triggers.history import FireEntry
from astraflow.core.triggers.record import TriggerKey, TriggerRecord
from astraflow.core.workflow.definition import CronTrigger
from astraflow.core.workflow.schedules import Schedule
from astraflow.core.workflow.trigger_rules import kind_of
from astraflow.scheduler.webhooks import address_of

TRIGGERS: Final = "/api/v1/triggers"
OF_WORKFLOW: Final = "/api/v1/workflows/{id}/triggers"
HOOKS: Final = "/api/v1/hooks"
_ONE: Final = f"{OF_WORKFLOW}/{{triggerId}}"
_KEY: Final = re.compile(rf"[!-~]{{1,{MAX_KEY_CHARS}}}", re.ASCII)
_KEY_HEADER: Final = Header(
    "Idempotency-Key",
    "A name for this request: sent again, it returns the same run.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]+$"},
)
_run: Final = msgspec.json.Decoder(RunTrigger)
ACCEPTED: Final = Reply("The run exists.", HookAccepted, headers={"Location": "Its path."})


class TriggerEndpoints(Endpoints):
    """The endpoints about triggers."""

    @route("GET", TRIGGERS, READ, "listTriggers", "list triggers of all workflows", tag="triggers",
           query=ListTriggers, replies=TriggerPage)  # fmt: skip
    async def list_triggers(self, request: Request[ListTriggers]) -> AsgiApp:
        return self._page(request, request.query.workflow_id or None)

    @route("GET", OF_WORKFLOW, READ, "listWorkflowTriggers", "list the triggers of a workflow",
           tag="triggers", query=ListWorkflowTriggers, replies=TriggerPage)  # fmt: skip
    async def list_of_workflow(self, request: Request[ListWorkflowTriggers]) -> AsgiApp:
        workflow_id = request.params["id"]
        await self._scheduler.workflows.get(request.tenant, workflow_id)
        return self._page(request, workflow_id)

    @route("GET", _ONE, READ, "getTrigger", "show a trigger", tag="triggers",
           replies=Trigger)  # fmt: skip
    async def show(self, request: Request[NoQuery]) -> AsgiApp:
        record = self._scheduler.triggers.table.get(_key_of(request))
        return json_response(self._view(request, record))

    @route("POST", f"{_ONE}/enable", START, "enableTrigger", "let a trigger start runs",
           tag="triggers", text="Times and events from before do not count.",
           replies=Trigger)  # fmt: skip
    async def enable(self, request: Request[NoQuery]) -> AsgiApp:
        return await self._switch(request, is_enabled=True)

    @route("POST", f"{_ONE}/disable", START, "disableTrigger", "keep a trigger from starting runs",
           tag="triggers", text="It can still be run by hand.", replies=Trigger)  # fmt: skip
    async def disable(self, request: Request[NoQuery]) -> AsgiApp:
        return await self._switch(request, is_enabled=False)

    @route("POST", f"{_ONE}/run", START, "runTrigger", "start a run as the trigger would",
           tag="triggers", headers=(_KEY_HEADER,), body=RunTrigger, is_body_required=False,
           replies={202: ACCEPTED})  # fmt: skip
    async def run(self, request: Request[NoQuery]) -> AsgiApp:
        key, name = _key_of(request), request.header(b"idempotency-key")
        if name is not None and not _KEY.fullmatch(name):
            message = f"Idempotency-Key must be 1 to {MAX_KEY_CHARS} visible ASCII characters"
            raise Refused(errors.REQUEST_INVALID, message)
        self._scheduler.triggers.table.get(key)  # not found comes before all errors of the body
        body = await request.optional_body()
        wanted = RunTrigger() if body is None else decode_json(body, _run)
        run_id = await self._scheduler.triggers.triggers.run_now(
            key, wanted.inputs, by=request.subject, name=name
        )
        return accepted(run_id)

    @route("GET", f"{_ONE}/history", READ, "listTriggerHistory",
           "list what a trigger has fired, newest first", tag="triggers", query=ListTriggerFires,
           text="The newest hundred are kept.", replies=TriggerFirePage)  # fmt: skip
    async def history(self, request: Request[ListTriggerFires]) -> AsgiApp:
        key, query = _key_of(request), request.query
        place = f"trigger {key[1]} {key[2]}"
        before = self._cursors.read(place, request.tenant, query.cursor, int)
        found = await self._scheduler.triggers.triggers.history(
            key, limit=query.count + 1, before=before
        )
        page = found[: query.count]
        last = page[-1].number if len(found) > len(page) else None
        cursor = self._cursors.make(place, request.tenant, last)
        return json_response(
            TriggerFirePage(items=[_fire(one) for one in page], next_cursor=cursor)
        )

    # -- helpers ----------------------------------------------------------------------------

    def _page(self, request: Request[Any], workflow_id: str | None) -> AsgiApp:
        query: PageQuery = request.query
        tenant, place = request.tenant, f"triggers {workflow_id}"
        after = self._cursors.read(place, tenant, query.cursor, tuple[str, str]) or ("", "")
        known = self._scheduler.triggers.table.of_tenant(tenant, workflow_id)
        rest = [one for one in known if one.key[1:] > after]
        page = rest[: query.count]
        last = page[-1].key[1:] if len(rest) > len(page) else None
        cursor = self._cursors.make(place, tenant, last)
        items = [self._view(request, one) for one in page]
        return json_response(TriggerPage(items=items, next_cursor=cursor))

    async def _switch(self, request: Request[NoQuery], *, is_enabled: bool) -> AsgiApp:
        triggers = self._scheduler.triggers.triggers
        record = await triggers.switch(_key_of(request), is_enabled=is_enabled)
        return json_response(self._view(request, record))

    def _view(self, request: Request[Any], record: TriggerRecord) -> Trigger:
        spec = record.spec
        times: list[int] = []
        if isinstance(spec, CronTrigger) and record.state == "enabled":
            now = max(record.since, self._services.clock.wall_ms())
            times = Schedule(spec.expression, spec.time_zone).upcoming(now, NEXT_TIMES)
        address = address_of(record)
        may_know = bool(address) and START.allows(request.bearer.role)
        return Trigger(
            workflow_id=record.workflow_id,
            id=record.name,
            type=kind_of(spec),  # type: ignore[arg-type]
            enabled=record.state == "enabled",
            settings=spec,
            next_times=[iso(at) for at in times],
            hook_path=f"{HOOKS}/{address}" if may_know else None,
            pending=len(record.pending),
            created_at=iso(record.created_at),
            updated_at=iso(record.updated_at),
        )


def _key_of(request: Request[Any]) -> TriggerKey:
    return request.tenant, request.params["id"], request.params["triggerId"]


def accepted(run_id: str) -> AsgiApp:
    location = (b"location", f"/api/v1/runs/{quote(run_id, safe='')}".encode())
    return json_response(HookAccepted(run_id=run_id), 202, [location])


def _fire(entry: FireEntry) -> TriggerFire:
    return TriggerFire(
        number=entry.number,
        cause=entry.cause,
        slot=entry.slot,
        scheduled_at=iso(entry.scheduled_at),
        at=iso(entry.at),
        outcome=entry.outcome,
        run_id=entry.run_id,
        code=entry.code,
        reason=entry.reason,
        by=entry.by or None,
    )
