"""Saved workflows."""

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
    RestObject,
    Timestamp,
    doc,
    no_items,
)
from astraflow.core.contract.runs import RunRequest

MAX_NOTE_CHARS: Final = 1_000
"""Of the note of a version."""


class Definition(RestObject, frozen=True, kw_only=True):
    """A workflow: `schemas/workflow.schema.json` is its exact form. It is stored and returned byte for byte."""

    id: Annotated[str, doc("The id of the workflow: a UUID.")]
    nodes: Annotated[list[JsonObject], doc("Its nodes.")]
    edges: Annotated[list[JsonObject] | None, doc("Its edges.")] = None

    EXAMPLE: ClassVar[JsonObject] = RunRequest.EXAMPLE["workflow"]


class Workflow(RestObject, frozen=True, kw_only=True):
    """A saved workflow as the client returns it: the definition of the response, and the version of its ETag."""

    version: int
    definition: dict[str, Any]


class WorkflowSummary(RestObject, frozen=True, kw_only=True):
    """A saved workflow in a list."""

    id: Annotated[str, doc("The id in its definition.")]
    name: Annotated[str, doc("The name in its definition.")]
    version: Annotated[Count, doc("Its newest version, from 1 on.")]
    created_at: Annotated[Timestamp, doc("When it was first saved.")]
    updated_at: Annotated[Timestamp, doc("When it was last saved.")]
    updated_by: Annotated[str, doc("Who saved it last.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "id": Definition.EXAMPLE["id"],
        "name": "Say hello",
        "version": 3,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "updatedAt": "2026-01-15T10:20:00.000Z",
        "updatedBy": "bootstrap",
    }


class WorkflowPage(Page[WorkflowSummary], frozen=True, kw_only=True):
    """A page of saved workflows, last changed first."""


class DefinitionWarning(RestObject, frozen=True, kw_only=True):
    """Something in a definition that has no effect and may be a mistake."""

    pointer: Annotated[str, doc("A JSON pointer into the definition.")]
    code: Annotated[str, doc("A code of the error catalogue, for programs.")]
    message: Annotated[str, doc("What it is, for people.")]


class Validity(RestObject, frozen=True, kw_only=True):
    """The definition can be run. One that cannot is a 422 problem that lists every error."""

    valid: Annotated[Literal[True], doc("Always true.", extra_json_schema={"type": "boolean"})]
    errors: Annotated[list[JsonObject], doc("Always empty.")]
    warnings: Annotated[
        list[DefinitionWarning],
        doc("What has no effect and may be a mistake: fields of nodes that nobody knows."),
    ] = msgspec.field(default_factory=no_items)

    EXAMPLE: ClassVar[JsonObject] = {
        "valid": True,
        "errors": [],
        "warnings": [
            {
                "pointer": "/nodes/0/retries",
                "code": "E.WORKFLOW.UNKNOWN_FIELD",
                "message": "a node has no field of this name: 'retries'; did you mean 'retry'?",
            }
        ],
    }


class ListWorkflows(PageQuery, frozen=True, kw_only=True):
    """Which saved workflows."""

    text: Annotated[
        str, doc("Only workflows with this text in their name or their id.", max_length=256)
    ] = ""
    package: Annotated[
        str,
        doc(
            "Only workflows whose newest version has a node of this package: `name`, or `name@version`. A node that "
            "names no version counts for the one that a run would get now. A page may have fewer items than `limit`, "
            "or none, also if it is not the last one.",
            max_length=256,
        ),
    ] = ""


class ShowWorkflow(Query, frozen=True, kw_only=True):
    """Which version of a workflow."""

    version: Annotated[Positive | None, doc("An older version; the newest by default.")] = None


class SaveWorkflow(Query, frozen=True, kw_only=True):
    """How to save a workflow."""

    draft: Annotated[
        bool,
        doc(
            "`true` saves the draft of the workflow, whatever errors it still has, and no version. "
            "ETag and If-Match are then those of the draft."
        ),
    ] = False
    note: Annotated[
        str, doc("What is new in this version, for people.", max_length=MAX_NOTE_CHARS)
    ] = ""
