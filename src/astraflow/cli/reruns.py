"""`astra runs cancel|rerun|compare`: one run, or all that fit a filter."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from astraflow.cli.inputs import pair_of, unreadable
from astraflow.cli.output import AsJson, answer, plain, show_json, show_table
from astraflow.cli.prompts import Yes, confirm
from astraflow.cli.run_inputs import collect_inputs, value_of
from astraflow.client import requests, rerun_requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.reruns import MAX_BULK, BulkResult, NodeComparison, NodeSide
from astraflow.core.contract.runs import Run

OneRun = Annotated[
    str | None, typer.Argument(metavar="RUN", help="Run id. Without one: all that fit the filters")
]
Status = Annotated[str | None, typer.Option(help="Only runs with this status")]
OfWorkflow = Annotated[str | None, typer.Option(help="Only runs of this workflow")]
AtMost = Annotated[int, typer.Option(min=1, max=MAX_BULK, help="At most so many runs")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the runs")]


def find_node(run: Run, name: str, scope: str | None = None) -> str:
    """The id of a node that is named by its id or its label. Raises: NotFound.

    `scope`: where it is. The run does not list what is inside of a workflow that it calls.
    """
    try:
        return run.node(name).node_id
    except KeyError:
        if scope is not None:
            return name
        raise errors.NotFound(
            errors.RUN_NODE_NOT_FOUND, f"Run {run.run_id} has no node {name}"
        ) from None


def find_scope(run: Run, path: str | None) -> str | None:
    """The path of a scope with ids in the place of labels; a part that names no node of the run stays as it is."""
    if path is None:
        return None
    ids = {one.label: one.node_id for one in reversed(run.nodes) if one.label}
    steps = (step.rpartition(":") for step in path.split("/"))
    return "/".join(f"{ids.get(name, name)}{colon}{item}" for name, colon, item in steps)


def cancel(
    run_id: OneRun = None,
    status: Status = None,
    workflow: OfWorkflow = None,
    limit: AtMost = MAX_BULK,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel a run, or all active runs that fit the filters. No new attempt starts."""
    _check_filters(run_id, status, workflow, dry_run)
    with Client() as client:
        if run_id is None:

            def ask(dry: bool) -> BulkResult:
                return client.runs.cancel_many(
                    status=status, workflow_id=workflow, limit=limit, dry_run=dry
                )

            _work_on_many("Cancel", ask, dry_run, yes, as_json)
            return
        run = client.runs.get(run_id, nodes=False)
        if not run.is_over:
            confirm(f"Cancel run {run_id} (status: {run.status})?", yes)
        told = client.perform(requests.cancel_run(run_id).raw())
    now = msgspec.json.decode(told, type=Run).status
    said = f"Run {run_id} is {now if now == 'cancelled' else 'being cancelled'}"
    answer(told, said, as_json)


