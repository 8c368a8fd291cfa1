"""`astra run`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from astraflow.cli.follow import follow, show_end
from astraflow.cli.inputs import WorkflowFile, read_definition, unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.cli.run_inputs import collect_inputs
from astraflow.client.blocking import Client, RunHandle
from astraflow.client.stream import PATIENCE_S
from astraflow.core import errors

Patience = Annotated[
    float,
    typer.Option(min=0.0, help="Seconds to retry while the server is unreachable"),
]


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A workflow definition (JSON), a Python file that defines `workflow`, - for stdin, or the id of a "
        "saved workflow",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        help="An input as NAME=VALUE; VALUE is read as its schema says. Repeatable",
    ),
]
InputFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Inputs as a JSON object; --input counts more"),
]
Key = Annotated[
    str | None,
    typer.Option(help="Idempotency key: submitting again with the same key returns the same run"),
]
Pinned = Annotated[
    bool,
    typer.Option(
        "--pinned", help="Use the pinned results of the workflow in place of running nodes"
    ),
]
IsLocal = Annotated[bool, typer.Option("--local", help="Run it in this process, without a server")]
Signals = Annotated[
    list[str] | None,
    typer.Option("--signal", help="With --local: NAME=VALUE, a signal for the run. Repeatable"),
]
Approves = Annotated[
    bool, typer.Option("--yes", help="With --local: approve whatever a person is asked")
]


def run(
    file: File,
    given: Given = None,
    input_file: InputFile = None,
    watch: Annotated[bool, typer.Option(help="Follow the run until it ends")] = True,
    as_json: AsJson = False,
    idempotency_key: Key = None,
    patience: Patience = PATIENCE_S,
    pinned: Pinned = False,
    local: IsLocal = False,
    signals: Signals = None,
    yes: Approves = False,
) -> None:
    """Run a workflow and follow its progress. Exits with 0 if it succeeded, else with 1."""
    saved = None if Path(file).exists() or file == "-" else _workflow_id(file)
    document = WorkflowFile(b"", {}, {}) if saved else _read(file)
    if local:
        from astraflow.cli import local_run

        local_run.check_local(saved, watch=watch, key=idempotency_key, pinned=pinned)
        more = collect_inputs(given, input_file, _declared(document.definition))
        inputs = {**document.inputs, **more}
        local_run.run_locally(document, inputs, signals, approves=yes, as_json=as_json)
        return
    if signals or yes:
        raise unreadable(
            "--signal and --yes are for --local: use `astra runs signal` and `astra approvals`"
        )
    with Client() as client:
        declared = document.definition
        if saved and given:
            declared = client.workflows.get(saved).definition
        more = collect_inputs(given, input_file, _declared(declared))
        inputs = {**document.inputs, **more}
        handle = _submit(client, saved or document.raw, inputs, idempotency_key, use_pinned=pinned)
        if not watch:
            shown = {"runId": handle.run_id, "status": "queued"}
            said = f"\nhint: follow it with `astra runs watch {handle.run_id}`"
            answer(shown, said, as_json, result=handle.run_id)
            return
        definition = document.definition or client.runs.definition(handle.run_id)
        follow(
            client,
            handle.run_id,
            definition,
            as_json=as_json,
            to_stderr=True,
            patience_s=patience,
        )
        show_end(client, handle.run_id, definition, as_json=as_json)


def _submit(
    client: Client,
    workflow: bytes | str,
    inputs: dict[str, Any],
    key: str | None,
    *,
    use_pinned: bool,
) -> RunHandle:
    key = key or str(uuid.uuid4())
    try:
        return client.run(workflow, inputs, idempotency_key=key, use_pinned=use_pinned)
    except errors.Unavailable as error:
        if (error.detail or {}).get("sent"):
            hint = f"submit it again with `--idempotency-key {key}`; this creates no second run"
            raise errors.Unavailable(error.code, error.message, detail={"hint": hint}) from error
        raise


def _read(file: str) -> WorkflowFile:
    if not file.endswith(".py"):
        return read_definition(file)
    from astraflow.cli.workflow_scripts import read_workflow  # it imports the builder

    return read_workflow(file)


def _declared(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    found = definition.get("inputs")
    return found if isinstance(found, dict) else {}


def _workflow_id(text: str) -> str | None:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
