"""What must be seen in every thousand seeds, or the simulator has gone soft (S1–S92)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["IN_SHELLS", "RARE_IN_SHELLS", "SOMETIMES", "missing", "missing_in_shells"]

SOMETIMES: Mapping[str, str] = {
    "S1 a session resumed": "session resumed",
    "S2 a session was reset": "session reset",
    "S3 a window was full": "window full",
    "S4 the bitmap was non-zero": "bitmap non-zero",
    "S5 a duplicate was dropped": "duplicate dropped",
    "S6 a late result was refused": "late report",
    "S7 a lease expired": "lease expired",
    "S8 a worker self-fenced": "self-fenced",
    "S9 a commit outcome was unknown and resolved": "unknown commit resolved",
    "S10 a submission was retried and deduplicated": "submission deduplicated",
    "S11 a scheduler was superseded": "superseded",
    "S12 a cancel met a finished run": "cancel met a finished run",
    "S13 a drain finished with work in flight": "drain finished with work",
    "S14 a retry was exhausted": "retry exhausted",
    "S15 a pinned worker was lost": "pinned worker lost",
    "S16 a reader resumed": "reader resumed",
    "S17 what was lost was made again": "rebuilt",
    "S18 a resource was evicted while a task waited for it": "evicted while waited for",
    "S19 a cleanup was owed after a reconnect": "cleanup owed after reconnect",
    "S20 a package was installed on demand": "install on demand",
    "S21 an install failed and was tried elsewhere": "install failed and tried elsewhere",
    "S22 a notice was sent again": "notice resent",
    **{
        f"S24 a task waited for {kind}": f"waited for {kind}"
        for kind in (
            "slot",
            "key",
            "retry",
            "dispatch",
            "worker",
            "package",
            "resource",
            "affinity",
            "calls",
        )
    },
    "S60 two requests ran side by side on one machine": "requests side by side",
    "S25 a package was installed on one more worker": "install to spread",
    "S26 a rollout ended well": "rollout succeeded",
    "S27 a rollout failed": "rollout failed",
    "S28 a rollout was rolled back": "rollout rolled_back",
    "S29 a rollout went on after a restart": "rollout went on after a restart",
    "S30 a version was removed by command": "version removed",
    "S31 a resource was copied": "copy noted",
    "S32 a resource was read from its copy on another worker": "copy fetched",
    "S33 a worker that never came back was forgotten": "worker forgotten",
    "S34 an HTTP worker started an attempt": "pool attempt started",
    "S35 a second delivery was refused": "callback: already_started",
    "S36 a late HTTP worker met a newer attempt": "callback: attempt_mismatch",
    "S37 an HTTP worker met the end of its attempt": "callback: task_already_terminal",
    "S38 a heartbeat came too late": "callback: task_expired",
    "S39 an HTTP worker was told to stop": "pool attempt told to stop",
    "S40 an HTTP worker fenced itself": "pool attempt fenced",
    "S41 the machine of an HTTP worker died": "pool machine died",
    "S42 a push that reached nobody was given back": "push given back",
    "S43 the condition of an edge held": "edge taken",
    "S44 the condition of an edge did not hold": "edge not taken",
    "S45 the condition of a node did not hold": "condition of a node false",
    "S46 an expression had no value": "expression without a value",
    "S47 a failure was handled by an edge": "failure handled",
    "S49 a run waited for a time": "parked for time",
    "S50 a run waited for a person": "parked for approval",
    "S51 a run waited for a message": "parked for signal",
    "S52 a message ended a wait": "signal taken",
    "S53 a message came before its node waited": "early signal taken",
    "S54 a run with messages ended": "run with signals ended",
    "S70 a map began": "map opened",
    "S71 a container began": "container opened",
    "S72 a map began inside of a container": "inner map opened",
    "S73 a container began inside of a container": "inner container opened",
    "S74 a map had as many items under way as it may": "map at its limit",
    "S75 a map collected the results of all items": "map collected",
    "S76 a map collected with items that failed": "map with errors",
    "S90 what a map collected was stored by reference": "collected by reference",
    "S91 a map went over a list that was stored": "map over a stored list",
    "S92 a stored list was lost": "stored list lost",
    "S77 a failure closed a scope": "scope closed",
    "S79 what was done was undone after a failure": "undone after a failure",
    "S80 what was done was undone after a cancel": "undone after a cancel",
    "S81 a branch was not needed": "branch not needed",
    "S78 a scope was cancelled with its run": "scope cancelled",
    "S48 a run met its deadline": "run met its deadline",
    "S55 a middleware was accepted with the calls that it made": "accepted with its calls",
    "S56 a middleware was accepted with several calls": "accepted with several calls",
    "S23 a middleware lost what it used while its call was open": "lost with an open call",
}

IN_SHELLS = (
    "session resumed",
    "session reset",
    "self-fenced",
    "commit unknown",
    "crashed in a commit",
    "claimed early",
    "submission deduplicated",
    "cancel met a finished run",
    "follower resumed",
    "asked again",
    "call answered",
    "retry exhausted",
    "install on demand",
    "version removed",
    "rollout succeeded",
    "rollout went on after a restart",
    "rebuilt",
    "evicted while waited for",
    "waited for resource",
    "waited for package",
    "notice resent",
    "resource closed by command",
    "copy made by command",
    "copy noted",
    "worker forgotten",
    # S85-S89: triggers.
    "run started by a trigger: time",
    "run started by a trigger: delivery",
    "run started by a trigger: end",
    "tick started by the next scheduler",
    "tick caught up",
    "tick missed",
    "tick skipped for overlap",
    "clock set forward",
    "clock set back",
)
"""What two hundred worlds of shells must have seen."""

RARE_IN_SHELLS = (
    "install to spread",
    "rollout failed",
    "rollout rolled_back",
    "pinned worker lost",
    "cleanup owed after reconnect",
    "copy fetched",
)
"""What a thousand of them must have seen beside it."""


def missing_in_shells(seen: Mapping[str, int], worlds: int) -> list[str]:
    """The names of what was not seen in so many worlds of shells."""
    wanted = IN_SHELLS if worlds < 1000 else (*IN_SHELLS, *RARE_IN_SHELLS)
    return [what for what in wanted if not seen.get(what)]


def missing(seen: Mapping[str, int]) -> list[str]:
    """The names of what was not seen."""
    return [name for name, what in SOMETIMES.items() if not seen.get(what)]
