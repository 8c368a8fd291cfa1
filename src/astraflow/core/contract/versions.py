"""Drafts, versions and differences of saved workflows."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from astraflow.core.contract.base import (
    Count,
    JsonObject,
    Page,
    PageQuery,
    Positive,
    Query,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
    no_items,
    no_text,
)
from astraflow.core.contract.workflows import MAX_NOTE_CHARS, Definition

Note = Annotated[str, doc("What is new in this version, for people.", max_length=MAX_NOTE_CHARS)]
_SIDE: Final = "A number is a version, `draft` the draft, `newest` the newest version"
_ID: Final = Definition.EXAMPLE["id"]


class VersionSummary(RestObject, frozen=True, kw_only=True):
    """A version of a workflow: who made it, when, and why."""

    id: Annotated[str, doc("The workflow.")]
    version: Annotated[Count, doc("Its number, from 1 on.")]
    name: Annotated[str, doc("The name in its definition.")]
    saved_at: Annotated[Timestamp, doc("When it was saved.")]
    saved_by: Annotated[str, doc("Who saved it.")]
    note: Annotated[str, doc("What is new in it, as its author says.")] = msgspec.field(
        default_factory=no_text
    )

    EXAMPLE: ClassVar[JsonObject] = {
        "id": _ID,
        "version": 3,
        "name": "Say hello",
        "savedAt": "2026-01-15T10:20:00.000Z",
        "savedBy": "ada",
        "note": "greet politely",
    }


class VersionPage(Page[VersionSummary], frozen=True, kw_only=True):
    """The versions of a workflow that are kept, newest first."""


class DraftSummary(RestObject, frozen=True, kw_only=True):
    """The draft of a workflow, without its definition."""

    id: Annotated[str, doc("The workflow.")]
    revision: Annotated[Count, doc("It grows by one at each save: the ETag of the draft.")]
    base_version: Annotated[
        Count, doc("The version that it was made from; 0 if the workflow has no version yet.")
    ]
    name: Annotated[str, doc("The name in its definition.")]
    updated_at: Annotated[Timestamp, doc("When it was last saved.")]
    updated_by: Annotated[str, doc("Who saved it last.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "id": _ID,
        "revision": 4,
        "baseVersion": 3,
        "name": "Say hello",
        "updatedAt": "2026-01-15T10:25:00.000Z",
        "updatedBy": "ada",
    }


class Draft(DraftSummary, frozen=True, kw_only=True):
    """The draft of a workflow. Its definition may have errors."""

    definition: Annotated[
        Any, doc("The definition, as it was saved.", extra_json_schema={"type": "object"})
    ]

    EXAMPLE: ClassVar[JsonObject] = {**DraftSummary.EXAMPLE, "definition": Definition.EXAMPLE}


class DraftPage(Page[DraftSummary], frozen=True, kw_only=True):
    """A page of drafts, last changed first."""


class ListVersions(PageQuery, frozen=True, kw_only=True):
    """Which versions."""


class ListDrafts(PageQuery, frozen=True, kw_only=True):
    """Which drafts."""

    workflow_id: Annotated[
        str,
        doc("Only the draft of this workflow: an empty list if there is none.", max_length=256),
    ] = ""


class SaveDraft(Query, frozen=True, kw_only=True):
    """How to save a draft."""

    base_version: Annotated[
        Positive | None,
        doc("The version whose changes the draft contains; by default that of the draft before."),
    ] = None


class PublishRequest(RequestBody, frozen=True, kw_only=True):
    """How to make the draft a version."""

    note: Note = ""
    revision: Annotated[
        Positive | None, doc("Publish only if this is still the revision of the draft.")
    ] = None
    force: Annotated[
        bool, doc("Publish although a newer version than its base was published meanwhile.")
    ] = False

    EXAMPLE: ClassVar[JsonObject] = {"note": "greet politely", "revision": 4}


class RestoreRequest(RequestBody, frozen=True, kw_only=True):
    """What an older version becomes."""

    to: Annotated[
        Literal["version", "draft"], doc("A new version, which is validated, or the draft.")
    ] = "version"
    note: Annotated[
        str,
        doc(
            "The note of the new version. By default it says which version is restored.",
            max_length=MAX_NOTE_CHARS,
        ),
    ] = ""
    replace: Annotated[bool, doc("Replace the draft, if there is one.")] = False

    EXAMPLE: ClassVar[JsonObject] = {"to": "version", "note": "back to what worked"}


class Restored(RestObject, frozen=True, kw_only=True):
    """What an older version has become: a new version, or a revision of the draft."""

    id: Annotated[str, doc("The workflow.")]
    restored: Annotated[Count, doc("The version that was restored.")]
    version: Annotated[Count | None, doc("The new version.")] = None
    revision: Annotated[Count | None, doc("The revision of the draft.")] = None

    EXAMPLE: ClassVar[JsonObject] = {"id": _ID, "restored": 2, "version": 4}


class DiffWorkflow(Query, frozen=True, kw_only=True):
    """Which two definitions to compare."""

    from_: Annotated[str, doc(f"What it was before. {_SIDE}, the default.", max_length=16)] = (
        msgspec.field(default="newest", name="from")
    )
    to: Annotated[
        str, doc(f"What it is after. {_SIDE}; `draft` is the default.", max_length=16)
    ] = "draft"


class ValueChange(RestObject, frozen=True, kw_only=True):
    """A value that differs."""

    pointer: Annotated[str, doc("A JSON pointer to it.")]
    kind: Annotated[Literal["added", "removed", "changed"], doc("What happened to it.")]
    before: Annotated[Any, doc("What it was; missing if it was null or not there.")] = None
    after: Annotated[Any, doc("What it is; missing if it is null or not there.")] = None


class ItemChange(RestObject, frozen=True, kw_only=True):
    """A node or an edge that both have, and what differs in it."""

    id: Annotated[str, doc("Its id; for an edge without one, its ends.")]
    label: Annotated[str, doc("The label of the node.")] = ""
    changes: Annotated[list[ValueChange], doc("What differs; the pointers are into the item.")]


class ItemName(RestObject, frozen=True, kw_only=True):
    """A node or an edge that only one of the two has."""

    id: Annotated[str, doc("Its id; for an edge without one, its ends.")]
    label: Annotated[str, doc("The label of the node.")] = ""
    type: Annotated[str, doc("The type of the node.")] = ""


class ListChange(RestObject, frozen=True, kw_only=True):
    """What happened to the nodes, or to the edges."""

    added: Annotated[list[ItemName], doc("Those that are new.")] = msgspec.field(
        default_factory=no_items
    )
    removed: Annotated[list[ItemName], doc("Those that are gone.")] = msgspec.field(
        default_factory=no_items
    )
    changed: Annotated[list[ItemChange], doc("Those that differ.")] = msgspec.field(
        default_factory=no_items
    )
    is_reordered: Annotated[bool, doc("Those that both have stand in another order.")] = False


class DiffSide(RestObject, frozen=True, kw_only=True):
    """One of the two definitions."""

    version: Annotated[Count | None, doc("Its version; missing for the draft.")] = None
    revision: Annotated[Count | None, doc("The revision of the draft.")] = None


class WorkflowDiff(RestObject, frozen=True, kw_only=True):
    """What differs between two definitions of a workflow."""

    id: Annotated[str, doc("The workflow.")]
    from_: Annotated[DiffSide, doc("What it was before.")] = msgspec.field(name="from")
    to: Annotated[DiffSide, doc("What it is after.")]
    is_equal: Annotated[bool, doc("Nothing differs, positions included.")]
    nodes: Annotated[ListChange, doc("Nodes, matched by their id, without their positions.")]
    edges: Annotated[ListChange, doc("Edges, matched by their id or their ends.")]
    moved: Annotated[
        list[ItemChange], doc("Nodes with another position; it changes nothing that runs.")
    ]
    inputs: Annotated[list[ValueChange], doc("Of the declared inputs.")]
    outputs: Annotated[list[ValueChange], doc("Of the declared outputs.")]
    triggers: Annotated[list[ValueChange], doc("Of the triggers.")]
    settings: Annotated[list[ValueChange], doc("Of everything else.")]
    is_truncated: Annotated[bool, doc("There are more changes than are listed.")] = False

    EXAMPLE: ClassVar[JsonObject] = {
        "id": _ID,
        "from": {"version": 3},
        "to": {"revision": 4},
        "isEqual": False,
        "nodes": {
            "added": [],
            "removed": [],
            "changed": [
                {
                    "id": Definition.EXAMPLE["nodes"][0]["id"],
                    "changes": [
                        {
                            "pointer": "/parameters/value",
                            "kind": "changed",
                            "before": "hello",
                            "after": "good morning",
                        }
                    ],
                }
            ],
        },
        "edges": {"added": [], "removed": [], "changed": []},
        "moved": [],
        "inputs": [],
        "outputs": [],
        "triggers": [],
        "settings": [],
    }
