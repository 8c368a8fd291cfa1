"""The items of maps, and the nodes inside of containers and called workflows."""

from __future__ import annotations

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, route
from astraflow.api.run_routes import RUNS, bounded_nodes
from astraflow.core.contract.scopes import Body, ItemPage, ListItems, ShowBody
from astraflow.core.ids import RunId
from astraflow.core.security.policy import READ


class ScopeEndpoints(Endpoints):
    """What is inside of the nodes of a run."""

    @route(
        "GET",
        f"{RUNS}/{{runId}}/nodes/{{nodeId}}/items",
        READ,
        "listItems",
        "list the items of a map",
        tag="runs",
        text="In the order of the list. A result that is too large is left out: the node at its `scopePath` has it.",
        query=ListItems,
        replies=ItemPage,
    )
    async def list_items(self, request: Request[ListItems]) -> AsgiApp:
        run_id, node_id, query = (
            RunId(request.params["runId"]),
            request.params["nodeId"],
            request.query,
        )
        place = f"items {run_id} {node_id} {query.scope} {query.status}"
        first = self._cursors.read(place, request.tenant, query.cursor, int) or 0
        items = await self._scheduler.reader.view_items(
            request.tenant,
            run_id,
            (node_id, query.scope or None),
            first=first,
            limit=query.count + 1,
            status=query.status,
        )
        page = bounded_nodes(items[: query.count])
        last = page[-1].item if len(items) > len(page) else None
        cursor = self._cursors.make(place, request.tenant, None if last is None else last + 1)
        return json_response(ItemPage(items=page, next_cursor=cursor))

    @route("GET", f"{RUNS}/{{runId}}/nodes/{{nodeId}}/body", READ, "getBody",
           "show the nodes inside of a node", tag="runs", query=ShowBody,
           replies=Body)  # fmt: skip
    async def show_body(self, request: Request[ShowBody]) -> AsgiApp:
        nodes = await self._scheduler.reader.view_body(
            request.tenant,
            RunId(request.params["runId"]),
            (request.params["nodeId"], request.query.scope or None),
            request.query.item,
        )
        return json_response(Body(nodes=bounded_nodes(nodes)))
