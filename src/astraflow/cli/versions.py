"""`astra workflows draft|drafts|publish|history|diff|restore`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from astraflow.cli.output import AsJson, answer, plain, show_json
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import version_requests as requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.versions import (
    DiffSide,
    DraftSummary,
    ListChange,
    ValueChange,
    VersionSummary,
    WorkflowDiff,
)

MOST_VALUE_CHARS: int = 200
"""A value in a difference; `--json` has all of it."""

WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Workflow id")]
Note = Annotated[str, typer.Option("--note", help="What is new in this version")]


def draft(
    workflow_id: WorkflowId,
    discard: Annotated[bool, typer.Option("--discard", help="Discard the draft")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Print the draft of a workflow, or discard it. `save --draft` saves it."""
    with Client() as client:
        found = client.workflows.draft(workflow_id)
        if discard:
            confirm(f"Discard revision {found.revision} of the draft?", yes)
            client.workflows.discard_draft(workflow_id, if_revision=found.revision)
            answer({"id": workflow_id, "discarded": True}, f"Discarded {workflow_id}", as_json)
            return
        raw = client.perform(requests.get_draft(workflow_id).raw())
    if as_json:
        show_json(raw)
        return
    definition = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])["definition"])
    said = (
        f"Revision {found.revision}, made from version {found.base_version}, "
        f"saved {found.updated_at} by {plain(found.updated_by)}"
    )
    answer(None, said, as_json=False, result=msgspec.json.format(definition, indent=2).decode())


def list_drafts(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List drafts, last changed first."""
    show_list(
        requests.list_drafts,
        kind=DraftSummary,
        columns=("workflow", "name", "revision", "made from", "changed", "by"),
        row=lambda one: (
            one.id,
            one.name,
            one.revision,
            one.base_version,
            one.updated_at,
            one.updated_by,
        ),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No drafts",
    )


def publish(
    workflow_id: WorkflowId,
    note: Note = "",
    if_revision: Annotated[
        int | None, typer.Option(min=1, help="Publish only if this is the revision of the draft")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Publish over a version that is newer than the draft")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the draft of a workflow its newest version. A draft with problems is refused with all of them."""
    with Client() as client:
        made = client.workflows.publish(
            workflow_id, note=note, if_revision=if_revision, force=force
        )
    said = f"Published as version {made.version}"
    answer(msgspec.to_builtins(made), said, as_json, result=workflow_id)


def history(
    workflow_id: WorkflowId, limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False
) -> None:
    """List the versions of a workflow, newest first."""
    show_list(
        partial(requests.list_versions, workflow_id),
        kind=VersionSummary,
        columns=("version", "saved", "by", "name", "note"),
        row=lambda one: (one.version, one.saved_at, one.saved_by, one.name, one.note),
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No versions",
    )


def restore(
    workflow_id: WorkflowId,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="Version", min=1)],
    as_draft: Annotated[
        bool, typer.Option("--draft", help="Make it the draft instead of a new version")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the draft there is")] = False,
    note: Note = "",
    as_json: AsJson = False,
) -> None:
    """Make an older version the newest one. The versions in between are kept."""
    with Client() as client:
        done = client.workflows.restore(
            workflow_id,
            version,
            to="draft" if as_draft else "version",
            note=note,
            replace=replace,
        )
    made = f"version {done.version}" if done.version else f"revision {done.revision} of the draft"
    answer(
        msgspec.to_builtins(done),
        f"Restored version {version} as {made}",
        as_json,
        result=workflow_id,
    )


def diff(
    workflow_id: WorkflowId,
    before: Annotated[
        str | None,
        typer.Option("--from", help="A version or `draft`. Default: the newest version"),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--to", help="A version or `draft`. Default: the draft, if there is one"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two versions of a workflow, or between a version and the draft.

    Without a draft, the newest version is compared with the one before it."""
    with Client() as client:
        one, other = _sides(client, workflow_id, before, after)
        call = requests.diff_workflow(workflow_id, before=one, after=other)
        if as_json:
            show_json(client.perform(call.raw()))
            return
        found = client.perform(call)
    said = f"{_side_name(found.from_)} -> {_side_name(found.to)}"
    answer(None, f"{said}: equal" if found.is_equal else said, as_json=False)
    for line in _lines_of(found):
        typer.echo(line)


def _sides(
    client: Client, workflow_id: str, before: str | None, after: str | None
) -> tuple[str, str]:
    if after is None and before is not None:
        after = "newest"
    if after is None:
        try:
            client.workflows.draft(workflow_id)
        except errors.NotFound:
            newest = client.workflows.get(workflow_id).version
            return str(max(1, newest - 1)), "newest"
        after = "draft"
    return before or "newest", after


def _side_name(side: DiffSide) -> str:
    return "draft" if side.version is None else f"version {side.version}"


def _lines_of(found: WorkflowDiff) -> Iterator[str]:
    yield from _list_lines("node", found.nodes)
    yield from _list_lines("edge", found.edges)
    for name in ("inputs", "outputs", "triggers", "settings"):
        yield from (_change_line(one) for one in getattr(found, name))
    for moved in found.moved:
        yield f"> node {_item_name(moved)}: moved"
    if found.is_truncated:
        yield "… there are more changes than are listed"


def _list_lines(word: str, items: ListChange) -> Iterator[str]:
    for one in items.removed:
        yield f"- {word} {_item_name(one)}{_kind(one.type)}"
    for one in items.added:
        yield f"+ {word} {_item_name(one)}{_kind(one.type)}"
    for item in items.changed:
        yield f"~ {word} {_item_name(item)}"
        yield from (f"  {_change_line(change)}" for change in item.changes)
    if items.is_reordered:
        yield f"~ the {word}s stand in another order"


def _kind(text: str) -> str:
    return f" ({plain(text)})" if text else ""


def _item_name(item: Any) -> str:
    return plain(f"{item.label} [{item.id}]" if item.label else str(item.id))


def _change_line(change: ValueChange) -> str:
    pointer = plain(change.pointer)
    if change.kind == "added":
        return f"+ {pointer}: {_value(change.after)}"
    if change.kind == "removed":
        return f"- {pointer}: {_value(change.before)}"
    return f"~ {pointer}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: Any) -> str:
    text = plain(msgspec.json.encode(value).decode())
    return text if len(text) <= MOST_VALUE_CHARS else f"{text[:MOST_VALUE_CHARS]}…"
