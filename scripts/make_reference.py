"""Write the pages under docs/reference that are made from the code, or check that they are fresh.

    python scripts/make_reference.py            write them
    python scripts/make_reference.py --check    exit 1 if one differs from what would be written

A page is a function in PAGES that returns its text. Nothing in them is written by hand, so that
nothing in them can be out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from astraflow.api.app import ROUTES
from astraflow.api.routes import Place
from astraflow.config import SchedulerSettings, WorkerSettings, described
from astraflow.core.errors import CATALOGUE
from astraflow.core.expressions.functions import FUNCTIONS
from astraflow.core.fleet import affinity, installs, resources, rollouts, versions, workers
from astraflow.core.fleet.facts import ABSENT, Table
from astraflow.core.protocol import session_states
from astraflow.core.protocol.frame_table import FRAME_TYPES
from astraflow.core.protocol.wire import FrameType, is_sequenced
from astraflow.core.runs.derived import DERIVED
from astraflow.core.runs.transitions import LEADS_TO, TRANSITIONS
from astraflow.core.security.policy import WORKER_SESSION, Access, Role

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE_BY: Final = "<!-- Made by scripts/make_reference.py. Do not edit. -->\n"


def errors_page() -> str:
    """The catalogue of errors, one table per area."""
    lines = [
        "# Errors",
        "",
        "Every code that leaves the system in a frame, a response, a log or a history. A code never",
        "changes its meaning. *Again* says whether the same request may succeed later.",
    ]
    area = None
    for row in CATALOGUE.values():
        parts = row.code.split(".")
        this_area = ".".join(parts[:2]) + ".*" if len(parts) > 2 else "other words"
        if this_area != area:
            area = this_area
            lines += ["", f"## {area}", "", "| code | HTTP | again | what happened | what to do |"]
            lines += ["| --- | --- | --- | --- | --- |"]
        again = "yes" if row.retryable else "no"
        lines.append(f"| `{row.code}` | {row.http} | {again} | {row.says} | {row.do} |")
    return "\n".join(lines) + "\n"


def expressions_page() -> str:
    """The functions of expressions, from the table that is executed."""
    lines = [
        "# Functions of expressions",
        "",
        "What an [expression](../guides/expressions.md) can call. Arguments are given by position.",
        "",
        "| function | arguments | what it gives |",
        "| --- | --- | --- |",
        "| `default` | 2 | the first argument, or the second if the first is missing or null |",
    ]
    for name, function in FUNCTIONS.items():
        least, most = function.least, function.most
        count = str(least) if least == most else f"{least} to {most}"
        lines.append(f"| `{name}` | {count} | {function.help} |")
    return "\n".join(lines) + "\n"


def authorization_page() -> str:
    """Who may do what, from the declarations of the routes."""
    roles = list(Role)
    actions: dict[str, Access] = {route.action: route.access for route in ROUTES}
    actions["open the session of a worker"] = WORKER_SESSION
    lines = [
        "# Authorization",
        "",
        "A credential belongs to one tenant and has one role. What belongs to another tenant does",
        "not exist for it (404). An admin of the tenant `default` is an admin of the site.",
        "A credential of role `metrics`, which only that tenant has, reads the metrics of all tenants.",
        "",
        "| action | no credential | " + " | ".join(roles) + " |",
        "| --- |" + " --- |" * (len(roles) + 1),
    ]
    for action, access in actions.items():
        other_key = "signed URL" if access.is_signed else "task token" if access.is_task else ""
        cells = ["yes" if access.is_public else other_key]
        said = "of the site" if access.is_site else "yes"
        cells += [said if access.allows(role) else "" for role in roles]
        lines.append(f"| `{action}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def routing_page() -> str:
    """Which scheduler answers a request, from the declarations of the routes."""
    lines = [
        "# Where a request is answered",
        "",
        "[Several schedulers](../guides/several-schedulers.md) share a store, and any of them takes any",
        "request. One that does not serve the tenant of a request, or its lane, passes it on to the one",
        "that does. Of a tenant with several lanes each request belongs to one, by what it names:",
    ]
    for place in Place:
        actions = [route.action for route in ROUTES if route.place is place]
        lines += ["", f"## {place.value[0].upper()}{place.value[1:]}", ""]
        lines += [f"- `{action}`" for action in actions]
    return "\n".join(lines) + "\n"


def task_states_page() -> str:
    """The life of a task, drawn from the table that the code itself obeys."""
    moves: dict[tuple[str, str], list[str]] = {}
    stays: dict[str, list[str]] = {}
    for state, fact in TRANSITIONS:
        target = LEADS_TO[fact]
        if target is None or target is state:
            stays.setdefault(state.__name__, []).append(fact.__name__)
        else:
            moves.setdefault((state.__name__, target.__name__), []).append(fact.__name__)
    for (state, upstream), after in DERIVED.items():
        if type(after) is not state:
            pair = (state.__name__, type(after).__name__)
            moves.setdefault(pair, []).append(upstream.value)
    lines = [
        "# The states of a task",
        "",
        "A task is in one state, and only a fact moves it. A pair of state and fact that is not in",
        "the picture cannot happen; if it does, it is a bug and is reported with the last facts of",
        "the run. Moves in lower case follow from facts about other tasks, and are not stored. A",
        "task that can never become ready stays Pending until the fact of its skip.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> Pending",
        *(f"    {a} --> {b}: {', '.join(facts)}" for (a, b), facts in moves.items()),
        "```",
        "",
        "Facts that are recorded without a change of state:",
        "",
        "| state | facts |",
        "| --- | --- |",
        *(f"| {state} | {', '.join(facts)} |" for state, facts in stays.items()),
    ]
    return "\n".join(lines) + "\n"


def session_states_page() -> str:
    """The life of a worker's session, drawn from the table that the code itself obeys."""
    moves: dict[tuple[str, str], list[str]] = {}
    for (state, trigger), target in session_states.TRANSITIONS.items():
        moves.setdefault((state.value, target.value), []).append(trigger.value)
    lines = [
        "# The states of a worker's session",
        "",
        "A pair of state and trigger that is not in the picture cannot happen. Whether a session",
        "can be resumed is another question: its id and token outlive the link.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> NEW",
        *(f"    {a} --> {b}: {', '.join(triggers)}" for (a, b), triggers in moves.items()),
        "```",
    ]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting with its default and its meaning."""
    lines = [
        "# Settings",
        "",
        "[Configuration](../configuration.md) says where settings come from and how values are written. In the",
        "environment a setting of the scheduler is `ASTRA_SCHEDULER_` and its name in capitals, one of a worker",
        "`ASTRA_WORKER_` and its name. The unit of a number is in its name.",
    ]
    for title, kind in (("Scheduler", SchedulerSettings), ("Worker", WorkerSettings)):
        lines += ["", f"## {title}", "", "| name | default | meaning |", "| --- | --- | --- |"]
        for name, default, meaning in described(kind):
            shown = f"`{default}`" if default else ""
            lines.append(f"| `{name}` | {shown} | {meaning} |")
    return "\n".join(lines) + "\n"


_FLEET: Final[Mapping[str, Table]] = {
    "Worker": workers.TRANSITIONS,
    "Resource": resources.TRANSITIONS,
    "Install intent": installs.TRANSITIONS,
    "Rollout": rollouts.TRANSITIONS,
    "Active version": versions.TRANSITIONS,
    "Affinity key": affinity.TRANSITIONS,
}


def fleet_states_page() -> str:
    """The lives of what is known about workers, drawn from the tables that the code itself obeys."""
    lines = [
        "# The states of workers and of what they keep",
        "",
        "Only a fact moves a record. A pair of state and fact that is not in a picture cannot",
        "happen. Facts that leave the state as it is are not drawn.",
    ]
    for name, table in _FLEET.items():
        moves: dict[tuple[str, str], list[str]] = {}
        for (state, fact), move in table.items():
            for target in move.to:
                if target != state:
                    moves.setdefault((state, target), []).append(fact.__name__)
        lines += ["", f"## {name}", "", "```mermaid", "stateDiagram-v2"]
        for (before, after), facts in moves.items():
            start, end = ("[*]" if one == ABSENT else one for one in (before, after))
            lines.append(f"    {start} --> {end}: {', '.join(facts)}")
        lines.append("```")
    return "\n".join(lines) + "\n"


def frames_page() -> str:
    """Every frame type of a session, from the rows that the codec uses."""
    senders = {"scheduler": "worker", "worker": "scheduler", "both": "both"}
    rows = [
        f"| `{row.name}` | {senders[row.receiver]} | {'yes' if is_sequenced(row.name) else 'no'} | {_first_line(row)} |"
        for row in FRAME_TYPES.values()
    ]
    lines = [
        "# Frame types",
        "",
        "The payload of each type has a JSON Schema below `schemas/`. A frame in the wrong direction is refused.",
        "",
        "| type | sender | sequenced | purpose |",
        "| --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _first_line(row: FrameType) -> str:
    return (row.payload.__doc__ or "").partition("\n")[0]


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "fleet-states.md": fleet_states_page,
    "frames.md": frames_page,
    "authorization.md": authorization_page,
    "routing.md": routing_page,
    "expressions.md": expressions_page,
    "session-states.md": session_states_page,
    "task-states.md": task_states_page,
}


def stale(folder: Path) -> list[str]:
    """Return the names of the pages in the folder that differ from what the code says."""
    found = []
    for name, page in PAGES.items():
        path = folder / name
        if not path.is_file() or path.read_text() != MADE_BY + page():
            found.append(name)
    return found


def write(folder: Path) -> None:
    """Write every page into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(MADE_BY + page())


def main() -> int:
    parser = argparse.ArgumentParser(description="make docs/reference from the code")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    if not parser.parse_args().check:
        write(FOLDER)
        return 0
    found = stale(FOLDER)
    for name in found:
        print(f"docs/reference/{name} is not what the code says; run: make docs", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
