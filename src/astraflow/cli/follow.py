"""Following a run until it ends: picks the viewer for the output, and reconnects when the server restarts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from astraflow.cli.exit_codes import FAILED, INTERRUPTED, exit_code_of, fail, note
from astraflow.cli.output import console, plain, show_json, show_table
from astraflow.cli.run_progress import RunProgress
from astraflow.cli.viewers import JsonViewer, LineViewer, Viewer
from astraflow.client import requests
from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.contract.runs import ItemCounts, Node, NodeDetail, Run

if TYPE_CHECKING:
    from astraflow.client.blocking import Client

MAX_ROWS: Final = 200
"""Maximum rows of the final table. Failed nodes come first; `--json` contains all nodes."""

MAX_OUTPUT_CHARS: Final = 20_000
MAX_INPUT_CHARS: Final = 2_000
MAX_STACKS: Final = 3
MAX_STACK_LINES: Final = 60
"""Maximum lines of a traceback; its end tells where the error occurred."""


def follow(
    client: Client,
    run_id: str,
    definition: Mapping[str, Any],
    *,
    as_json: bool,
    to_stderr: bool,
    patience_s: float,
) -> None:
    """Follow a run until it has ended.

    ^C stops following; the run continues.
    """
    viewer = open_viewer(client, run_id, definition, as_json=as_json, to_stderr=to_stderr)
    try:
        with viewer:
            for event in client.follow(run_id, patience_s=patience_s, on_cut=viewer.cut):
                viewer.take(event)
    except KeyboardInterrupt:
        note(f"\nStopped following; the run continues: {run_id}")
        note(
            f"\nhint: follow it with `astra runs watch {run_id}`, cancel it with `astra runs cancel {run_id}`"
        )
        raise typer.Exit(INTERRUPTED) from None
    except errors.Unavailable as error:
        hint = f"the run is stored; when the server is back, use `astra runs watch {run_id}`"
        fail(error.code, error.message, exit_code_of(error), as_json=as_json, hint=hint)


def open_viewer(
    client: Client,
    run_id: str,
    definition: Mapping[str, Any],
    *,
    as_json: bool,
    to_stderr: bool,
    may_ask: bool = False,
) -> Viewer:
    """What shows the events. `may_ask`: the user may be asked something meanwhile."""
    if as_json:
        return JsonViewer()
    progress = RunProgress(run_id, definition, _worker_names(client))
    stream = sys.stderr if to_stderr else sys.stdout
    if stream.isatty() and os.environ.get("TERM") != "dumb" and not may_ask:
        from astraflow.cli.live_view import LiveViewer  # only at a terminal: it imports rich

        return LiveViewer(progress, console(err=to_stderr), SystemClock())
    return LineViewer(progress, stream)


def show_end(client: Client, run_id: str, definition: Mapping[str, Any], *, as_json: bool) -> None:
    """Print how a run ended; exit with 0 if it succeeded, else with 1."""
    if as_json:
        answer = client.perform(requests.get_run(run_id).raw())
        show_json(answer)
        status = msgspec.json.decode(answer, type=Run).status
    else:
        run = client.runs.get(run_id)
        show_run(client, run, definition)
        status = run.status
    if status != "succeeded":
        raise typer.Exit(FAILED)


def show_run(client: Client, run: Run, definition: Mapping[str, Any]) -> None:
    """Print a run for people."""
    if run.inputs:
        text = msgspec.json.encode(run.inputs).decode()
        note(f"inputs {plain(text[:MAX_INPUT_CHARS])}{'…' if len(text) > MAX_INPUT_CHARS else ''}")
    shown = _shown(run.nodes)
    names = _worker_names(client)
    show_table(
        ("node", "status", "attempts", "duration", "worker", "error"),
        (_row(node, names) for node in shown),
        empty="The run has no nodes",
    )
    if len(shown) < len(run.nodes):
        note(f"{len(run.nodes) - len(shown)} more nodes; `--json` shows all")
    _show_stacks(run.nodes)
    _show_outputs(run, definition)
    took = f" after {duration(run.created_at, run.finished_at)}" if run.finished_at else ""
    said = f": {run.error.code} {plain(run.error.message)}" if run.error else ""
    note(f"run {run.run_id} {run.status}{took}{said}")


def show_node(client: Client, node: NodeDetail) -> None:
    """Print one node with its package, what it was given, its timeline and its result, for people."""
    show_table(
        ("node", "status", "attempts", "duration", "worker", "error"),
        [_row(node, _worker_names(client))],
    )
    note(f"package {plain(node.package.name)} {plain(node.package.version)}")
    if node.parameters is not None:
        text = msgspec.json.encode(node.parameters).decode()
        cut = "…" if len(text) > MAX_INPUT_CHARS else ""
        note(f"parameters {plain(text[:MAX_INPUT_CHARS])}{cut}")
    _show_stacks([node])
    for line in node.story:
        note(plain(line))
    if node.result is not None:
        text = msgspec.json.format(msgspec.json.encode(node.result), indent=2).decode()
        typer.echo(plain(text, lines=True))


def _show_stacks(nodes: Sequence[Node]) -> None:
    """Print the tracebacks of the first failed nodes."""
    failed = [node for node in nodes if node.error is not None and node.error.stack]
    for node in failed[:MAX_STACKS]:
        assert node.error is not None
        note(f"\n{plain(node.label or node.node_id)} failed: {plain(node.error.message)}")
        for line in (node.error.stack or "").splitlines()[-MAX_STACK_LINES:]:
            note(f"  {plain(line)}")
    if len(failed) > MAX_STACKS:
        note(f"\n{len(failed) - MAX_STACKS} more nodes failed: astra runs show RUN --node NODE")


def _worker_names(client: Client) -> dict[str, str]:
    return {one.worker_id: one.name for one in client.workers.iterate()}


def _shown(nodes: list[Node]) -> list[Node]:
    if len(nodes) <= MAX_ROWS:
        return nodes
    bad = [node for node in nodes if node.status == "failed"]
    rest = [node for node in nodes if node.status != "failed"]
    return (bad + rest)[:MAX_ROWS]


def _row(node: Node, names: Mapping[str, str]) -> tuple[object, ...]:
    error = f"{node.error.code} {node.error.message}".strip() if node.error else ""
    if node.waiting_for is not None:
        waiting = node.waiting_for
        until = f", until {waiting.until}" if waiting.until is not None else ""
        error = f"waiting for {waiting.kind}: {waiting.detail}{until}"
    if node.pinned:
        error = "pinned result"
    if node.items is not None and not error:
        error = _told_items(node.items)
    took = duration(node.started_at, node.finished_at)
    worker = names.get(node.worker_id or "") or node.worker_id
    return (node.label or node.node_id, node.status, node.attempt, took, worker, error)


def _told_items(counts: ItemCounts) -> str:
    """How far the items of a map are: `12 items: 10 succeeded, 2 failed`."""
    if not counts.total:
        return "no items"
    words = ((word, getattr(counts, word)) for word in counts.__struct_fields__ if word != "total")
    parts = ", ".join(f"{count} {word}" for word, count in words if count)
    return f"{counts.total} item{'s' if counts.total > 1 else ''}: {parts}"


def _show_outputs(run: Run, definition: Mapping[str, Any]) -> None:
    """Print the declared outputs; of a workflow without, the results of the nodes without successors."""
    outputs = run.outputs
    if outputs is None:
        followed = {_source(edge) for edge in definition.get("edges") or ()}
        outputs = {
            node.label or node.node_id: node.result
            for node in run.nodes
            if node.node_id not in followed and node.status == "succeeded" and node.result
        }
    if not outputs:
        return
    text = msgspec.json.format(msgspec.json.encode(outputs), indent=2).decode()
    typer.echo("")
    typer.echo(plain(text[:MAX_OUTPUT_CHARS], lines=True))
    if len(text) > MAX_OUTPUT_CHARS or run.outputs_truncated:
        note("The outputs are truncated; `--json` shows all")


def _source(edge: Any) -> Any:
    source = edge.get("source") if isinstance(edge, dict) else None
    return source.get("node") if isinstance(source, dict) else None


def duration(start: str | None, end: str | None) -> str:
    """The time between two API timestamps, for people."""
    if not start or not end:
        return "-"
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
