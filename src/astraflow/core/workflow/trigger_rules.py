"""What the triggers of a definition must keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, assert_never

from astraflow.core.errors import (
    WORKFLOW_BAD_ID,
    WORKFLOW_BAD_PATH,
    WORKFLOW_BAD_TEXT,
    WORKFLOW_DUPLICATE_ID,
    WORKFLOW_INPUT,
)
from astraflow.core.workflow.bindings import BadPath, compile_path
from astraflow.core.workflow.definition import (
    CronTrigger,
    ManualTrigger,
    WebhookTrigger,
    WorkflowTrigger,
)
from astraflow.core.workflow.limits import MAX_KEY_CHARS, MAX_LABEL_CHARS, MAX_LIST_ITEMS
from astraflow.core.workflow.node_rules import UUID
from astraflow.core.workflow.problems import pointer_token
from astraflow.core.workflow.schedules import BadSchedule, Schedule, find_zone
from astraflow.core.workflow.secret_refs import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.core.workflow.definition import TriggerSpec, WorkflowSpec
    from astraflow.core.workflow.problems import Problems

MAX_ID_CHARS: Final = 64
_CRON: Final = re.compile(
    r"@(?:hourly|daily|weekly|monthly|yearly)"
    r"|[0-9A-Za-z*/,#-]{1,64}(?: [0-9A-Za-z*/,#-]{1,64}){4,5}",
    re.ASCII,
)
_TIME_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_WEBHOOK_PATH: Final = re.compile(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*", re.ASCII)
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_SOURCES: Final = {
    CronTrigger: ("scheduledAt", "trigger"),
    WebhookTrigger: ("body", "headers", "query", "method"),
    WorkflowTrigger: ("runId", "workflowId", "status", "outputs"),
}
"""What a path of each type of trigger may begin with."""


def name_triggers(triggers: Sequence[TriggerSpec]) -> list[str]:
    """The id of each trigger: its own, or its type and its place among those of this type, as `cron-1`."""
    counts: dict[str, int] = {}
    names = []
    for trigger in triggers:
        kind = kind_of(trigger)
        counts[kind] = counts.get(kind, 0) + 1
        names.append(trigger.id if trigger.id is not None else f"{kind}-{counts[kind]}")
    return names


def kind_of(trigger: TriggerSpec) -> str:
    return str(trigger.__struct_config__.tag)


def check_triggers(workflow: WorkflowSpec, problems: Problems) -> None:
    """Report the problems of all triggers."""
    if not problems.check_count("/triggers", workflow.triggers, MAX_LIST_ITEMS):
        return
    seen: dict[str, int] = {}
    for place, name in enumerate(name_triggers(workflow.triggers)):
        pointer = f"/triggers/{place}"
        if len(name) > MAX_ID_CHARS or not _ID.fullmatch(name):
            message = f"not an id of letters, digits, - and _: {name[:80]!r}"
            problems.add(f"{pointer}/id", WORKFLOW_BAD_ID, message)
        elif seen.setdefault(name, place) != place:
            message = f"the trigger {seen[name]} has the same id: {name}"
            problems.add(f"{pointer}/id", WORKFLOW_DUPLICATE_ID, message)
        _check_trigger(workflow, workflow.triggers[place], pointer, problems)
    _check_paths(workflow.triggers, problems)


def _check_paths(triggers: Sequence[TriggerSpec], problems: Problems) -> None:
    """A path says which webhook of the workflow is meant."""
    seen: dict[str, int] = {}
    for place, trigger in enumerate(triggers):
        if not isinstance(trigger, WebhookTrigger) or trigger.path is None:
            continue
        if seen.setdefault(trigger.path, place) != place:
            message = f"the trigger {seen[trigger.path]} has the same path: {trigger.path[:80]}"
            problems.add(f"/triggers/{place}/path", WORKFLOW_DUPLICATE_ID, message)


def _check_trigger(
    workflow: WorkflowSpec, trigger: TriggerSpec, pointer: str, problems: Problems
) -> None:
    match trigger:
        case ManualTrigger():
            return
        case CronTrigger():
            _check_cron(trigger, pointer, problems)
        case WebhookTrigger():
            _check_webhook(trigger, pointer, problems)
        case WorkflowTrigger():
            _check_source(workflow, trigger, pointer, problems)
        case other:
            assert_never(other)
    _check_inputs(workflow, trigger, pointer, problems)


def _check_cron(trigger: CronTrigger, pointer: str, problems: Problems) -> None:
    expression, zone = trigger.expression, trigger.time_zone
    try:
        if not _CRON.fullmatch(expression):
            raise BadSchedule(f"not a schedule of five or six fields: {expression[:80]!r}")
        Schedule(expression, "UTC")
    except BadSchedule as error:
        problems.add(f"{pointer}/expression", WORKFLOW_BAD_TEXT, str(error))
    try:
        if len(zone) > MAX_KEY_CHARS or not _TIME_ZONE.fullmatch(zone):
            raise BadSchedule(f"not the name of a time zone: {zone[:80]!r}")
        find_zone(zone)
    except BadSchedule as error:
        problems.add(f"{pointer}/timeZone", WORKFLOW_BAD_TEXT, str(error))


def _check_webhook(trigger: WebhookTrigger, pointer: str, problems: Problems) -> None:
    path, secret = trigger.path, trigger.secret_ref
    if path is not None and (len(path) > MAX_LABEL_CHARS or not _WEBHOOK_PATH.fullmatch(path)):
        message = f"not a path of plain words: {path[:80]!r}"
        problems.add(f"{pointer}/path", WORKFLOW_BAD_TEXT, message)
    if trigger.methods is not None and not trigger.methods:
        problems.add(f"{pointer}/methods", WORKFLOW_BAD_TEXT, "name at least one method")
    if secret is not None and not is_secret_name(secret):
        message = f"not the name of a secret: {secret[:80]!r}"
        problems.add(f"{pointer}/secretRef", WORKFLOW_BAD_TEXT, message)


def _check_source(
    workflow: WorkflowSpec, trigger: WorkflowTrigger, pointer: str, problems: Problems
) -> None:
    where = f"{pointer}/workflowId"
    if not UUID.fullmatch(trigger.workflow_id):
        message = f"the id of a workflow must be a UUID: {trigger.workflow_id[:80]!r}"
        problems.add(where, WORKFLOW_BAD_ID, message)
    elif trigger.workflow_id == workflow.id:
        problems.add(where, WORKFLOW_BAD_ID, "a workflow cannot start itself without end")
    if not trigger.on:
        problems.add(f"{pointer}/on", WORKFLOW_BAD_TEXT, "name at least one status")


def _check_inputs(
    workflow: WorkflowSpec,
    trigger: CronTrigger | WebhookTrigger | WorkflowTrigger,
    pointer: str,
    problems: Problems,
) -> None:
    for field, names in (("inputs", trigger.inputs), ("values", trigger.values)):
        if not problems.check_count(f"{pointer}/{field}", names, MAX_LIST_ITEMS):
            return
        for name in names:
            if name not in workflow.inputs:
                near = problems.did_you_mean(name, workflow.inputs)
                message = f"the workflow declares no input of this name: {name[:80]!r}{near}"
                problems.add(
                    f"{pointer}/{field}/{pointer_token(name[:80])}", WORKFLOW_INPUT, message
                )
    sources = _SOURCES[type(trigger)]
    for name, path in trigger.inputs.items():
        where = f"{pointer}/inputs/{pointer_token(name[:80])}"
        try:
            first = compile_path(path)[0]
        except BadPath as error:
            problems.add(where, WORKFLOW_BAD_PATH, str(error))
            continue
        if first not in sources:
            message = f"a path begins with one of {', '.join(sources)}: {path[:80]!r}"
            problems.add(where, WORKFLOW_BAD_PATH, message)
