"""A fire: one run that a trigger wants. Its slot says which one it is, and starts at most one run.

Rule 1: the slot of a schedule is its time, that of a webhook its delivery, that of another workflow the run that ended.
        The key of a fire is made of the trigger and the slot: the same slot gives the same key, whoever tries again.
Rule 2: inputs are read when a fire is taken and kept with it, so that trying again gives the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from astraflow.core.timestamps import iso
from astraflow.core.workflow.bindings import MISSING, compile_path, read
from astraflow.core.workflow.definition import ManualTrigger, TriggerSpec

FireCause = Literal["schedule", "catch_up", "webhook", "workflow", "manual"]
SCHEDULED: Final = frozenset({"schedule", "catch_up"})
"""The causes that the overlap policy is about."""
NO_INPUTS: Final = msgspec.Raw(b"{}")
_JITTER_STEPS: Final = 2**32


class Fire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run that a trigger wants. Times are wall-clock milliseconds."""

    number: int
    """From 1 on, within its trigger."""
    slot: str
    cause: FireCause
    scheduled_at: int
    taken_at: int
    inputs: msgspec.Raw = NO_INPUTS
    by: str = ""
    """Who asked for it, if somebody did."""
    depth: int = 0
    """How many ends of runs led to this one."""


def slot_of(cause: FireCause, what: int | str) -> str:
    """The slot of a time (milliseconds), a delivery, a run, or a request of a person."""
    if cause in SCHEDULED:
        assert isinstance(what, int)
        return f"time {iso(what)}"
    return f"{cause} {what}"


def key_of(workflow_id: str, name: str, slot: str) -> str:
    """The idempotency key of the run. It has a space, which no key of a request can have."""
    text = "\0".join((workflow_id, name, slot))
    return f"trigger {sha256(text.encode()).hexdigest()}"


def jitter_ms(workflow_id: str, name: str, slot_ms: int, jitter_seconds: float) -> int:
    """How much later than its time a slot is due: always as much for the same slot."""
    digest = sha256(f"{workflow_id}\0{name}\0{slot_ms}".encode()).digest()
    share = int.from_bytes(digest[:4]) / _JITTER_STEPS
    return int(jitter_seconds * 1000 * share)


def inputs_of(spec: TriggerSpec, event: Mapping[str, Any]) -> msgspec.Raw:
    """The inputs of a run: the values of the trigger, and what its paths lead to. What is not there is left out."""
    if isinstance(spec, ManualTrigger):
        return NO_INPUTS
    values: dict[str, Any] = dict(spec.values)
    for name, path in spec.inputs.items():
        found = read(compile_path(path), event)
        if found is not MISSING:
            values[name] = found
    return msgspec.Raw(msgspec.json.encode(values))