def rerun(
    run_id: OneRun = None,
    everything: Annotated[bool, typer.Option("--all", help="Repeat every node")] = False,
    start: Annotated[
        list[str] | None,
        typer.Option("--from", help="Repeat this node (id or label) and what follows; repeatable"),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="NODE.PARAMETER=VALUE: another value of a parameter; repeatable"
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help="NAME=VALUE: another input; repeatable")
    ] = None,
    packages: Annotated[
        list[str] | None,
        typer.Option("--package", help="NAME=VERSION: version of a package; repeatable"),
    ] = None,
    status: Status = None,
    workflow: OfWorkflow = None,
    limit: AtMost = MAX_BULK,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Repeat what did not succeed in a run, taking over its other results; prints the id of the new run.

    Without RUN, all runs with --status (failed, cancelled, succeeded) are repeated."""
    _check_filters(run_id, status, workflow, dry_run)
    if everything and start:
        raise unreadable("--all and --from exclude each other")
    pinned = dict(pair_of(one, "package") for one in packages or ())
    key = str(uuid.uuid4())
    with Client() as client:
        if run_id is None:
            if start or parameters or inputs:
                raise unreadable("--from, --set and --input are for one run: name it")

            def ask(dry: bool) -> BulkResult:
                return client.runs.rerun_many(
                    status=status or "failed",
                    workflow_id=workflow,
                    mode="all" if everything else "failed",
                    packages=pinned,
                    limit=limit,
                    dry_run=dry,
                    key=key,
                )

            _work_on_many("Repeat", ask, dry_run, yes, as_json)
            return
        run = client.runs.get(run_id)
        made = client.runs.rerun(
            run_id,
            mode="all" if everything else "from" if start else "failed",
            nodes=[find_node(run, name) for name in start or ()],
            parameters=_changed(run, parameters),
            inputs=_inputs(client, run, inputs),
            packages=pinned,
            key=key,
        )
    said = f"Repeats {run_id}; results taken over: {len(made.kept)}"
    answer(msgspec.to_builtins(made), said, as_json, result=made.run_id)


def _check_filters(
    run_id: str | None, status: str | None, workflow: str | None, dry_run: bool
) -> None:
    has_filter = bool(status or workflow)
    if (run_id is None) != has_filter or (run_id is not None and dry_run):
        raise unreadable("name either a run, or --status or --workflow for many")


def _inputs(client: Client, run: Run, given: list[str] | None) -> dict[str, Any] | None:
    """The inputs of the run with those that are given; None if none are."""
    if not given:
        return None
    declared = client.runs.definition(run.run_id).get("inputs") or {}
    return {**run.inputs, **collect_inputs(given, None, declared)}


def _changed(run: Run, given: list[str] | None) -> dict[str, dict[str, Any]]:
    """The parameters of NODE.PARAMETER=VALUE, by the ids of the nodes."""
    found: dict[str, dict[str, Any]] = {}
    for one in given or ():
        place, text = pair_of(one, "parameter")
        name, dot, parameter = place.rpartition(".")
        if not dot or not name or not parameter:
            raise unreadable(
                f"Invalid parameter {place!r}: expected NODE.PARAMETER=VALUE",
                hint="write --set 'Node label.parameter=value'",
            )
        found.setdefault(find_node(run, name), {})[parameter] = value_of(text, None)
    return found


def _work_on_many(
    verb: str, ask: Callable[[bool], BulkResult], dry_run: bool, yes: bool, as_json: bool
) -> None:
    wanted = ask(True)
    if not dry_run and wanted.items:
        count = f"{len(wanted.items)} runs" + (" (there are more)" if wanted.more else "")
        confirm(f"{verb} {count}?", yes)
        wanted = ask(False)
    if as_json:
        show_json(msgspec.to_builtins(wanted))
        return
    rows = [(one.run_id, one.new_run_id, one.code) for one in wanted.items]
    show_table(("run", "new run", "not done"), rows, empty="No such runs")
    if wanted.more:
        answer(None, "\nhint: there are more such runs; repeat the command", as_json=False)


def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help="Run id")],
    second: Annotated[str, typer.Argument(metavar="OTHER", help="Run id")],
    everything: Annotated[bool, typer.Option("--all", help="Show equal nodes, too")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs node by node: status, attempts, duration, package version, and what differs in results."""
    with Client() as client:
        call = rerun_requests.compare_runs(first, second)
        if as_json:
            show_json(client.perform(call.raw()))
            return
        found = client.perform(call)
    chosen = [one for one in found.nodes if everything or not one.is_equal]
    rows = [(one.label or one.node_id, *_cells(one)) for one in chosen]
    empty = "The runs are equal, node by node"
    show_table(("node", "first", "second", "result", "differs at"), rows, empty=empty)


def _cells(node: NodeComparison) -> tuple[str, ...]:
    places = [f"parameters{one.pointer}" for one in node.parameters]
    places += [f"result{one.pointer}" for one in node.result_changes]
    return (_side(node.first), _side(node.second), node.result, plain(", ".join(places)))


def _side(side: NodeSide | None) -> str:
    if side is None:
        return ""
    took = "" if side.duration_ms is None else f", {side.duration_ms} ms"
    tries = "" if side.attempt <= 1 else f", attempt {side.attempt}"
    return f"{side.status}{took}{tries}, {side.package} {side.package_version}"
