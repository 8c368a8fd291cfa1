"""What brings a folder of workflows and a server together: a plan over three states, here, there, and when they last
agreed.

1. What changed on one side goes to the other. What changed on both, each in its way, is a conflict.
2. What is on one side and never was on both is new. What was on both and is missing on one was deleted there; the other
   side follows only if deleting is asked for.
3. A conflict is decided by whoever asks, for one side. Nothing else is ever lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Action = Literal["push", "pull", "delete_remote", "delete_local", "leave", "conflict"]
Side = Literal["local", "remote"]


class SyncStep(msgspec.Struct, frozen=True):
    """What is done about one workflow."""

    workflow_id: str
    action: Action
    reason: str


def plan_sync(
    local: Mapping[str, str],
    remote: Mapping[str, str],
    base: Mapping[str, str],
    *,
    is_deleting: bool = False,
    prefer: Side | None = None,
) -> list[SyncStep]:
    """The steps, by the ids of the workflows. The states are digests by id; what is equal needs no step."""
    steps: list[SyncStep] = []
    for known in sorted({*local, *remote}):
        here, there, agreed = local.get(known), remote.get(known), base.get(known)
        if here == there:
            continue
        side, reason = _changed_side(here, there, agreed)
        if side is None:
            reason = f"{reason}; {prefer} wins" if prefer else reason
            side = prefer
        steps.append(SyncStep(known, _action(side, here, there, is_deleting), reason))
    return steps


def _changed_side(
    here: str | None, there: str | None, agreed: str | None
) -> tuple[Side | None, str]:
    """The side whose state is the newer one, None if both are; and in words what happened."""
    if agreed is None:
        if there is None:
            return "local", "new here"
        if here is None:
            return "remote", "new on the server"
        return None, "in both, never synchronized, and different"
    if here != agreed and there != agreed:
        return None, f"{_what(here)} here and {_what(there)} on the server"
    if here != agreed:
        return "local", f"{_what(here)} here"
    return "remote", f"{_what(there)} on the server"


def _what(state: str | None) -> str:
    return "deleted" if state is None else "changed"


def _action(side: Side | None, here: str | None, there: str | None, is_deleting: bool) -> Action:
    if side is None:
        return "conflict"
    newer = here if side == "local" else there
    if newer is not None:
        return "push" if side == "local" else "pull"
    if not is_deleting:
        return "leave"
    return "delete_remote" if side == "local" else "delete_local"
