"""Nodes inside of others, and the items of maps, as REST shows them."""

from __future__ import annotations

from typing import Annotated

from astraflow.core.contract.base import Count, Page, PageQuery, Query, RestObject, doc
from astraflow.core.contract.runs import Node
from astraflow.core.contract.scope_paths import ScopePath
from astraflow.core.contract.words import NodeStatus


class ShowNode(Query, frozen=True, kw_only=True):
    """Which node of its id."""

    scope: ScopePath = ""


class ListItems(PageQuery, frozen=True, kw_only=True):
    """Which items of a map."""

    scope: ScopePath = ""
    status: Annotated[NodeStatus | None, doc("Only items with this status.")] = None


class ItemPage(Page[Node], frozen=True, kw_only=True):
    """Items of a map, in the order of its list."""


class ShowBody(Query, frozen=True, kw_only=True):
    """Which item of a node."""

    scope: ScopePath = ""
    item: Annotated[
        Count, doc("The item of a map; the body of a container and of a call has one.")
    ] = 0


class Body(RestObject, frozen=True, kw_only=True):
    """The nodes inside of a node, for one item."""

    nodes: Annotated[list[Node], doc("The nodes, in the order of the plan.")]
