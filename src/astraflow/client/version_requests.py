"""The requests about drafts and versions of workflows."""

from __future__ import annotations

from typing import Literal

from astraflow.client.requests import (
    JSON,
    WORKFLOWS,
    ApiRequest,
    Definition,
    Pages,
    _as,
    _as_nothing,
    _encode,
    _if_match,
    _part,
    _query,
    _raw,
)
from astraflow.core.contract.base import Page
from astraflow.core.contract.versions import (
    DiffWorkflow,
    Draft,
    DraftPage,
    DraftSummary,
    ListDrafts,
    ListVersions,
    Restored,
    SaveDraft,
    VersionPage,
    VersionSummary,
    WorkflowDiff,
)


def list_drafts(
    *, limit: int | None = None, cursor: str | None = None, workflow_id: str | None = None
) -> ApiRequest[Page[DraftSummary]]:
    """One page, last changed first. `workflow_id`: the draft of this workflow alone, if it has one."""
    params = _query(ListDrafts, limit=limit, cursor=cursor, workflow_id=workflow_id)
    return ApiRequest("GET", f"{WORKFLOWS}/drafts", _as(DraftPage), params)


def iterate_drafts(*, limit: int | None = None, page_size: int = 200) -> Pages[DraftSummary]:
    return Pages(lambda cursor: list_drafts(limit=page_size, cursor=cursor), limit)


def get_draft(workflow_id: str) -> ApiRequest[Draft]:
    return ApiRequest("GET", f"{WORKFLOWS}/{_part(workflow_id)}/draft", _as(Draft))


def save_draft(
    workflow_id: str,
    definition: Definition,
    *,
    if_revision: int | None = None,
    base_version: int | None = None,
) -> ApiRequest[DraftSummary]:
    """Save a draft, which may have errors. With `if_revision` only if that one is still stored, 0: if there is none;
    else Conflict. `base_version`: the version whose changes it contains."""
    return ApiRequest(
        "PUT",
        f"{WORKFLOWS}/{_part(workflow_id)}/draft",
        _as(DraftSummary),
        _query(SaveDraft, base_version=base_version),
        {**JSON, **_if_match(if_revision)},
        _raw(definition),
        again=False,
    )


def discard_draft(workflow_id: str, *, if_revision: int | None = None) -> ApiRequest[None]:
    path = f"{WORKFLOWS}/{_part(workflow_id)}/draft"
    return ApiRequest("DELETE", path, _as_nothing, headers=_if_match(if_revision), again=False)


def publish_draft(
    workflow_id: str, *, note: str = "", if_revision: int | None = None, force: bool = False
) -> ApiRequest[VersionSummary]:
    """Make the draft the newest version. `force`: also over a version that is newer than the one it was made from."""
    revision = {} if if_revision is None else {"revision": if_revision}
    body = _encode({"note": note, "force": force, **revision}, "note")
    path = f"{WORKFLOWS}/{_part(workflow_id)}/publish"
    return ApiRequest("POST", path, _as(VersionSummary), headers=JSON, body=body, again=False)


def list_versions(
    workflow_id: str, *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[VersionSummary]]:
    """One page of its versions, newest first."""
    params = _query(ListVersions, limit=limit, cursor=cursor)
    path = f"{WORKFLOWS}/{_part(workflow_id)}/versions"
    return ApiRequest("GET", path, _as(VersionPage), params)


def iterate_versions(
    workflow_id: str, *, limit: int | None = None, page_size: int = 200
) -> Pages[VersionSummary]:
    """All of its versions or so many, newest first."""
    return Pages(lambda cursor: list_versions(workflow_id, limit=page_size, cursor=cursor), limit)


def restore_version(
    workflow_id: str,
    version: int,
    *,
    to: Literal["version", "draft"] = "version",
    note: str = "",
    replace: bool = False,
) -> ApiRequest[Restored]:
    """Make an older version the newest one, or the draft. `replace`: also if there is a draft already."""
    body = _encode({"to": to, "note": note, "replace": replace}, "note")
    path = f"{WORKFLOWS}/{_part(workflow_id)}/versions/{version}/restore"
    return ApiRequest("POST", path, _as(Restored), headers=JSON, body=body, again=False)


def diff_workflow(
    workflow_id: str, *, before: int | str = "newest", after: int | str = "draft"
) -> ApiRequest[WorkflowDiff]:
    """What differs between two of its definitions: a version, `newest` or `draft`."""
    params = _query(DiffWorkflow, from_=str(before), to=str(after))
    path = f"{WORKFLOWS}/{_part(workflow_id)}/diff"
    return ApiRequest("GET", path, _as(WorkflowDiff), params)
