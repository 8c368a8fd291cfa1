"""The requests about nodes inside of others, and the items of maps."""

from __future__ import annotations

from astraflow.client.requests import RUNS, ApiRequest, Pages, _as, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.runs import Artifact, ArtifactPage, ListArtifacts, Node
from astraflow.core.contract.scopes import Body, ItemPage, ListItems, ShowBody
from astraflow.core.contract.words import NodeStatus


def list_items(
    run_id: str,
    node_id: str,
    *,
    scope: str | None = None,
    status: NodeStatus | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> ApiRequest[Page[Node]]:
    """A page of the items of a map, in the order of its list."""
    path = f"{RUNS}/{_part(run_id)}/nodes/{_part(node_id)}/items"
    params = _query(ListItems, scope=scope, status=status, limit=limit, cursor=cursor)
    return ApiRequest("GET", path, _as(ItemPage), params)


def iterate_items(
    run_id: str,
    node_id: str,
    *,
    scope: str | None = None,
    status: NodeStatus | None = None,
    limit: int | None = None,
    page_size: int = 200,
) -> Pages[Node]:
    """The items of a map, in the order of its list."""
    return Pages(
        lambda cursor: list_items(
            run_id, node_id, scope=scope, status=status, limit=page_size, cursor=cursor
        ),
        limit,
    )


def get_body(
    run_id: str, node_id: str, *, scope: str | None = None, item: int = 0
) -> ApiRequest[Body]:
    """The nodes inside of a container or a called workflow, or of one item of a map."""
    path = f"{RUNS}/{_part(run_id)}/nodes/{_part(node_id)}/body"
    return ApiRequest("GET", path, _as(Body), _query(ShowBody, scope=scope, item=item))


def list_artifacts(run_id: str, *, scope: str | None = None) -> ApiRequest[Page[Artifact]]:
    """The artifacts that the results of a run refer to; with a `scope`, those made inside of it."""
    path = f"{RUNS}/{_part(run_id)}/artifacts"
    return ApiRequest("GET", path, _as(ArtifactPage), _query(ListArtifacts, scope=scope))
