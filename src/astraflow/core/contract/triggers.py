"""Triggers of saved workflows, and what they fired."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from astraflow.core.contract.base import (
    MAX_ID_CHARS,
    OBJECT,
    Count,
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    no_items,
)

NEXT_TIMES = 5


class Trigger(RestObject, frozen=True, kw_only=True):
    """A trigger of a saved workflow."""

    workflow_id: Annotated[str, doc("The workflow that it starts.")]
    id: Annotated[str, doc("Its id in the definition, or its type and place, as `cron-1`.")]
    type: Annotated[Literal["manual", "cron", "webhook", "workflow"], doc("Its type.")]
    enabled: Annotated[bool, doc("Whether it starts runs by itself.")]
    settings: Annotated[Any, doc("As in the definition.", extra_json_schema=OBJECT)]
    next_times: Annotated[
        list[Timestamp], doc(f"The next times of a schedule, at most {NEXT_TIMES}, without jitter.")
    ] = msgspec.field(default_factory=no_items)
    hook_path: Annotated[
        str | None,
        doc(
            "Where a webhook takes requests. Only who may start runs sees it: without a signature it is the secret."
        ),
    ] = None
    pending: Annotated[Count, doc("Runs that are owed and not started yet.")]
    created_at: Annotated[Timestamp, doc("When a version of the workflow had it first.")]
    updated_at: Annotated[Timestamp, doc("When it was last changed, enabled or disabled.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "workflowId": "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f77",
        "id": "nightly",
        "type": "cron",
        "enabled": True,
        "settings": {"type": "cron", "id": "nightly", "expression": "0 3 * * *"},
        "nextTimes": ["2026-01-16T03:00:00.000Z"],
        "pending": 0,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "updatedAt": "2026-01-15T10:00:00.000Z",
    }


class TriggerPage(Page[Trigger], frozen=True, kw_only=True):
    """A page of triggers, by workflow and id."""


class TriggerFire(RestObject, frozen=True, kw_only=True):
    """What became of a time, a delivery or a request."""

    number: Annotated[Count, doc("From 1 on, within the trigger.")]
    cause: Annotated[
        Literal["schedule", "catch_up", "webhook", "workflow", "manual"], doc("What it was.")
    ]
    slot: Annotated[str, doc("Which one: the time, the delivery, or the run that ended.")]
    scheduled_at: Annotated[Timestamp, doc("The time of the schedule, or when it came.")]
    at: Annotated[Timestamp, doc("When this became true.")]
    outcome: Annotated[
        Literal["pending", "started", "refused", "skipped"],
        doc("`pending`: the run is owed. `skipped`: none is started for this time."),
    ]
    run_id: Annotated[str | None, doc("The run that was started.")] = None
    code: Annotated[str | None, doc("The code that the run was refused with.")] = None
    reason: Annotated[str | None, doc("Why it was refused or skipped.")] = None
    by: Annotated[str | None, doc("Who asked for it, if somebody did.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "number": 7,
        "cause": "schedule",
        "slot": "time 2026-01-16T03:00:00.000Z",
        "scheduledAt": "2026-01-16T03:00:00.000Z",
        "at": "2026-01-16T03:00:00.012Z",
        "outcome": "started",
        "runId": "01JH0000000000000000000000",
    }


class TriggerFirePage(Page[TriggerFire], frozen=True, kw_only=True):
    """A page of the history of a trigger, newest first."""


class RunTrigger(RequestBody, frozen=True, kw_only=True):
    """How to run a trigger now."""

    inputs: Annotated[
        dict[str, msgspec.Raw],
        doc("Inputs of the run, beside those that the trigger gives and in their place."),
    ] = msgspec.field(default_factory=dict)

    EXAMPLE: ClassVar[JsonObject] = {"inputs": {"city": "Bern"}}


class HookAccepted(RestObject, frozen=True, kw_only=True):
    """The run of a delivery exists."""

    run_id: Annotated[str, doc("The run; the same one for the same delivery.")]

    EXAMPLE: ClassVar[JsonObject] = {"runId": "01JH0000000000000000000000"}


class ListTriggers(PageQuery, frozen=True, kw_only=True):
    """Which triggers."""

    workflow_id: Annotated[str, doc("Only of this workflow.", max_length=MAX_ID_CHARS)] = ""


class ListWorkflowTriggers(PageQuery, frozen=True, kw_only=True):
    """Which triggers of the workflow."""


class ListTriggerFires(PageQuery, frozen=True, kw_only=True):
    """Which entries of the history."""
