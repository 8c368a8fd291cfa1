"""What an installation is, what comes with it, and where something is: about, examples, search."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from astraflow.core.contract.base import Count, JsonObject, Page, Query, RestObject, doc

HitKind = Literal["workflow", "run", "node_type", "package", "worker"]


class DiskUse(RestObject, frozen=True, kw_only=True):
    """The room of the scheduler."""

    store_bytes: Annotated[Count, doc("What the store holds.")]
    free_bytes: Annotated[Count, doc("What is free where the scheduler keeps its files.")]
    total_bytes: Annotated[Count, doc("All that there is.")]


class AboutServer(RestObject, frozen=True, kw_only=True):
    """What serves here."""

    version: Annotated[str, doc("The version of AstraFlow.")]
    python: Annotated[str, doc("The version of Python.")]
    store: Annotated[str, doc("The kind of its store: `sqlite`, `postgres` or `memory`.")]
    schema_version: Annotated[Count, doc("The version of the store's schema.")]
    disk: Annotated[DiskUse, doc("The room that is used and left.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "version": "1.0.0",
        "python": "3.11.7",
        "store": "sqlite",
        "schemaVersion": 13,
        "disk": {
            "storeBytes": 1_048_576,
            "freeBytes": 10_737_418_240,
            "totalBytes": 21_474_836_480,
        },
    }


class ExampleSummary(RestObject, frozen=True, kw_only=True):
    """A workflow that comes with the installation."""

    id: Annotated[str, doc("Its name in paths.")]
    name: Annotated[str, doc("Its name, for people.")]
    description: Annotated[str, doc("What it shows.")]
    node_count: Annotated[Count, doc("How many nodes it has.")]
    node_types: Annotated[list[str], doc("The types of its nodes.")]
    runnable: Annotated[
        bool, doc("Whether the tenant has all that it needs: it can be run as it is.")
    ]

    EXAMPLE: ClassVar[JsonObject] = {
        "id": "hello",
        "name": "Hello",
        "description": "Greet three guests side by side.",
        "nodeCount": 10,
        "nodeTypes": ["core.echo", "core.template"],
        "runnable": True,
    }


class ExamplePage(Page[ExampleSummary], frozen=True, kw_only=True):
    """All examples, by name."""


class SearchFor(Query, frozen=True, kw_only=True):
    """What to look for."""

    q: Annotated[str, doc("A part of a name, a label or an id.", max_length=256)] = ""
    limit: Annotated[int, doc("How many of each kind, 10 by default and 50 at the most.", ge=1)] = (
        10
    )


class SearchHit(RestObject, frozen=True, kw_only=True):
    """One thing that was found."""

    kind: Annotated[HitKind, doc("What it is.")]
    id: Annotated[str, doc("Its id, or its name if that is its id.")]
    label: Annotated[str, doc("Its name, for people.")]
    detail: Annotated[
        str | None, doc("The status of a run or a worker; the package of a node type.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "kind": "workflow",
        "id": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
        "label": "Say hello",
    }


class SearchResult(RestObject, frozen=True, kw_only=True):
    """What was found, by kind: workflows, runs, node types, packages, workers."""

    items: Annotated[list[SearchHit], doc("The best of each kind.")]
